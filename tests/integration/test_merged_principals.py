"""Several users behind one endpoint: each sees the upstreams that it may use, and nothing of what others were told."""

from typing import Any

from tests.support.asking_server import AskingServer
from tests.support.asking_tools import filled, offer_tools
from tests.support.merged import as_user, merged, names, users
from tests.support.messages import good_request
from tests.support.offering_server import OfferingUpstream
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway

USERS = users(alice=["one"], bob=["two"], carol=None, dave=[])


def upstreams() -> tuple[OfferingUpstream, OfferingUpstream]:
    return (
        OfferingUpstream("one", tools=["x"], prompts=["p"], resources=["a:1"], templates=["a:{id}"]),
        OfferingUpstream("two", tools=["x"], prompts=["p"], resources=["b:1"], templates=["b:{id}"]),
    )


async def test_a_user_sees_its_own_upstreams_only() -> None:
    one, two = upstreams()
    one.instructions = two.instructions = "Hello."
    async with merged(one, two, settings={"auth": USERS}) as front:
        seen = {user: names(await front.ask("tools/list", headers=as_user(user))) for user in ("alice", "bob", "carol")}
        assert seen == {"alice": ["one__x"], "bob": ["two__x"], "carol": ["one__x", "two__x"]}
        instructions = [
            (await front.ask("server/discover", headers=as_user(user))).result["instructions"]
            for user in ("alice", "carol")
        ]
        assert instructions == ["# one\n\nHello.", "# one\n\nHello.\n\n# two\n\nHello."]
        headers, body = good_request("tools/list", headers=as_user("dave"))
        assert (await front.http.post(f"{front.url}/mcp", content=body, headers=headers)).status_code == 403


async def test_what_a_user_may_not_use_is_unknown_to_it_and_never_asked() -> None:
    one, two = upstreams()
    two.unlisted = {"c:1"}
    async with merged(one, two, settings={"auth": USERS}) as front:
        asked: list[tuple[str, Any]] = [
            ("tools/call", {"name": "two__x"}),
            ("prompts/get", {"name": "two__p"}),
            ("resources/read", {"uri": "b:1"}),
            ("resources/read", {"uri": "c:1"}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "two__p"}, "argument": {"name": "a", "value": ""}},
            ),
            (
                "completion/complete",
                {"ref": {"type": "ref/resource", "uri": "b:{id}"}, "argument": {"name": "a", "value": ""}},
            ),
        ]
        for method, params in asked:
            answer = await front.ask(method, params, headers=as_user("alice"))
            assert (answer.status, answer.error["code"]) == (200, -32602)
            assert answer.error["message"].startswith("Unknown ")
    assert not two.log


async def test_what_one_user_learned_is_not_told_to_another() -> None:
    """Who has a name or a resource is found out for each user, though they ask for the same."""
    one, two = upstreams()
    one.unlisted = two.unlisted = {"c:1"}
    async with merged(one, two, settings={"auth": USERS, "prefix": "never"}) as front:
        for user, owner in (("carol", "one"), ("bob", "two"), ("alice", "one"), ("bob", "two")):
            assert (await front.call(tool="x", headers=as_user(user))).text == f"x@{owner}"
            contents = (await front.ask("resources/read", {"uri": "c:1"}, headers=as_user(user))).result["contents"]
            assert contents[0]["text"] == f"c:1@{owner}"


async def test_a_list_that_differs_from_user_to_user_is_never_public() -> None:
    one, two = upstreams()
    settings = {"auth": USERS, "cache": {"ttl": "1m", "scope": "public"}}
    async with merged(one, two, settings=settings) as front:
        for user, expected in (("carol", 2), ("alice", 1), ("bob", 1)):
            answer = await front.ask("tools/list", headers=as_user(user))
            assert (len(names(answer)), answer.result["cacheScope"]) == (expected, "private")
        assert 0 < answer.result["ttlMs"] <= 60_000
        assert (len(one.received("tools/list")), len(two.received("tools/list"))) == (1, 1)


async def test_credentials_that_are_passed_on_keep_their_lists_apart() -> None:
    one, two = upstreams()
    settings = {"cache": {"ttl": "1m", "scope": "public"}, "prefix": "never"}
    async with merged(one, two, settings=settings, auth={"type": "passthrough"}) as front:
        for token in ("first", "second", "first"):
            await front.ask("tools/list", headers={"Authorization": f"Bearer {token}"})
    assert [received.headers["authorization"] for received in one.received("tools/list")] == [
        "Bearer first",
        "Bearer second",
    ]


async def test_a_401_of_one_upstream_is_no_reason_to_hide_the_others_nor_to_show_what_it_said_before() -> None:
    one, two = upstreams()
    async with merged(one, two, each={"two": {"auth": {"type": "passthrough"}}}) as front:
        token = {"Authorization": "Bearer t"}
        assert names(await front.ask("tools/list", headers=token)) == ["one__x", "two__x"]

        async def refuse(wire: Any) -> None:
            wire.extra_headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            await wire.reply(401)

        two.gate = refuse
        answer = await front.ask("tools/list", headers=token)
        assert names(answer) == ["one__x"]
        assert answer.result["_meta"]["era-gateway/unavailable"] == ["two"]
        called = await front.call(tool="two__x", headers=token)
        assert (called.status, called.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"')


async def test_a_round_of_one_user_is_of_no_use_to_another() -> None:
    async with AskingServer() as one, AskingServer() as two:
        servers = {
            name: {"url": offer_tools(server).url, "era": "legacy"} for name, server in (("one", one), ("two", two))
        }
        auth = users(alice=None, bob=None)
        async with running_gateway(upstreams=servers, auth=auth) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("two__book", {"key": "k"}, key="alice")
            answers = {"elicitation_1": filled("Ada")}
            stolen = await client.call("two__book", {"key": "k"}, answers=answers, state=asked.state, key="bob")
            assert stolen.error["code"] == -32602
            done = await client.call("two__book", {"key": "k"}, answers=answers, state=asked.state, key="alice")
            assert done.text == "Ada"
            await gateway.until_idle()
