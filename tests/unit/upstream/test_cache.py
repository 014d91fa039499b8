import asyncio
from typing import Any

import pytest

from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.cache import CachedUpstream
from gateway.upstream.contexts import Deaf
from gateway.upstream.shelf import Shelf
from tests.support.fake_upstream import NOBODY, Clock, FakeUpstream, listing, request

TOOLS, READ = "tools/list", "resources/read"
ALICE, BOB = Caller(Principal("alice", "alice")), Caller(Principal("bob", "bob"))


class Cached:
    """A cache in front of an upstream that gives every answer a minute, and a clock."""

    def __init__(self, *, scope: str = "private", may_share: bool = False, ttl_ms: int = 60_000) -> None:
        self.clock = Clock()
        self.upstream = FakeUpstream("a", tools=["x"])
        self.shelf = Shelf(1 << 20)
        self.cache = CachedUpstream(self.upstream, self.shelf, may_share=may_share, now_s=self.clock)
        self.hints: dict[str, Any] = {"ttlMs": ttl_ms, "cacheScope": scope}
        self.upstream.answers[TOOLS] = lambda _request: Outcome.of_result(listing(TOOLS, "x", **self.hints))
        self.upstream.answers[READ] = lambda asked: Outcome.of_result(
            {"resultType": "complete", "contents": [{"uri": asked.params["uri"], "text": "t"}], **self.hints}
        )

    async def ask(self, method: str = TOOLS, params: Any = None, caller: Caller = NOBODY, **more: Any) -> Outcome:
        return await self.cache.serve(request(method, params, **more), caller, Deaf())

    async def read(self, uri: str, caller: Caller = NOBODY) -> Outcome:
        return await self.ask(READ, {"uri": uri}, caller)

    @property
    def asked(self) -> int:
        return len(self.upstream.asked)


def changed(kind: str) -> dict[str, Any]:
    return {"method": f"notifications/{kind}/list_changed"}


def updated(uri: str) -> dict[str, Any]:
    return {"method": "notifications/resources/updated", "params": {"uri": uri}}


# --- what is kept ---


async def test_an_answer_is_given_again_with_what_is_left_of_its_time() -> None:
    cached = Cached()
    first = await cached.ask()
    cached.clock.now_s += 59.5
    again = await cached.ask()
    assert again.body["result"] == {**first.body["result"], "ttlMs": 500}
    cached.clock.now_s += 0.5
    assert (await cached.ask()).body["result"]["ttlMs"] == 60_000
    assert cached.asked == 2


async def test_the_time_begins_when_the_question_is_asked() -> None:
    cached = Cached()
    cached.upstream.hold()
    asking = asyncio.ensure_future(cached.ask())
    await cached.upstream.seen(1)
    cached.clock.now_s += 50
    cached.upstream.let_go()
    await asking
    assert (await cached.ask()).body["result"]["ttlMs"] == 10_000


@pytest.mark.parametrize(
    "other",
    [
        {"caller": BOB},
        {"capabilities": {"roots": {}}},
        {"params": {"cursor": ""}},
        {"params": {"cursor": "p2"}},
        {"meta": {"x/tenant": "b"}},
    ],
)
async def test_an_answer_is_for_its_context_and_its_question(other: dict[str, Any]) -> None:
    cached = Cached(scope="public")
    await cached.ask(caller=ALICE)
    await cached.ask(**{"caller": ALICE, **other})
    assert cached.asked == 2


async def test_with_credentials_passed_on_each_has_its_own() -> None:
    cached = Cached()
    cached.upstream.passes_authorization = True
    for token in ("one", "two", "one"):
        await cached.ask(caller=Caller(NOBODY.principal, token))
    assert cached.asked == 2


async def test_what_may_not_be_kept_is_not() -> None:
    cached = Cached(ttl_ms=0)
    await cached.ask()
    await cached.ask()
    assert (cached.asked, len(cached.shelf)) == (2, 0)


async def test_a_round_is_never_kept() -> None:
    cached = Cached()
    cached.upstream.answers[READ] = lambda _request: Outcome.of_result({"resultType": "input_required", "ttlMs": 9000})
    await cached.read("x:1")
    await cached.read("x:1")
    await cached.ask(READ, {"uri": "x:1"}, request_state="s")
    assert cached.asked == 3


# --- for everybody ---


async def test_what_is_public_is_given_to_everybody_if_operator_and_server_say_so() -> None:
    cached = Cached(scope="public", may_share=True)
    await cached.ask(caller=ALICE)
    assert (await cached.ask(caller=BOB)).body["result"]["cacheScope"] == "public"
    assert cached.asked == 1


@pytest.mark.parametrize(("scope", "may_share"), [("private", True), ("public", False)])
async def test_one_of_both_is_not_enough(scope: str, may_share: bool) -> None:
    cached = Cached(scope=scope, may_share=may_share)
    for caller in (ALICE, BOB, ALICE, BOB):
        await cached.ask(caller=caller)
    assert cached.asked == 2


async def test_what_is_public_is_for_clients_of_the_same_kind_all_the_same() -> None:
    cached = Cached(scope="public", may_share=True)
    await cached.ask(caller=ALICE)
    await cached.ask(caller=BOB, capabilities={"roots": {}})
    assert cached.asked == 2


# --- those who ask at the same time ---


async def test_many_who_ask_at_once_are_one_question() -> None:
    cached = Cached()
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask()) for _ in range(20)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    cached.upstream.let_go()
    assert len({str(outcome.body) for outcome in await asyncio.gather(*asking)}) == 1
    assert cached.asked == 1


async def test_they_fail_together_and_the_failure_is_not_kept() -> None:
    cached = Cached()
    cached.upstream.failure = UpstreamError("a", "unreachable", "down")
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask()) for _ in range(5)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    cached.upstream.let_go()
    failures = await asyncio.gather(*asking, return_exceptions=True)
    assert all(isinstance(failure, UpstreamError) for failure in failures)
    assert cached.asked == 1
    cached.upstream.failure = None
    assert "result" in (await cached.ask()).body


async def test_an_error_is_shared_with_those_who_asked_the_same_meanwhile() -> None:
    cached = Cached()
    cached.upstream.answers[TOOLS] = lambda _request: Outcome({"error": {"code": -32603, "message": "no"}})
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask()) for _ in range(5)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    cached.upstream.let_go()
    await asyncio.gather(*asking)
    assert cached.asked == 1


async def test_who_may_not_have_the_answer_asks_again() -> None:
    cached = Cached(scope="private", may_share=True)
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask(caller=caller)) for caller in (ALICE, BOB)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    cached.upstream.let_go()
    await asyncio.gather(*asking)
    assert cached.asked == 2


async def test_who_asks_at_the_same_time_does_not_get_what_is_not_to_be_kept() -> None:
    cached = Cached(ttl_ms=0)
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask()) for _ in range(3)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    cached.upstream.let_go()
    await asyncio.gather(*asking)
    assert cached.asked == 3


@pytest.mark.parametrize("wish", [{"progress_token": 7}, {"log_level": "info"}])
async def test_who_wants_to_hear_of_it_asks_alone_but_for_what_is_kept(wish: dict[str, Any]) -> None:
    cached = Cached()
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask(**wish)) for _ in range(2)]
    await cached.upstream.seen(2)
    cached.upstream.let_go()
    await asyncio.gather(*asking)
    await cached.ask(**wish)
    assert cached.asked == 2


async def test_the_first_who_leaves_does_not_take_the_answer_along() -> None:
    cached = Cached()
    cached.upstream.hold()
    asking = [asyncio.ensure_future(cached.ask()) for _ in range(3)]
    await cached.upstream.seen(1)
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    cached.upstream.let_go()
    assert all("result" in outcome.body for outcome in await asyncio.gather(*asking[1:]))
    assert (cached.asked, cached.upstream.cancelled) == (1, 0)


async def test_the_last_who_leaves_cancels_the_question_and_the_next_one_asks_anew() -> None:
    cached = Cached()
    cached.upstream.hold()
    asking = asyncio.ensure_future(cached.ask())
    await cached.upstream.seen(1)
    asking.cancel()
    await asyncio.sleep(0)
    cached.upstream.let_go()
    assert "result" in (await cached.ask()).body
    assert (cached.asked, cached.upstream.cancelled) == (2, 1)


# --- what is out of date ---


@pytest.mark.parametrize("change", [changed("tools"), None])
async def test_after_a_change_the_list_is_asked_for_again(change: dict[str, Any] | None) -> None:
    cached = Cached()
    await cached.ask()
    cached.cache.note_change(changed("prompts"))
    await cached.ask()
    assert cached.asked == 1
    cached.cache.note_change(change)
    await cached.ask()
    assert cached.asked == 2


async def test_what_was_asked_for_before_a_change_is_not_kept_nor_waited_for() -> None:
    cached = Cached()
    cached.upstream.hold()
    before = asyncio.ensure_future(cached.ask())
    await cached.upstream.seen(1)
    cached.cache.note_change(changed("tools"))
    after = asyncio.ensure_future(cached.ask())
    await cached.upstream.seen(2)
    cached.upstream.let_go()
    await asyncio.gather(before, after)
    await cached.ask()
    assert cached.asked == 2


async def test_an_update_concerns_its_resource_and_what_that_is_a_part_of() -> None:
    cached = Cached()
    uris = ("x://h/a", "x://h/a/b", "x://h/c")
    for uri in uris:
        await cached.read(uri)
    cached.cache.note_change(updated("x://h/a/b"))
    for uri in uris:
        await cached.read(uri)
    assert [asked.params["uri"] for asked in cached.upstream.asked[3:]] == ["x://h/a", "x://h/a/b"]


async def test_updates_of_very_many_resources_concern_them_all() -> None:
    cached = Cached()
    await cached.read("x://h/kept")
    for number in range(10_100):
        cached.cache.note_change(updated(f"x:{number}"))
    assert len(cached.cache._resource_versions) <= 10_000
    await cached.read("x://h/kept")
    assert cached.asked == 2


@pytest.mark.parametrize(
    "refusal",
    [
        Outcome({"error": {"code": -32602, "message": "Unknown tool"}}),
        Outcome.of_result({"isError": True, "content": [{"type": "text", "text": "Unknown tool: x"}]}),
        ProtocolError(-32020, "Mcp-Param-Region is missing"),
    ],
)
async def test_a_call_that_is_refused_puts_the_list_in_doubt(refusal: Outcome | ProtocolError) -> None:
    cached = Cached()
    await cached.ask()

    def answer(_request: object) -> Outcome:
        if isinstance(refusal, Outcome):
            return refusal
        raise refusal

    cached.upstream.answers["tools/call"] = answer
    if isinstance(refusal, Outcome):
        assert await cached.ask("tools/call", {"name": "x"}) is refusal
    else:
        with pytest.raises(ProtocolError):
            await cached.ask("tools/call", {"name": "x"})
    await cached.ask()
    assert cached.upstream.methods() == [TOOLS, "tools/call", TOOLS]


async def test_what_is_kept_is_bounded() -> None:
    cached = Cached()
    for number in range(2000):
        await cached.read(f"x:{number}")
    assert cached.shelf.size_bytes <= 1 << 20
    assert 0 < len(cached.shelf) < 2000
    await cached.read("x:1999")
    assert cached.asked == 2000
