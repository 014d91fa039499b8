"""gateway.upstream.modern: requests through to a modern server on a real socket, and their answers back."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Caller
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.http import UpstreamHttp
from gateway.upstream.modern import ModernOptions, ModernUpstream
from tests.support.scripted import ScriptedUpstream, Wire

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CALLER = Caller(ANONYMOUS, "Bearer own")
CHALLENGE = 'Bearer error="insufficient_scope", scope="a b"'


class Client:
    """The client's side: takes notifications down."""

    def __init__(self) -> None:
        self.notifications: list[dict[str, Any]] = []
        self.arrival = asyncio.Event()

    async def notify(self, notification: dict[str, Any]) -> None:
        self.notifications.append(notification)
        self.arrival.set()

    @property
    def methods(self) -> list[str]:
        return [notification["method"] for notification in self.notifications]


class Gateway:
    """A modern upstream as the gateway has it, in front of a scripted server."""

    def __init__(self, url: str, **options: Any) -> None:
        self.http = UpstreamHttp("docs", url, headers={}, connect_timeout_s=5, max_message_bytes=10**6)
        self.client = Client()
        self.doubts = 0
        self.options = ModernOptions(**{"timeout_s": 5.0, **options})
        self.upstream = ModernUpstream(
            self.http,
            credentials=self._credentials,
            seal=lambda request, caller, state: f"{caller.principal.id}:{request.method}:{state}",
            unseal=_unseal,
            doubt=self._doubt,
            options=self.options,
        )

    async def ask(self, method: str = "tools/call", params: Any = None, **members: Any) -> Outcome:
        """Serve one request, by default a call of `echo`."""
        return await self.upstream.serve(request(method, params, **members), CALLER, self.client)

    async def _credentials(self, caller: Caller) -> Mapping[str, str]:
        passes = self.options.passes_authorization and caller.authorization
        return {"Authorization": caller.authorization} if passes and caller.authorization else {}

    def _doubt(self) -> None:
        self.doubts += 1


def _unseal(request: InboundRequest, _caller: Caller) -> str | None:
    if request.request_state == "forged":
        raise ProtocolError(-32602, "Invalid or expired request state")
    return request.request_state and request.request_state.removeprefix("sealed:")


def request(method: str, params: Any, *, capabilities: Any = None, **members: Any) -> InboundRequest:
    about = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": capabilities or {}}
    if "progress_token" in members:
        about["progressToken"] = members["progress_token"]
    if method == "tools/call" and params is None:
        params = {"name": "echo", "arguments": {"text": "hi"}}
    return InboundRequest(7, method, {**(params or {}), "_meta": about}, about, capabilities or {}, **members)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(era="modern") as scripted:
        yield scripted


@pytest.fixture
async def gateway(server: ScriptedUpstream) -> AsyncIterator[Gateway]:
    gateway = Gateway(server.url)
    yield gateway
    await gateway.upstream.close()


# --- through ---


async def test_a_call_goes_through(server: ScriptedUpstream, gateway: Gateway) -> None:
    outcome = await gateway.ask()
    assert outcome.status == 200
    assert outcome.body["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert outcome.body["result"]["_meta"] == {PREFIX + "serverInfo": {"name": "u", "version": "1"}}
    [sent] = server.log
    assert sent.headers["mcp-protocol-version"] == MODERN
    assert (sent.headers["mcp-method"], sent.headers["mcp-name"]) == ("tools/call", "echo")
    assert "authorization" not in sent.headers
    assert "mcp-session-id" not in sent.headers
    assert isinstance(sent.id, str)


async def test_ids_upstream_are_unique_whatever_the_clients_are(server: ScriptedUpstream, gateway: Gateway) -> None:
    await asyncio.gather(*(gateway.ask() for _ in range(10)))
    assert len({sent.id for sent in server.log}) == 10


async def test_the_callers_credential_goes_with_each_request_if_configured(server: ScriptedUpstream) -> None:
    gateway = Gateway(server.url, passes_authorization=True)
    await gateway.ask()
    assert server.log[0].headers["authorization"] == "Bearer own"
    await gateway.upstream.close()


async def test_notifications_are_relayed_as_they_come_and_before_the_result(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    @server.on("tools/call")
    async def work(wire: Wire) -> None:
        token = wire.request.progress_token
        await wire.sse()
        await wire.text(b": ping\n\n")
        await wire.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await go_on.wait()
        await wire.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await wire.notify("notifications/progress", {"progressToken": "other", "progress": 9})
        await wire.notify("notifications/message", {"level": "debug", "data": "no"})
        await wire.notify("notifications/message", {"level": "error", "data": "yes"})
        await wire.notify("notifications/tools/list_changed", {})
        await wire.event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        await wire.end(result={"content": []})

    go_on = asyncio.Event()
    serving = asyncio.create_task(gateway.ask(progress_token="p", log_level="warning"))
    await asyncio.wait_for(gateway.client.arrival.wait(), 5)
    assert gateway.client.notifications == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}
    ]
    go_on.set()
    assert (await serving).body == {"result": {"resultType": "complete", "content": []}}
    assert gateway.client.methods == ["notifications/progress", "notifications/message"]
    assert gateway.client.notifications[1]["params"] == {"level": "error", "data": "yes"}


async def test_a_result_that_is_followed_by_silence_is_passed_on_at_once(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    @server.on("tools/call")
    async def linger(wire: Wire) -> None:
        await wire.sse()
        await wire.event({"jsonrpc": "2.0", "id": wire.request.id, "result": {"content": []}})
        await wire.hang()

    assert (await gateway.ask()).status == 200


async def test_discover_names_the_gateways_versions_and_the_servers_capabilities(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    server.instructions = "be nice"
    result = (await gateway.ask("server/discover")).body["result"]
    assert result["supportedVersions"] == [MODERN]
    assert result["capabilities"] == {"tools": {}}
    assert result["instructions"] == "be nice"


@pytest.mark.parametrize("media_type", ["text/plain", None, "application/json; charset=utf-8"])
async def test_an_odd_media_type_is_no_obstacle(
    server: ScriptedUpstream, gateway: Gateway, media_type: str | None
) -> None:
    server.on("tools/call", lambda wire: wire.result({"content": []}, media_type=media_type))
    assert (await gateway.ask()).status == 200


# --- rounds ---


async def test_a_round_carries_the_gateways_state_out_and_the_servers_back(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    asks = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}, "requestState": "s1"}
    server.on("tools/call", lambda wire: wire.result(asks), times=1)
    first = (await gateway.ask(capabilities={"roots": {}})).body["result"]
    assert first == {**asks, "requestState": "anonymous:tools/call:s1"}
    answers: dict[str, Any] = {"r": {"roots": []}}
    params = {"name": "echo", "arguments": {"text": "hi"}, "inputResponses": answers, "requestState": "sealed:s1"}
    second = await gateway.ask(params=params, input_responses=answers, request_state="sealed:s1")
    assert second.body["result"]["resultType"] == "complete"
    assert server.log[1].params["requestState"] == "s1"
    assert server.log[1].params["inputResponses"] == answers


async def test_a_forged_state_never_reaches_the_server(server: ScriptedUpstream, gateway: Gateway) -> None:
    with pytest.raises(ProtocolError):
        await gateway.ask(params={"name": "echo", "requestState": "forged"}, request_state="forged")
    assert server.log == []


async def test_what_was_not_declared_is_not_asked(server: ScriptedUpstream, gateway: Gateway) -> None:
    asks = {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
    server.on("tools/call", lambda wire: wire.result(asks))
    outcome = await gateway.ask()
    assert (outcome.status, outcome.body["error"]["code"]) == (400, -32021)


# --- result types of extensions ---

CARD = {"resultType": "card", "card": {"n": 1}}
UI = "com.example/ui"


@pytest.mark.parametrize("by_client", [True, False])
@pytest.mark.parametrize("by_server", [True, False])
async def test_a_result_of_an_extension_passes_if_both_sides_declared_it(
    server: ScriptedUpstream, gateway: Gateway, by_client: bool, by_server: bool
) -> None:
    server.capabilities = {"tools": {}, "extensions": {UI: {}} if by_server else {}}
    server.on("tools/call", lambda wire: wire.result(CARD))
    serving = gateway.ask(capabilities={"extensions": {UI: {}} if by_client else {}})
    if by_client and by_server:
        assert (await serving).body["result"] == CARD
    else:
        with pytest.raises(UpstreamError, match="not of 2026-07-28"):
            await serving


# --- errors ---


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [(-32602, 400, 200), (-32603, 500, 200), (-32601, 404, 404), (-32021, 400, 400), (-32020, 400, 400), (7, 200, 200)],
)
async def test_an_error_passes_whatever_status_the_server_gave_it(
    server: ScriptedUpstream, gateway: Gateway, code: int, status: int, expected: int
) -> None:
    server.on("tools/call", lambda wire: wire.error(code, "no", {"k": 1}, status=status))
    outcome = await gateway.ask()
    assert outcome == Outcome({"error": {"code": code, "message": "no", "data": {"k": 1}}}, expected)
    assert gateway.doubts == 0


async def test_an_error_on_a_stream_passes(server: ScriptedUpstream, gateway: Gateway) -> None:
    @server.on("tools/call")
    async def fail(wire: Wire) -> None:
        await wire.sse()
        await wire.end(error={"code": -32603, "message": "no"})

    assert (await gateway.ask()).body == {"error": {"code": -32603, "message": "no"}}


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_credential_of_the_caller_is_told_with_its_challenge(
    server: ScriptedUpstream, status: int
) -> None:
    gateway = Gateway(server.url, passes_authorization=True)
    server.on("tools/call", lambda wire: wire.reply(status, headers={"WWW-Authenticate": CHALLENGE}))
    outcome = await gateway.ask()
    assert (outcome.status, outcome.headers) == (status, (("www-authenticate", CHALLENGE),))
    await gateway.upstream.close()


async def test_a_403_with_an_error_of_its_own_keeps_both(server: ScriptedUpstream) -> None:
    gateway = Gateway(server.url, passes_authorization=True)
    headers = {"WWW-Authenticate": CHALLENGE}
    server.on("tools/call", lambda wire: wire.error(-32003, "not you", status=403, headers=headers))
    outcome = await gateway.ask()
    assert (outcome.status, outcome.body["error"]["code"]) == (403, -32003)
    assert outcome.headers == (("www-authenticate", CHALLENGE),)
    await gateway.upstream.close()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_credential_of_the_gateway_is_no_fault_of_the_client(
    server: ScriptedUpstream, gateway: Gateway, status: int
) -> None:
    server.on("tools/call", lambda wire: wire.reply(status, headers={"WWW-Authenticate": CHALLENGE}))
    with pytest.raises(UpstreamError) as caught:
        await gateway.ask()
    assert caught.value.reason == "unauthorized"
    assert "insufficient_scope" not in str(caught.value)


REFUSALS: dict[str, Any] = {
    "400 without a message": lambda wire: wire.reply(400, b"Missing session", "text/plain"),
    "400, id null": lambda wire: wire.error(-32000, status=400, id=None),
    "400, -32600": lambda wire: wire.error(-32600, status=400),
    "404": lambda wire: wire.reply(404),
    "405": lambda wire: wire.reply(405),
    "-32022": lambda wire: wire.error(-32022, data={"supported": ["2025-11-25"], "requested": MODERN}, status=400),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_server_that_is_not_modern_any_more_is_doubted(
    server: ScriptedUpstream, gateway: Gateway, case: str
) -> None:
    server.on("tools/call", REFUSALS[case])
    with pytest.raises(UpstreamError, match="as a server of another era") as caught:
        await gateway.ask()
    assert caught.value.reason == "nonsense"
    assert gateway.doubts == 1


async def test_a_discover_result_without_the_revision_is_doubted(server: ScriptedUpstream, gateway: Gateway) -> None:
    server.on("server/discover", lambda wire: wire.result({"supportedVersions": ["2025-11-25"]}))
    with pytest.raises(UpstreamError, match="no longer speaks"):
        await gateway.ask("server/discover")
    assert gateway.doubts == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda wire: wire.reply(200, b"<html>", "text/html"), "nonsense"),
        (lambda wire: wire.reply(202), "nonsense"),
        (lambda wire: wire.reply(200, b"{", "application/json"), "nonsense"),
        (lambda wire: wire.message([]), "nonsense"),
        (lambda wire: wire.message({"jsonrpc": "2.0", "id": "other", "result": {}}), "nonsense"),
        (lambda wire: wire.result([]), "nonsense"),
        (lambda wire: wire.reply(200, b"data: {\n\n", "text/event-stream"), "nonsense"),
        (lambda wire: wire.reply(200, b": nothing\n\n", "text/event-stream"), "outcome_unknown"),
        (lambda wire: wire.reply(500, b"oops", "text/plain"), "nonsense"),
        (lambda wire: wire.reply(502), "nonsense"),
        (lambda wire: wire.reply(503), "full"),
        (lambda wire: wire.reply(429), "full"),
        (lambda wire: wire.reply(504), "timeout"),
    ],
)
async def test_what_is_no_answer_is_said_to_be_none(
    server: ScriptedUpstream, gateway: Gateway, answer: Any, reason: str
) -> None:
    server.on("tools/call", answer)
    with pytest.raises(UpstreamError, match="'docs'") as caught:
        await gateway.ask()
    assert caught.value.reason == reason
    assert gateway.doubts == 0
    assert len(server.log) == 1


async def test_a_stream_that_breaks_has_lost_its_request(server: ScriptedUpstream, gateway: Gateway) -> None:
    @server.on("tools/call")
    async def break_off(wire: Wire) -> None:
        await wire.sse()
        await wire.text(b"id: e1\nretry: 1\ndata:\n\n")
        wire.reset()

    with pytest.raises(UpstreamError) as caught:
        await gateway.ask()
    assert (caught.value.reason, caught.value.retryable) == ("outcome_unknown", False)
    assert server.methods() == ["tools/call"]


# --- overload ---


async def test_a_look_that_was_turned_away_for_the_moment_is_repeated_once(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    server.on("tools/list", lambda wire: wire.reply(503, headers={"Retry-After": "0"}), times=1)
    assert (await gateway.ask("tools/list")).status == 200
    server.on("tools/list", lambda wire: wire.reply(429, headers={"Retry-After": "0"}))
    with pytest.raises(UpstreamError) as caught:
        await gateway.ask("tools/list")
    assert caught.value.reason == "full"
    assert len(server.log) == 4


async def test_a_call_is_not_repeated_and_its_client_told_when_to_come_back(
    server: ScriptedUpstream, gateway: Gateway
) -> None:
    server.on("tools/call", lambda wire: wire.reply(503, headers={"Retry-After": "9"}))
    with pytest.raises(UpstreamError) as caught:
        await gateway.ask()
    assert (caught.value.retry_after_s, caught.value.retryable) == (9, True)
    assert len(server.log) == 1


async def test_a_pause_longer_than_the_timeout_is_not_waited_for(server: ScriptedUpstream, gateway: Gateway) -> None:
    server.on("tools/list", lambda wire: wire.reply(503, headers={"Retry-After": "3600"}))
    with pytest.raises(UpstreamError):
        await gateway.ask("tools/list")
    assert len(server.log) == 1


# --- limits ---


@pytest.mark.parametrize("begins", [True, False])
async def test_a_silent_server_is_given_up(server: ScriptedUpstream, begins: bool) -> None:
    @server.on("tools/call")
    async def be_silent(wire: Wire) -> None:
        gone.append(wire.gone)
        if begins:
            await wire.sse()
        await wire.hang()

    gone: list[asyncio.Event] = []
    gateway = Gateway(server.url, timeout_s=0.1)
    with pytest.raises(UpstreamError, match=r"was silent for 0\.1 s") as caught:
        await gateway.ask()
    assert (caught.value.reason, caught.value.retryable) == ("timeout", False)
    await asyncio.wait_for(gone[0].wait(), 5)
    await gateway.upstream.close()


async def test_progress_keeps_a_call_alive_up_to_its_longest_duration(server: ScriptedUpstream) -> None:
    @server.on("tools/call")
    async def progress_for_ever(wire: Wire) -> None:
        await wire.sse()
        step = 0
        while not wire.gone.is_set():
            step += 1
            params = {"progressToken": wire.request.progress_token, "progress": step}
            await wire.notify("notifications/progress", params)
            await asyncio.sleep(0.02)
        await wire.end()

    gateway = Gateway(server.url, timeout_s=1.0, max_duration_s=1.2)
    with pytest.raises(UpstreamError, match=r"did not finish within 1\.2 s"):
        await gateway.ask(progress_token=1)
    assert len(gateway.client.notifications) > 1
    await gateway.upstream.close()


async def test_a_client_that_reads_slowly_is_no_silence_of_the_server(server: ScriptedUpstream) -> None:
    class SlowClient(Client):
        async def notify(self, notification: dict[str, Any]) -> None:
            await asyncio.sleep(1.0)  # longer than the server may be silent
            await super().notify(notification)

    @server.on("tools/call")
    async def work(wire: Wire) -> None:
        await wire.sse()
        await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
        await wire.end(result={"content": []})

    gateway = Gateway(server.url, timeout_s=0.8)
    gateway.client = SlowClient()
    assert (await gateway.ask(progress_token=1)).status == 200
    await gateway.upstream.close()


@pytest.mark.parametrize("begins", [True, False])
async def test_a_client_that_leaves_cancels_the_call_at_the_server(
    server: ScriptedUpstream, gateway: Gateway, begins: bool
) -> None:
    @server.on("tools/call")
    async def work(wire: Wire) -> None:
        gone.append(wire.gone)
        if begins:
            await wire.sse()
            await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
        await wire.hang()

    gone: list[asyncio.Event] = []
    serving = asyncio.create_task(gateway.ask(progress_token=1))
    await server.seen("tools/call")
    if begins:
        await asyncio.wait_for(gateway.client.arrival.wait(), 5)
    serving.cancel()
    await asyncio.wait([serving])
    await asyncio.wait_for(gone[0].wait(), 5)
    assert server.methods() == ["tools/call"]


# --- subscriptions ---


def tagged(subscription: Any, **params: Any) -> dict[str, Any]:
    return {**params, "_meta": {PREFIX + "subscriptionId": subscription}}


async def test_a_subscription_streams_under_the_clients_id_for_as_long_as_it_lasts(server: ScriptedUpstream) -> None:
    @server.on("subscriptions/listen")
    async def listen(wire: Wire) -> None:
        own = wire.request.id
        await wire.sse()
        await wire.notify(
            "notifications/subscriptions/acknowledged", tagged(own, notifications={"toolsListChanged": True})
        )
        await asyncio.sleep(1.0)  # longer than either limit of a call
        await wire.notify("notifications/tools/list_changed", tagged(own))
        await wire.notify("notifications/progress", {"progressToken": own, "progress": 1})
        await wire.notify("notifications/cancelled", {"requestId": own})
        await wire.end(result={"resultType": "complete", **tagged(own)})

    gateway = Gateway(server.url, timeout_s=0.8, max_duration_s=0.8)
    outcome = await gateway.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert outcome.body == {"result": {"resultType": "complete", **tagged(7)}}
    assert [(seen["method"], seen["params"]) for seen in gateway.client.notifications] == [
        ("notifications/subscriptions/acknowledged", tagged(7, notifications={"toolsListChanged": True})),
        ("notifications/tools/list_changed", tagged(7)),
        ("notifications/cancelled", {"requestId": 7}),
    ]
    await gateway.upstream.close()


async def test_a_subscription_that_is_not_acknowledged_in_time_is_given_up(server: ScriptedUpstream) -> None:
    gateway = Gateway(server.url, timeout_s=0.1)
    server.on("subscriptions/listen", lambda wire: wire.hang())
    with pytest.raises(UpstreamError, match="was silent"):
        await gateway.ask("subscriptions/listen", {"notifications": {}})
    await gateway.upstream.close()


async def test_a_server_without_subscriptions_says_so(gateway: Gateway) -> None:
    outcome = await gateway.ask("subscriptions/listen", {"notifications": {}})
    assert (outcome.status, outcome.body["error"]["code"]) == (404, -32601)
