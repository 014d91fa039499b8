"""Pipes as a transport: which message answers which request, what belongs to none, and what becomes of it all."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.errors import UpstreamError
from gateway.upstream.pipe import Hearer, Refused
from gateway.upstream.piped import PipeTransport
from gateway.upstream.piped_answer import MOST_UNREAD, PipedAnswer
from gateway.upstream.transport import SESSION_ID, Answer
from gateway.wire.jsonrpc import decode, encode

PING = {"id": 7, "method": "ping"}
ASK = {"id": 0, "method": "elicitation/create", "params": {}}
LOG = {"method": "notifications/message", "params": {"level": "info", "data": 1}}


class FakePipe:
    """A pipe whose other end is the test."""

    def __init__(self, hearer: Hearer, headers: Mapping[str, str]) -> None:
        self.hearer = hearer
        self.opened_with = headers
        self.sent: list[dict[str, Any]] = []
        self.sent_with: list[Mapping[str, str]] = []
        self.is_closed = False
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.refusal: Answer | None = None
        self.fault: Exception | None = None
        self.may_send = asyncio.Event()
        self.may_send.set()

    async def send(self, message: bytes, headers: Mapping[str, str]) -> Answer | None:
        await self.may_send.wait()
        if self.fault is not None:
            raise self.fault
        self.sent.append(decode(message))
        self.sent_with.append(headers)
        return self.refusal

    async def close(self) -> None:
        self.is_closed = True
        await self.may_close.wait()

    def say(self, *messages: Any) -> None:
        for message in messages:
            assert self.hearer.hear(encode(message if isinstance(message, list) else {"jsonrpc": "2.0", **message}))

    @property
    def methods(self) -> list[Any]:
        return [message.get("method") for message in self.sent]


class Pipes:
    """Opens pipes, and keeps them."""

    def __init__(self) -> None:
        self.all: list[FakePipe] = []
        self.fault: Exception | None = None
        self.opened = asyncio.Event()

    async def __call__(self, hearer: Hearer, headers: Mapping[str, str]) -> FakePipe:
        if self.fault is not None:
            raise self.fault
        self.all.append(FakePipe(hearer, headers))
        self.opened.set()
        return self.all[-1]


@pytest.fixture
def pipes() -> Pipes:
    return Pipes()


def transport_of(pipes: Pipes, **options: Any) -> PipeTransport:
    return PipeTransport("git", pipes, max_message_bytes=1000, **{"may_be_modern": False, **options})


def request(request_id: str, method: str = "tools/call", **params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 -- nothing announces it
            await asyncio.sleep(0)


class Session:
    """An open session, and the server's end of its pipe."""

    def __init__(self, transport: PipeTransport, pipe: FakePipe, headers: Mapping[str, str]) -> None:
        self.transport = transport
        self.pipe = pipe
        self.headers = headers

    @classmethod
    async def open(cls, transport: PipeTransport, pipes: Pipes) -> "Session":
        answer = await transport.post(request("init", "initialize"), {"Authorization": "x"})
        pipes.all[-1].say({"id": "init", "result": {}})
        assert [decode(event.data)["id"] async for event in answer.events()] == ["init"]
        return cls(transport, pipes.all[-1], {SESSION_ID: answer.headers[SESSION_ID]})

    async def post(self, body: bytes) -> Answer:
        return await self.transport.post(body, self.headers)

    async def listen(self) -> Answer:
        return await self.transport.get(self.headers)


@pytest.fixture
async def session(pipes: Pipes) -> Session:
    return await Session.open(transport_of(pipes), pipes)


async def read(answer: Answer) -> list[dict[str, Any]]:
    """All messages of an answer to its end."""
    async with asyncio.timeout(5):
        return [decode(event.data) for event in [event async for event in answer.events()]]


async def failure(answer: Answer) -> str:
    with pytest.raises(UpstreamError) as caught:
        await read(answer)
    return f"{caught.value.reason}: {caught.value.message}"


def names(messages: list[dict[str, Any]]) -> list[Any]:
    return [message.get("method") or message["id"] for message in messages]


# --- what belongs to a request ---


async def test_a_response_ends_the_answer_to_its_request_in_whatever_order_they_come(session: Session) -> None:
    answers = [await session.post(request(name)) for name in "abc"]
    assert [(answer.status, answer.kind) for answer in answers] == [(200, "sse")] * 3
    session.pipe.say(*({"id": name, "result": {"to": name}} for name in "cab"))
    assert [(await read(answer))[0]["result"]["to"] for answer in answers] == ["a", "b", "c"]


async def test_progress_goes_by_its_token_and_is_nobodys_when_that_is_nobodys(session: Session) -> None:
    one, other = [await session.post(request(name)) for name in ("one", "other")]
    aside = await session.listen()
    for token in ("other", "gone", 5, None):
        session.pipe.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    session.pipe.say({"id": "one", "result": {}}, {"id": "other", "result": {}})
    assert names(await read(one)) == ["one"]
    assert names(await read(other)) == ["notifications/progress", "other"]
    session.pipe.hearer.end("ended")
    assert await read(aside) == []


@pytest.mark.parametrize("message", [ASK, LOG, PING, {"method": "notifications/tools/list_changed"}])
async def test_what_names_no_request_is_of_the_only_one_there_is(session: Session, message: dict[str, Any]) -> None:
    aside = await session.listen()
    answer = await session.post(request("a"))
    session.pipe.say(message, {"id": "a", "result": {}})
    assert names(await read(answer)) == [message["method"], "a"]
    session.pipe.hearer.end("ended")
    assert await read(aside) == []


@pytest.mark.parametrize("busy", [[], ["a", "b"]])
async def test_what_names_no_request_is_of_the_session_when_there_are_none_or_several(
    session: Session, busy: list[str]
) -> None:
    answers = [await session.post(request(name)) for name in busy]
    session.pipe.say(ASK)  # heard although nobody listens yet
    aside = await session.listen()
    session.pipe.say(LOG, PING, *({"id": name, "result": {}} for name in busy))
    assert [names(await read(answer)) for answer in answers] == [[name] for name in busy]
    session.pipe.hearer.end("ended")
    assert names(await read(aside)) == ["elicitation/create", "notifications/message", "ping"]


async def test_what_a_request_that_was_given_up_still_says_is_not_anothers(session: Session) -> None:
    (await session.post(request("a"))).close()
    answer = await session.post(request("b"))
    aside = await session.listen()
    session.pipe.say(LOG, {"id": "a", "result": {}}, {"id": None, "error": {"code": 0}}, {"id": "b", "result": {}})
    assert names(await read(answer)) == ["b"]
    session.pipe.hearer.end("ended")
    assert names(await read(aside)) == ["notifications/message"]
    assert session.pipe.methods == ["initialize", "tools/call", "tools/call"]  # cancelling is its callers' business


async def test_a_question_that_is_taken_back_is_told_like_any_other_message(session: Session) -> None:
    answer = await session.post(request("a"))
    session.pipe.say({"method": "notifications/cancelled", "params": {"requestId": "e-1"}}, {"id": "a", "result": {}})
    assert names(await read(answer)) == ["notifications/cancelled", "a"]


@pytest.mark.parametrize("made_up", [None, "server-error"])
async def test_an_error_without_a_readable_id_is_of_the_only_request(session: Session, made_up: Any) -> None:
    answer = await session.post(request("a"))
    session.pipe.say({"id": made_up, "error": {"code": 0}})
    assert await read(answer) == [{"jsonrpc": "2.0", "id": "a", "error": {"code": 0}}]
    answers = [await session.post(request(name)) for name in "bc"]
    session.pipe.say({"id": made_up, "error": {"code": 0}}, {"id": 3, "error": {"code": 0}})
    session.pipe.hearer.end("ended")
    for each in answers:
        assert (await failure(each)).startswith("outcome_unknown")


async def test_batches_are_taken_apart(session: Session) -> None:
    one, other = [await session.post(request(name)) for name in ("one", "other")]
    session.pipe.say([{"id": "other", "result": {}}, {"id": "one", "result": {}}])
    assert names(await read(one)) + names(await read(other)) == ["one", "other"]


@pytest.mark.parametrize(
    "data",
    [b"", b"text", b"[]", b"[1]", b"5", b'"x"', b"{}", b'{"id": 1}', b'{"method": 5}', b'{"level": "info"}', b"{"],
)
async def test_what_is_no_message_is_said_to_be_none(session: Session, data: bytes) -> None:
    assert session.pipe.hearer.hear(data) is False


async def test_requests_with_the_same_id_take_turns(session: Session) -> None:
    first = await session.post(request("a"))
    second = asyncio.create_task(session.post(request("a")))
    await asyncio.sleep(0)
    assert session.pipe.methods.count("tools/call") == 1
    session.pipe.say({"id": "a", "result": {"number": 1}})
    assert (await read(first))[0]["result"] == {"number": 1}
    answer = await second
    session.pipe.say({"id": "a", "result": {"number": 2}})
    assert (await read(answer))[0]["result"] == {"number": 2}


async def test_a_slow_reader_loses_notifications_and_nothing_else(session: Session) -> None:
    answer = await session.post(request("a"))
    session.pipe.say(*([LOG] * (MOST_UNREAD + 50)), ASK, {"id": "a", "result": {}})
    assert names(await read(answer))[MOST_UNREAD - 1 :] == ["notifications/message", "elicitation/create", "a"]


async def test_what_nobody_listens_to_is_not_kept_without_end(session: Session) -> None:
    session.pipe.say(*([LOG] * 1000), ASK)
    aside = await session.listen()
    session.pipe.hearer.end("ended")
    heard = names(await read(aside))
    assert len(heard) < 500
    assert heard[-1] == "elicitation/create"


async def test_a_message_over_the_limit_fails_the_request_that_it_names_or_all(session: Session) -> None:
    one, other = [await session.post(request(name)) for name in ("one", "other")]
    session.pipe.hearer.hear_overlong(b'{"result":{"text":"..."},"jsonrpc":"2.0","id":"other"}')
    assert (await failure(other)).startswith("too_large: Upstream 'git' sent a message over the limit of 1000 bytes")
    third = await session.post(request("third"))
    session.pipe.hearer.hear_overlong(b'{"result"...')
    for each in (one, third):
        assert (await failure(each)).startswith("too_large")


# --- the life of a session ---


async def test_a_session_carries_its_credentials_and_ends_with_delete(pipes: Pipes, session: Session) -> None:
    pipe = session.pipe
    assert pipe.opened_with == {"Authorization": "x"}
    assert (await session.post(encode({"jsonrpc": "2.0", "method": "notifications/initialized"}))).status == 202
    assert (await session.post(encode({"jsonrpc": "2.0", "id": 0, "result": {}}))).status == 202
    assert pipe.methods == ["initialize", "notifications/initialized", None]
    assert (await session.transport.delete(session.headers)).status == 200
    await until(lambda: pipe.is_closed)
    assert (await session.transport.delete(session.headers)).status == 404
    for answer in (await session.post(request("a")), await session.listen()):
        assert (answer.status, answer.kind, await answer.read_message_bytes()) == (404, "empty", b"")
    assert len(pipes.all) == 1


async def test_the_death_of_a_server_breaks_what_is_in_flight_and_is_404_for_what_comes(session: Session) -> None:
    answer, aside = await session.post(request("a")), await session.listen()
    session.pipe.say(LOG)
    session.pipe.hearer.end("was killed")
    with pytest.raises(UpstreamError) as caught:
        assert [names([decode(event.data)]) async for event in answer.events()] == [["notifications/message"]]
    assert caught.value.reason == "outcome_unknown"
    assert caught.value.message == "Upstream 'git' was killed before it answered: the outcome of the request is unknown"
    assert await read(aside) == []
    assert (await session.post(request("b"))).status == 404
    assert (await session.listen()).status == 404
    await until(lambda: session.pipe.is_closed)


async def test_a_server_that_dies_during_initialize_was_asked_nothing_yet(pipes: Pipes) -> None:
    answer = await transport_of(pipes).post(request("init", "initialize"), {})
    pipes.all[0].say(ASK, LOG, PING)
    pipes.all[0].hearer.end("was killed")
    with pytest.raises(UpstreamError) as caught:
        assert [decode(event.data)["method"] async for event in answer.events()] == ["ping"]
    assert (caught.value.reason, caught.value.retryable) == ("unreachable", True)
    assert caught.value.message == "Upstream 'git' was killed during initialize"


async def test_what_comes_during_initialize_is_heard_when_it_is_over(pipes: Pipes) -> None:
    transport = transport_of(pipes)
    answer = await transport.post(request("init", "initialize"), {})
    pipes.all[0].say(ASK, LOG, {"id": "init", "result": {}})
    assert names(await read(answer)) == ["init"]
    aside = await transport.get({SESSION_ID: answer.headers[SESSION_ID]})
    pipes.all[0].hearer.end("ended")
    assert names(await read(aside)) == ["elicitation/create", "notifications/message"]


async def test_a_listener_takes_the_place_of_the_one_before(session: Session) -> None:
    first = await session.listen()
    second = await session.listen()
    session.pipe.say(ASK)
    assert await read(first) == []
    second.close()
    session.pipe.say(LOG)
    third = await session.listen()
    session.pipe.hearer.end("ended")
    assert names(await read(third)) == ["notifications/message"]


async def test_a_refusal_is_the_answer_and_one_that_says_gone_ends_the_session(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.conversation.LAST_WORDS_S", 0.0)
    session.pipe.refusal = PipedAnswer.bare(401)
    assert (await session.post(request("a"))).status == 401
    session.pipe.refusal = PipedAnswer.bare(404)
    assert (await session.post(request("b"))).status == 404
    await until(lambda: session.pipe.is_closed)
    session.pipe.refusal = None
    assert (await session.post(request("c"))).status == 404
    assert session.pipe.methods == ["initialize", "tools/call", "tools/call"]


async def test_a_message_that_cannot_be_sent_says_so(session: Session) -> None:
    session.pipe.fault = UpstreamError("git", "unreachable", "no", retryable=True)
    with pytest.raises(UpstreamError, match=r"^no$"):
        await session.post(request("a"))


async def test_an_answer_need_not_wait_for_the_message_to_be_taken(session: Session) -> None:
    session.pipe.may_send.clear()
    posting = asyncio.create_task(session.post(request("a")))
    await asyncio.sleep(0)
    session.pipe.say({"id": "a", "result": {}})
    assert names(await read(await posting)) == ["a"]
    session.pipe.may_send.set()


async def test_a_pipe_that_is_refused_is_the_answer(pipes: Pipes) -> None:
    pipes.fault = Refused(PipedAnswer.bare(403))
    assert (await transport_of(pipes).post(request("init", "initialize"), {})).status == 403


async def test_without_a_session_there_is_nothing_to_post_to_or_to_listen_to(pipes: Pipes) -> None:
    transport = transport_of(pipes)
    assert (await transport.post(request("a"), {})).status == 405
    assert (await transport.get({})).status == 405
    assert (await transport.delete({})).status == 404
    assert (await transport.post(request("a"), {SESSION_ID: "other"})).status == 404
    assert pipes.all == []


async def test_closing_ends_every_pipe_and_waits_until_that_is_so(pipes: Pipes) -> None:
    transport = transport_of(pipes)
    sessions = [await Session.open(transport, pipes) for _ in range(2)]
    pipes.all[0].may_close.clear()
    closing = asyncio.create_task(transport.close())
    await until(lambda: all(pipe.is_closed for pipe in pipes.all))
    assert not closing.done()
    pipes.all[0].may_close.set()
    await closing
    assert len(transport) == 0
    assert (await sessions[0].post(request("a"))).status == 404


async def test_a_pipe_that_is_opened_for_nobody_is_closed(pipes: Pipes) -> None:
    may_open = asyncio.Event()

    async def open_late(hearer: Hearer, headers: Mapping[str, str]) -> FakePipe:
        await may_open.wait()
        return await pipes(hearer, headers)

    transport = PipeTransport("git", open_late, max_message_bytes=1000)
    posting = asyncio.create_task(transport.post(request("init", "initialize"), {}))
    await asyncio.sleep(0)
    posting.cancel()
    await asyncio.gather(posting, return_exceptions=True)
    may_open.set()
    await until(lambda: pipes.all and pipes.all[0].is_closed)
    assert len(transport) == 0


async def test_there_are_never_more_pipes_than_allowed(pipes: Pipes) -> None:
    transport = transport_of(pipes, most=2)
    first, _second = [await Session.open(transport, pipes) for _ in range(2)]
    with pytest.raises(UpstreamError) as caught:
        await Session.open(transport, pipes)
    assert (caught.value.reason, caught.value.retryable, caught.value.retry_after_s) == ("full", True, 2)
    first.pipe.may_close.clear()
    await transport.delete(first.headers)
    opening = asyncio.create_task(Session.open(transport, pipes))
    await until(lambda: first.pipe.is_closed)
    assert len(pipes.all) == len(transport) == 2
    first.pipe.may_close.set()
    await opening
    assert len(pipes.all) == 3
