"""A legacy server that wants a page visited first (-32042): a round, and then a new call."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, PAGE, offer_tools
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway


@pytest.fixture(params=[True, False], ids=["correlated", "uncorrelated"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[AskingServer]:
    async with AskingServer(correlated=request.param) as server:
        yield offer_tools(server)


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server) as gateway:
        yield gateway
        await gateway.until_idle()
    assert not server.sessions
    assert not server.running


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url) as client:
        yield client


class Toll:
    """A tool that fails with -32042 until the page was visited."""

    def __init__(self, *pages: JsonObject) -> None:
        self.is_paid = False
        self.pages = pages or (PAGE,)

    async def __call__(self, _call: Call) -> Any:
        if not self.is_paid:
            raise RpcError(-32042, "Open a page first", {"elicitations": list(self.pages)})
        return "paid"


ACCEPTED: JsonObject = {"elicitation_1": {"action": "accept"}}


async def test_a_page_to_visit_first_is_a_round_and_then_a_new_call(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = toll = Toll()
    asked = await client.call("pay", {"key": "k"})
    question = {key: value for key, value in PAGE.items() if key != "elicitationId"}
    assert asked.questions == {"elicitation_1": {"method": ELICIT, "params": question}}
    again = await client.call("pay", {"key": "k"}, answers=ACCEPTED, state=asked.state)
    assert list(again.questions) == ["elicitation_1"]
    toll.is_paid = True
    assert (await client.call("pay", {"key": "k"}, answers=ACCEPTED, state=again.state)).text == "paid"
    assert server.executions == {"k": 3}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_page_that_the_user_will_not_visit_ends_the_call(
    server: AskingServer, client: RoundClient, action: str
) -> None:
    server.tools["pay"] = Toll()
    asked = await client.call("pay")
    declined = await client.call("pay", answers={"elicitation_1": {"action": action}}, state=asked.state)
    assert declined.result["isError"] is True
    assert server.executions == {"pay": 1}


async def test_several_pages_must_all_be_visited(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = toll = Toll(PAGE, {**PAGE, "url": "https://two.test/"})
    asked = await client.call("pay")
    again = await client.call("pay", answers=ACCEPTED, state=asked.state)
    assert list(again.questions) == ["elicitation_2"]
    assert server.executions == {"pay": 1}
    toll.is_paid = True
    done = await client.call("pay", answers={"elicitation_2": {"action": "accept"}}, state=again.state)
    assert done.text == "paid"


async def test_the_token_of_a_page_is_good_for_one_use_and_one_request(
    server: AskingServer, client: RoundClient
) -> None:
    server.tools["pay"] = server.tools["other"] = toll = Toll()
    asked = await client.call("pay")
    assert (await client.call("other", answers=ACCEPTED, state=asked.state)).status == 400
    toll.is_paid = True
    assert (await client.call("pay", answers=ACCEPTED, state=asked.state)).text == "paid"
    assert (await client.call("pay", answers=ACCEPTED, state=asked.state)).status == 400
    assert server.executions == {"pay": 2}


async def test_a_page_for_a_client_that_cannot_show_one(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = Toll()
    kinds: list[JsonObject] = [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}]
    for declared in kinds:
        refused = await client.call("pay", capabilities=declared)
        assert (refused.status, refused.error["code"]) == (400, -32021)
        assert refused.error["data"] == {"requiredCapabilities": {"elicitation": {"url": {}}}}


async def test_prompts_and_resources_may_require_a_page(server: AskingServer, client: RoundClient) -> None:
    server.prompts["greet"] = server.resources["doc://1"] = Toll()
    for method, target in (("prompts/get", "greet"), ("resources/read", "doc://1")):
        asked = await client.request(method, target)
        declined = await client.request(
            method, target, answers={"elicitation_1": {"action": "decline"}}, state=asked.state
        )
        assert declined.error["code"] == -32602
