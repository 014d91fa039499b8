"""Replicas die between the rounds of calls on servers of the official SDKs, and the calls go on, each executed once."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.core.claims import Claim
from tests.support.mortal import Mortal, mortal
from tests.support.processes import legacy_python, legacy_typescript
from tests.support.round_client import Reply, RoundClient, notified

pytestmark = pytest.mark.contract

SERVERS = {
    "python": lambda: legacy_python("--event-store"),
    "python, questions on the session's own stream": lambda: legacy_python("--event-store", "--uncorrelated"),
    "typescript": lambda: legacy_typescript("--event-store"),
}
PATIENT = {"gather": "100ms", "gather_max": "300ms"}
FIVE = "ask_five"


@pytest.fixture(params=SERVERS)
async def replicas(request: pytest.FixtureRequest) -> AsyncIterator[list[Mortal]]:
    with SERVERS[request.param]() as server:
        async with mortal(server.url, count=6, rounds=PATIENT) as replicas:
            yield replicas


async def executions(client: RoundClient, tool: str) -> Any:
    """How often a tool was started, and finished."""
    counts = json.loads((await client.call("count_executions")).text)
    return counts["started"][tool], counts["finished"][tool]


def answers_to(reply: Reply, text: str) -> dict[str, Any]:
    """Every field of every form filled with one text."""
    return {
        name: {
            "action": "accept",
            "content": dict.fromkeys(question["params"]["requestedSchema"]["properties"], text),
        }
        for name, question in reply.questions.items()
    }


async def test_a_call_of_five_rounds_outlives_five_replicas(replicas: list[Mortal]) -> None:
    async with RoundClient(replicas[0].url) as client:
        reply = await client.call(FIVE, url=replicas[0].url)
        heard = []
        for number in range(5):
            await replicas[number].die()
            reply = await client.call(
                FIVE,
                answers=answers_to(reply, f"line {number + 1}"),
                state=reply.state,
                meta=notified(progress=number),
                url=replicas[number + 1].url,
            )
            heard += [message["params"]["progress"] for message in reply.notifications]
        assert reply.text == "line 1 / line 2 / line 3 / line 4 / line 5"
        assert heard == [1, 2, 3, 4, 5]
        client.url = replicas[5].url
        assert await executions(client, FIVE) == (1, 1)


async def test_several_questions_at_once_are_answered_at_another_replica(replicas: list[Mortal]) -> None:
    async with RoundClient(replicas[1].url) as client:
        asked = await client.call("ask_many", url=replicas[0].url)
        assert len(asked.questions) == 3
        await replicas[0].die()
        done = await client.call("ask_many", answers=answers_to(asked, "so"), state=asked.state)
        assert done.text == "so so so"
        assert await executions(client, "ask_many") == (1, 1)


async def test_a_stream_that_begins_with_an_empty_event_does_not_look_as_if_the_server_had_gone_on(
    replicas: list[Mortal],
) -> None:
    """The replica died before it had delivered the answers, and nobody can know."""
    one, other, *_ = replicas
    async with RoundClient(other.url) as client:
        asked = await client.call("test_input_required_result_elicitation", url=one.url)
        (handle,) = one.rounds._entries
        one.board.claims[handle] = Claim(one.rounds.owner)
        await one.die()
        answers = answers_to(asked, "Ada")
        done = await client.call("test_input_required_result_elicitation", answers=answers, state=asked.state)
        assert done.text == "Hello, Ada!"
