"""Rounds end to end, on real sockets: a legacy server's question as its modern client sees it, and the answer back."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import (
    CANCELLED,
    DECLINED,
    ELICIT,
    FOLDERS,
    FORM,
    PAGE,
    PROMPT,
    ROOTS,
    SAID,
    SAMPLE,
    filled,
    offer_tools,
)
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

KINDS: dict[str, dict[str, Any]] = {
    "correlated": {},
    "correlated, event ids": {"event_ids": True},
    "uncorrelated": {"correlated": False},
    "uncorrelated, event ids": {"correlated": False, "event_ids": True},
    "json": {"json_replies": True},
    "2025-06-18": {"version": "2025-06-18"},
    "2025-03-26, uncorrelated": {"version": "2025-03-26", "correlated": False},
}


@pytest.fixture(params=list(KINDS))
async def any_server(request: pytest.FixtureRequest) -> AsyncIterator[AskingServer]:
    async with AskingServer(**KINDS[request.param]) as server:
        yield offer_tools(server)


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server) as gateway:
        yield gateway
        await gateway.until_at_rest()
        assert not server.unheard
    assert not server.sessions


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url) as client:
        yield client


# --- every kind of server ---


async def test_every_kind_of_server_is_bridged(any_server: AskingServer) -> None:
    async with running_gateway(any_server) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("book", {"key": "a"})
        assert asked.questions == {"elicitation_1": {"method": ELICIT, "params": FORM}}
        done = await client.call("book", {"key": "a"}, answers={"elicitation_1": filled("Ada")}, state=asked.state)
        assert done.text == "Ada"

        asked = await client.call("in_turn", {"key": "b", "count": 5})
        for number in range(1, 6):
            answers = {f"elicitation_{number}": filled(f"n{number}")}
            assert list(asked.questions) == list(answers)
            asked = await client.call("in_turn", {"key": "b", "count": 5}, answers=answers, state=asked.state)
        assert asked.text == "n1,n2,n3,n4,n5"

        asked = await client.call("mixed", {"key": "c"})
        assert set(asked.questions) == {"elicitation_1", "sampling_1", "roots_1"}
        answers = {"elicitation_1": filled("Ada"), "sampling_1": SAID, "roots_1": FOLDERS}
        done = await client.call("mixed", {"key": "c"}, answers=answers, state=asked.state)
        assert done.text == "Ada Hello file:///srv"
        assert any_server.executions == {"a": 1, "b": 1, "c": 1}
        assert all(answer.was_awaited for answer in any_server.answers)
        assert not any_server.unheard
        await gateway.until_idle()
    assert not any_server.sessions
    assert not any_server.running


async def test_a_question_is_heard_on_a_cold_start(any_server: AskingServer) -> None:
    """Milliseconds after the call, on a stream that must be open by then: no question is lost, on no new session."""
    async with running_gateway(any_server, upstream={"sessions": {"reuse": "none"}}) as gateway:
        async with RoundClient(gateway.url) as client:
            for number in range(20):
                asked = await client.call("book", {"key": number})
                answers = {"elicitation_1": filled("Ada")}
                assert (await client.call("book", {"key": number}, answers=answers, state=asked.state)).text == "Ada"
        await gateway.until_idle()
    assert not any_server.unheard
    assert len(any_server.deleted) == 20


# --- what the two sides see ---


async def test_a_round_is_a_complete_response_and_the_call_is_made_once(
    server: AskingServer, client: RoundClient
) -> None:
    asked = await client.call("book", {"key": "k"})
    assert (asked.status, asked.headers["Content-Type"]) == (200, "application/json")
    assert set(asked.result) == {"resultType", "inputRequests", "requestState", "_meta"}
    done = await client.call("book", {"key": "k"}, answers={"elicitation_1": filled("Ada")}, state=asked.state)
    assert done.result["resultType"] == "complete"
    assert server.executions == {"k": 1}
    (answer,) = server.answers
    assert (answer.id, answer.body) == (0, {"result": filled("Ada")})


async def test_the_server_gets_its_own_ids_back_with_their_types(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def trip(call: Call) -> str:
        form = await call.ask(ELICIT, FORM, request_id="e-1")
        await call.ask(SAMPLE, PROMPT, request_id=7)
        await call.ask(ROOTS, request_id="r")
        return f"done:{form['content']['name']}"

    reply = await client.call("trip")
    for question, answer in (("e-1", filled("Ada")), ("sampling_1", SAID), ("r", FOLDERS)):
        assert list(reply.questions) == [question]
        reply = await client.call("trip", answers={question: answer}, state=reply.state)
    assert reply.text == "done:Ada"
    assert [(answer.id, type(answer.id)) for answer in server.answers] == [("e-1", str), (7, int), ("r", str)]
    assert server.executions == {"trip": 1}


@pytest.mark.parametrize("answer", [DECLINED, CANCELLED])
async def test_declining_and_cancelling_reach_the_server_as_they_are(
    server: AskingServer, client: RoundClient, answer: Any
) -> None:
    asked = await client.call("book", {"key": "k"})
    done = await client.call("book", {"key": "k"}, answers={"elicitation_1": answer}, state=asked.state)
    assert done.text == answer["action"]
    assert server.answers[0].body == {"result": answer}


async def test_a_page_to_visit_loses_only_what_2026_does_not_have(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def pay(call: Call) -> str:
        return str((await call.ask(ELICIT, PAGE))["action"])

    asked = await client.call("pay")
    (question,) = asked.questions.values()
    assert question["params"] == {key: value for key, value in PAGE.items() if key != "elicitationId"}
    done = await client.call("pay", answers={"elicitation_1": {"action": "accept"}}, state=asked.state)
    assert done.text == "accept"


async def test_prompts_and_resources_may_ask_too(server: AskingServer, client: RoundClient) -> None:
    async def greet(call: Call) -> Any:
        said = await call.ask(SAMPLE, PROMPT)
        return {"messages": [{"role": "user", "content": said["content"]}]}

    async def read(call: Call) -> Any:
        roots = await call.ask(ROOTS)
        return {"contents": [{"uri": call.name, "text": roots["roots"][0]["uri"]}]}

    server.prompts["greet"] = greet
    server.resources["doc://1"] = read
    asked = await client.request("prompts/get", "greet")
    done = await client.request("prompts/get", "greet", answers={"sampling_1": SAID}, state=asked.state)
    assert done.result["messages"][0]["content"]["text"] == "Hello"
    asked = await client.request("resources/read", "doc://1")
    done = await client.request("resources/read", "doc://1", answers={"roots_1": FOLDERS}, state=asked.state)
    assert done.result["contents"][0]["text"] == "file:///srv"
    assert (done.result["ttlMs"], done.result["cacheScope"]) == (0, "private")
    assert server.executions == {"greet": 1, "doc://1": 1}


async def test_the_operator_names_the_questions_of_a_tool(server: AskingServer) -> None:
    names = {"at_once": ["owner"]}
    async with running_gateway(server, rounds={"names": names}) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("at_once", {"count": 2})
        assert list(asked.questions) == ["owner", "elicitation_1"]


# --- answers ---


async def test_missing_answers_are_asked_for_again_with_another_token(
    server: AskingServer, client: RoundClient
) -> None:
    arguments = {"key": "k", "count": 3}
    asked = await client.call("at_once", arguments)
    assert list(asked.questions) == ["elicitation_1", "elicitation_2", "elicitation_3"]
    again = await client.call("at_once", arguments, answers={"elicitation_2": filled("Bob")}, state=asked.state)
    assert list(again.questions) == ["elicitation_1", "elicitation_3"]
    assert again.state != asked.state
    await server.until(lambda: len(server.answers) == 1)
    answers = {"elicitation_1": filled("Ada"), "elicitation_3": filled("Cyd")}
    done = await client.call("at_once", arguments, answers=answers, state=again.state)
    assert done.text == "Ada,Bob,Cyd"
    assert server.executions == {"k": 1}


@pytest.mark.parametrize("answers", [None, {}, {"no_such_question": {"action": "accept"}}])
async def test_a_retry_that_answers_nothing_is_asked_again(client: RoundClient, answers: Any) -> None:
    asked = await client.call("book")
    again = await client.call("book", answers=answers, state=asked.state)
    assert again.questions == asked.questions
    done = await client.call("book", answers={"elicitation_1": filled("Ada")}, state=again.state)
    assert done.text == "Ada"


async def test_unknown_answers_are_ignored(server: AskingServer, client: RoundClient) -> None:
    asked = await client.call("book")
    answers = {"elicitation_1": filled("Ada"), "elicitation_9": filled("Eve"), "x": {}}
    assert (await client.call("book", answers=answers, state=asked.state)).text == "Ada"
    assert len(server.answers) == 1


async def test_answers_sent_ahead_are_used_when_their_question_comes(server: AskingServer, client: RoundClient) -> None:
    answers = {"elicitation_1": filled("Ada"), "elicitation_3": filled("Cyd")}
    asked = await client.call("in_turn", {"key": "k", "count": 3}, answers=answers)
    assert list(asked.questions) == ["elicitation_2"]
    arguments = {"key": "k", "count": 3}
    done = await client.call("in_turn", arguments, answers={"elicitation_2": filled("Bob")}, state=asked.state)
    assert done.text == "Ada,Bob,Cyd"
    assert server.executions == {"k": 1}


async def test_all_answers_sent_ahead_make_it_one_request(client: RoundClient) -> None:
    done = await client.call("book", answers={"elicitation_1": filled("Ada"), "more": {}})
    assert done.text == "Ada"


async def test_an_answer_sent_ahead_that_does_not_fit_is_asked_for(client: RoundClient) -> None:
    asked = await client.call("book", answers={"elicitation_1": {"action": "accept"}})
    assert list(asked.questions) == ["elicitation_1"]
    assert (await client.call("book", answers={"elicitation_1": filled("Ada")}, state=asked.state)).text == "Ada"


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"action": "s3cr3t"}, "action"),
        ({"action": "accept"}, "content.name"),
        ({"action": "accept", "content": {"name": "S"}}, "content.name"),
        ({"action": "accept", "content": {"name": "Ada", "age": "s3cr3t"}}, "content.age"),
        ({"action": "accept", "content": {"name": "Ada", "age": -7_346_219}}, "content.age"),
        ({"action": "accept", "content": "s3cr3t"}, "content"),
        ({"roots": []}, "action"),
    ],
)
async def test_a_wrong_answer_is_refused_by_field_and_the_round_goes_on(
    server: AskingServer, client: RoundClient, answer: Any, field: str
) -> None:
    asked = await client.call("book", {"key": "k"})
    refused = await client.call("book", {"key": "k"}, answers={"elicitation_1": answer}, state=asked.state)
    assert (refused.status, refused.error["code"]) == (400, -32602)
    assert refused.error["message"].startswith(f"inputResponses.elicitation_1: {field} ")
    assert "s3cr3t" not in str(refused.message)
    assert "7346219" not in str(refused.message)
    assert not server.answers
    done = await client.call("book", {"key": "k"}, answers={"elicitation_1": filled("Ada")}, state=asked.state)
    assert done.text == "Ada"
    assert server.executions == {"k": 1}


async def test_a_wrong_answer_to_one_question_keeps_the_others_back(server: AskingServer, client: RoundClient) -> None:
    asked = await client.call("mixed")
    answers: dict[str, Any] = {"elicitation_1": filled("Ada"), "sampling_1": {**SAID, "role": "nobody"}}
    refused = await client.call("mixed", answers={**answers, "roots_1": FOLDERS}, state=asked.state)
    assert refused.error["message"] == "inputResponses.sampling_1: role must be assistant or user"
    assert not server.answers
    answers["sampling_1"] = SAID
    done = await client.call("mixed", answers={**answers, "roots_1": FOLDERS}, state=asked.state)
    assert done.text == "Ada Hello file:///srv"
