"""gateway.upstream.era: one question to a server, for everybody, and for as long as it holds."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.core.era import Era
from gateway.errors import UpstreamError
from gateway.upstream.era import DOUBT_INTERVAL_S, EraResolver
from gateway.upstream.http import UpstreamHttp
from gateway.upstream.refusal import UpstreamRefused
from tests.support.scripted import ScriptedUpstream, Wire, error_message

CHALLENGE = 'Bearer resource_metadata="https://u.test/.well-known/oauth-protected-resource"'


class Rig:
    """A resolver in front of a scripted upstream, a clock that stands still, and the attempts at `initialize`."""

    def __init__(self, upstream: ScriptedUpstream, *, configured: Era | None = None, timeout_s: float = 5.0) -> None:
        self.upstream = upstream
        self.now_s = 100.0
        self.http = UpstreamHttp("docs", upstream.url, headers={}, connect_timeout_s=5, max_message_bytes=10**6)
        self.resolver = EraResolver(self.http, configured=configured, timeout_s=timeout_s, now_s=lambda: self.now_s)
        self.initialized_with: list[str | None] = []
        self.takes_initialize = True

    async def era(self, authorization: str | None = None) -> Era:
        """Ask, with the given credential."""
        headers = {"Authorization": authorization} if authorization else {}

        async def initialize() -> None:
            self.initialized_with.append(authorization)
            if not self.takes_initialize:
                raise UpstreamRefused(401, None, None)

        return await self.resolver.era_of(headers, initialize)

    @property
    def probes(self) -> int:
        """How often the server was asked."""
        return len(self.upstream.received("server/discover"))

    async def close(self) -> None:
        """Close what the test left open."""
        await self.resolver.close()
        await self.http.close()


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream() as scripted:
        yield scripted


@pytest.fixture
async def rig(upstream: ScriptedUpstream) -> AsyncIterator[Rig]:
    rig = Rig(upstream)
    yield rig
    await rig.close()


def refuse(status: int, content: bytes = b"", media_type: str | None = None) -> Any:
    return lambda wire: wire.reply(status, content, media_type)


async def discover_on_a_stream(wire: Wire) -> None:
    await wire.sse()
    await wire.notify("notifications/message", {"level": "info", "data": "hi"})
    await wire.end(result={"supportedVersions": ["2026-07-28"], "capabilities": {}})


LEGACY_ANSWERS: dict[str, Any] = {
    "400, -32000, id null": lambda wire: wire.error(-32000, status=400, id=None),
    "400, -32600": lambda wire: wire.error(-32600, status=400),
    "400 as text": refuse(400, b"Bad Request: missing session", "text/plain"),
    "404": refuse(404),
    "405": refuse(405),
    "200, -32601": lambda wire: wire.error(-32601),
    "200, -32602": lambda wire: wire.error(-32602),
    "400, an error as text": lambda wire: wire.error(-32000, status=400, media_type="text/plain"),
    "a discover result of legacy versions": lambda wire: wire.result({"supportedVersions": ["2025-06-18"]}),
    "-32022 without it": lambda wire: wire.error(-32022, data={"supported": ["2025-11-25"]}, status=400),
    "a page": refuse(200, b"<html>", "text/html"),
    "a stream without an answer": refuse(200, b": nothing\n\n", "text/event-stream"),
}


@pytest.mark.parametrize("case", LEGACY_ANSWERS)
async def test_deployed_servers_refuse_in_many_ways_and_are_asked_once(rig: Rig, case: str) -> None:
    rig.upstream.on("server/discover", LEGACY_ANSWERS[case])
    assert [await rig.era(), await rig.era()] == ["legacy", "legacy"]
    assert rig.probes == 1
    assert rig.initialized_with == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda wire: wire.error(-32020, status=400),
        lambda wire: wire.error(-32021, status=400),
        lambda wire: wire.error(-32022, data={"supported": ["2026-07-28"]}, status=400),
        discover_on_a_stream,
    ],
    ids=["-32020", "-32021", "-32022 with it", "a result on a stream"],
)
async def test_modern_servers_are_asked_once(rig: Rig, answer: Any) -> None:
    rig.upstream.on("server/discover", answer)
    assert [await rig.era(), await rig.era()] == ["modern", "modern"]
    assert rig.probes == 1


async def test_what_a_modern_server_tells_of_itself_is_kept() -> None:
    async with ScriptedUpstream(era="modern") as upstream:
        rig = Rig(upstream)
        assert await rig.era() == "modern"
        assert rig.resolver.discover_result is not None
        assert rig.resolver.discover_result["capabilities"] == {"tools": {}}
        await rig.close()


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_operators_word_is_not_questioned(upstream: ScriptedUpstream, era: Era) -> None:
    rig = Rig(upstream, configured=era)
    assert await rig.era() == era
    assert not rig.resolver.doubt()
    assert upstream.log == []
    await rig.close()


async def test_concurrent_first_requests_share_one_question(rig: Rig) -> None:
    assert await asyncio.gather(*(rig.era() for _ in range(20))) == ["legacy"] * 20
    assert rig.probes == 1


async def test_the_question_survives_the_client_that_caused_it(rig: Rig) -> None:
    @rig.upstream.on("server/discover")
    async def answer_late(wire: Wire) -> None:
        await go_on.wait()
        await wire.error(-32601)

    go_on = asyncio.Event()
    first, second = asyncio.create_task(rig.era()), asyncio.create_task(rig.era())
    await rig.upstream.seen("server/discover")
    first.cancel()
    await asyncio.wait([first])
    go_on.set()
    assert await second == "legacy"
    assert rig.probes == 1


async def test_the_question_survives_all_clients(rig: Rig) -> None:
    @rig.upstream.on("server/discover")
    async def answer_late(wire: Wire) -> None:
        await go_on.wait()
        await wire.error(-32601)

    go_on = asyncio.Event()
    first = asyncio.create_task(rig.era())
    await rig.upstream.seen("server/discover")
    first.cancel()
    await asyncio.wait([first])
    go_on.set()
    assert await rig.era() == "legacy"
    assert rig.probes == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_an_outage_is_not_remembered(rig: Rig, status: int) -> None:
    rig.takes_initialize = False
    rig.upstream.on("server/discover", refuse(status), times=1)
    rig.upstream.on("server/discover", lambda wire: wire.error(-32020, status=400))
    with pytest.raises(UpstreamError) as caught:
        await rig.era()
    assert caught.value.retryable
    assert await rig.era() == "modern"


async def test_a_server_that_cannot_be_reached_is_not_remembered(rig: Rig) -> None:
    await rig.upstream.stop()
    with pytest.raises(UpstreamError, match="connection refused"):
        await rig.era()
    await rig.upstream.start()
    assert await rig.era() == "legacy"


async def test_an_overloaded_server_says_when_to_come_back(rig: Rig) -> None:
    rig.upstream.on("server/discover", lambda wire: wire.reply(503, headers={"Retry-After": "9"}))
    with pytest.raises(UpstreamError, match="'docs' answered with HTTP 503") as caught:
        await rig.era()
    assert (caught.value.reason, caught.value.retry_after_s) == ("full", 9)


async def wall(wire: Wire) -> None:
    """Let nobody in without the right credential."""
    if wire.request.headers.get("authorization") != "Bearer good":
        await wire.reply(401, headers={"WWW-Authenticate": CHALLENGE})


async def test_a_wall_is_told_with_its_challenge_and_forgotten() -> None:
    async with ScriptedUpstream(era="modern") as upstream:
        upstream.gate = wall
        rig = Rig(upstream)
        with pytest.raises(UpstreamRefused) as caught:
            await rig.era()
        assert (caught.value.status, caught.value.challenge) == (401, CHALLENGE)
        assert await rig.era("Bearer good") == "modern"
        assert rig.initialized_with == []
        await rig.close()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_refuses_only_the_question_is_legacy_if_it_takes_initialize(rig: Rig, status: int) -> None:
    rig.upstream.on("server/discover", refuse(status))
    assert await rig.era("Bearer good") == "legacy"
    assert rig.initialized_with == ["Bearer good"]


async def test_a_refused_credential_is_tried_on_initialize_once_and_then_told(rig: Rig) -> None:
    rig.takes_initialize = False
    rig.upstream.on("server/discover", refuse(401))
    with pytest.raises(UpstreamRefused):
        await rig.era("Bearer bad")
    assert rig.initialized_with == ["Bearer bad"]
    assert rig.resolver.known is None


async def test_a_client_does_not_suffer_from_the_credential_of_another() -> None:
    async with ScriptedUpstream(era="modern") as upstream:
        upstream.gate = wall
        rig = Rig(upstream)
        rig.takes_initialize = False
        bad, good = asyncio.create_task(rig.era("Bearer bad")), asyncio.create_task(rig.era("Bearer good"))
        assert await good == "modern"
        with pytest.raises(UpstreamRefused):
            await bad
        await rig.close()


@pytest.mark.parametrize("takes_initialize", [True, False])
async def test_a_server_that_leaves_the_question_unanswered_is_tried_with_initialize(
    upstream: ScriptedUpstream, takes_initialize: bool
) -> None:
    rig = Rig(upstream, timeout_s=0.05)
    rig.takes_initialize = takes_initialize
    upstream.on("server/discover", lambda wire: wire.hang())
    if takes_initialize:
        assert await rig.era() == "legacy"
    else:
        with pytest.raises(UpstreamError, match="did not answer in time") as caught:
            await rig.era()
        assert (caught.value.reason, caught.value.retryable) == ("timeout", True)
    await rig.close()


async def test_a_server_that_hangs_up_on_the_question_is_tried_with_initialize(rig: Rig) -> None:
    async def hang_up(wire: Wire) -> None:
        wire.reset()

    rig.upstream.on("server/discover", hang_up)
    assert await rig.era() == "legacy"
    assert rig.initialized_with == [None]


async def test_a_doubted_verdict_is_asked_for_again_but_not_with_every_request(rig: Rig) -> None:
    assert await rig.era() == "legacy"
    rig.upstream.on("server/discover", lambda wire: wire.error(-32020, status=400))
    assert rig.resolver.doubt()
    assert rig.resolver.known == "legacy"
    assert await rig.era() == "modern"
    assert not rig.resolver.doubt()
    rig.now_s += DOUBT_INTERVAL_S
    assert rig.resolver.doubt()
    assert rig.probes == 2


@pytest.mark.parametrize("answer", [refuse(503), refuse(401), lambda wire: wire.hang()], ids=["503", "401", "silence"])
async def test_what_was_last_known_counts_during_an_outage(upstream: ScriptedUpstream, answer: Any) -> None:
    rig = Rig(upstream, timeout_s=0.5)
    upstream.on("server/discover", lambda wire: wire.message(error_message("era-probe", -32020), 400), times=1)
    upstream.on("server/discover", answer)
    assert await rig.era() == "modern"
    assert rig.resolver.doubt()
    assert await rig.era() == "modern"
    await upstream.stop()
    rig.now_s += DOUBT_INTERVAL_S
    assert rig.resolver.doubt()
    assert await rig.era() == "modern"
    assert rig.initialized_with == []
    await rig.close()


async def test_closing_ends_the_question(rig: Rig) -> None:
    rig.upstream.on("server/discover", lambda wire: wire.hang())
    waiting = asyncio.create_task(rig.era())
    await rig.upstream.seen("server/discover")
    await rig.resolver.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
