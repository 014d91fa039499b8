from typing import Any

import pytest

from gateway.core.offering import Offer, Patterns
from gateway.core.outcome import Outcome
from gateway.errors import ProtocolError
from gateway.upstream.contexts import Deaf
from gateway.upstream.offering import OfferedUpstream
from gateway.wire.jsonrpc import JsonObject
from tests.support.fake_upstream import NOBODY, FakeUpstream, request

CALL, GET, READ, COMPLETE, LISTEN = (
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
)
OFFER = Offer(
    Patterns(exclude=["drop_*"]),
    Patterns(["greet"]),
    Patterns(["file:///docs/*"]),
    rename={"search": "find"},
    describe={"search": "Ours"},
)


def complete(**reference: str) -> dict[str, Any]:
    return {"ref": reference, "argument": {"name": "a", "value": ""}}


class Hearing:
    """A client that remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[JsonObject] = []

    async def notify(self, notification: JsonObject) -> None:
        self.heard.append(notification)


@pytest.fixture
def upstream() -> FakeUpstream:
    upstream = FakeUpstream("a", tools=["search", "drop_all", "x"], prompts=["greet", "other"])
    for method in (CALL, GET, READ, COMPLETE, LISTEN, "server/discover"):
        upstream.answers[method] = lambda _request: Outcome.of_result({"resultType": "complete"})
    return upstream


async def ask(upstream: FakeUpstream, method: str, params: Any = None) -> Outcome:
    return await OfferedUpstream(upstream, OFFER).serve(request(method, params), NOBODY, Deaf())


async def test_lists_hold_what_is_offered(upstream: FakeUpstream) -> None:
    tools = (await ask(upstream, "tools/list")).body["result"]["tools"]
    assert [(tool["name"], tool.get("description")) for tool in tools] == [("find", "Ours"), ("x", None)]
    prompts = (await ask(upstream, "prompts/list")).body["result"]["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["greet"]


@pytest.mark.parametrize(
    ("method", "params", "data"),
    [
        (CALL, {"name": "drop_all"}, {"name": "drop_all"}),
        (CALL, {"name": "search"}, {"name": "search"}),
        (GET, {"name": "other"}, {"name": "other"}),
        (READ, {"uri": "file:///etc/passwd"}, {"uri": "file:///etc/passwd"}),
        (READ, {"uri": "file:///docs/../etc/passwd"}, {"uri": "file:///docs/../etc/passwd"}),
        (READ, {"uri": "file:///docs/{x}/%2e%2e/%2e%2e/etc"}, {"uri": "file:///docs/{x}/%2e%2e/%2e%2e/etc"}),
        (COMPLETE, complete(type="ref/prompt", name="other"), {"name": "other"}),
        (COMPLETE, complete(type="ref/resource", uri="file:///etc/{name}"), {"uri": "file:///etc/{name}"}),
        (COMPLETE, complete(type="ref/resource", uri="file:///docs/../x"), {"uri": "file:///docs/../x"}),
    ],
)
async def test_what_is_not_offered_is_unknown_and_never_reaches_the_server(
    upstream: FakeUpstream, method: str, params: Any, data: Any
) -> None:
    with pytest.raises(ProtocolError, match="Unknown") as refused:
        await ask(upstream, method, params)
    assert (refused.value.code, refused.value.data, refused.value.status) == (-32602, data, 200)
    assert not upstream.asked


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (CALL, {"name": "x", "arguments": {}}),
        (CALL, {"name": "not_listed"}),
        (GET, {"name": "greet"}),
        (READ, {"uri": "file:///docs/a"}),
        (COMPLETE, complete(type="ref/prompt", name="greet")),
        (COMPLETE, complete(type="ref/resource", uri="file:///docs/{+path}")),
        ("server/discover", {}),
    ],
)
async def test_what_is_offered_passes_as_it_is(upstream: FakeUpstream, method: str, params: Any) -> None:
    await ask(upstream, method, params)
    assert upstream.asked == [request(method, params)]


async def test_a_renamed_tool_is_called_by_its_own_name(upstream: FakeUpstream) -> None:
    upstream.answers[CALL] = lambda _request: Outcome({"error": {"code": -32602, "data": {"name": "search"}}})
    outcome = await ask(upstream, CALL, {"name": "find", "arguments": {"q": 1}})
    (asked,) = upstream.asked
    assert (asked.params["name"], asked.target, asked.params["arguments"]) == ("search", "search", {"q": 1})
    assert outcome.body["error"]["data"] == {"name": "find"}


async def test_an_error_in_place_of_a_list_passes(upstream: FakeUpstream) -> None:
    upstream.answers["tools/list"] = lambda _request: Outcome({"error": {"code": -32603, "message": "no"}})
    assert "error" in (await ask(upstream, "tools/list")).body


async def test_only_what_is_offered_is_listened_to(upstream: FakeUpstream) -> None:
    wanted = {
        "toolsListChanged": True,
        "resourceSubscriptions": ["file:///docs/a", "file:///etc/b", "file:///docs/../etc/b"],
    }
    await ask(upstream, LISTEN, {"notifications": wanted})
    assert upstream.asked[0].params["notifications"] == {
        "toolsListChanged": True,
        "resourceSubscriptions": ["file:///docs/a"],
    }


async def test_a_server_that_tells_of_more_is_not_heard(upstream: FakeUpstream) -> None:
    told = [
        {"method": "notifications/tools/list_changed"},
        {"method": "notifications/resources/updated", "params": {"uri": "file:///docs/a"}},
        {"method": "notifications/resources/updated", "params": {"uri": "file:///docs/../etc/b"}},
    ]

    class Telling(FakeUpstream):
        async def serve(self, request: Any, caller: Any, client: Any) -> Outcome:
            for message in told:
                await client.notify(message)
            return await super().serve(request, caller, client)

    telling, client = Telling("a"), Hearing()
    telling.answers = upstream.answers
    wanted = request(LISTEN, {"notifications": {"toolsListChanged": True}})
    await OfferedUpstream(telling, OFFER).serve(wanted, NOBODY, client)
    assert client.heard == told[:2]


def test_it_is_the_same_upstream_otherwise(upstream: FakeUpstream) -> None:
    offered = OfferedUpstream(upstream, OFFER)
    assert offered.name == "a"
    assert offered.admits(NOBODY.principal)
    assert offered.owner(NOBODY) == upstream.owner(NOBODY)
