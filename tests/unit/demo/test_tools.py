"""What each tool of the demo server does, over the wire."""

import pytest

from tests.support.legacy_client import messages

EVERYTHING = {"elicitation": {}, "sampling": {}, "roots": {}}


async def converse(client, request, *answers):
    """Run a call, giving these answers to its questions; return the questions and the final message."""
    questions = []
    left = list(answers)
    async with client.stream(request) as reply:
        async for message in messages(reply):
            if "method" not in message:
                return questions, message
            questions.append(message)
            await client.answer(message, left.pop(0))
    raise AssertionError("the stream ended without a response")


def text_of(message):
    return message["result"]["content"][0]["text"]


def accept(**content):
    return {"action": "accept", "content": content}


async def test_tools_are_listed(connect):
    client = await connect()
    tools = (await client.post(client.request("tools/list"))).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == [
        "greet",
        "ask_name",
        "count",
        "deploy",
        "summarize",
        "add_note",
        "list_workspace",
    ]


async def test_greet_answers_at_once(connect):
    client = await connect()
    reply = await client.post(client.call("greet", {"name": "Ada"}))
    assert text_of(reply.json()) == "Hello, Ada!"


async def test_a_wrong_argument_is_a_result_that_the_model_can_read(connect):
    client = await connect()
    result = (await client.post(client.call("greet", {}))).json()["result"]
    assert result == {
        "content": [{"type": "text", "text": "name must be a non-empty string"}],
        "isError": True,
    }


async def test_an_unknown_tool_is_an_error(connect):
    client = await connect()
    assert (await client.post(client.call("nothing"))).json()["error"]["code"] == -32602


async def test_ask_name_asks_with_a_titled_form(connect):
    questions, final = await converse(client := await connect(EVERYTHING), client.call("ask_name"), accept(name="Ada"))
    assert text_of(final) == "Nice to meet you, Ada."
    assert questions == [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "title": "UserName",
                    "properties": {"name": {"type": "string", "minLength": 1}},
                    "required": ["name"],
                },
            },
        }
    ]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_ask_name_takes_no_for_an_answer(connect, action):
    client = await connect(EVERYTHING)
    _, final = await converse(client, client.call("ask_name"), {"action": action})
    assert text_of(final) == "You would rather not say."


async def test_a_form_that_breaks_its_schema_is_not_believed(connect):
    client = await connect(EVERYTHING)
    _, final = await converse(client, client.call("ask_name"), accept(name=7))
    assert final["result"]["isError"] is True


async def test_a_client_that_answers_with_an_error_fails_the_call(connect):
    client = await connect(EVERYTHING)
    async with client.stream(client.call("ask_name")) as reply:
        conversation = messages(reply)
        question = await anext(conversation)
        error = {"code": -32601, "message": "no"}
        await client.post({"jsonrpc": "2.0", "id": question["id"], "error": error})
        assert (await anext(conversation))["error"] == error


async def test_an_answer_may_echo_the_id_as_a_string(connect):
    client = await connect(EVERYTHING)
    async with client.stream(client.call("ask_name")) as reply:
        conversation = messages(reply)
        question = await anext(conversation)
        await client.answer({"id": str(question["id"])}, accept(name="Ada"))
        assert text_of(await anext(conversation)) == "Nice to meet you, Ada."


@pytest.mark.parametrize("tool", ["ask_name", "summarize", "list_workspace", "deploy"])
async def test_a_client_that_cannot_be_asked_is_told_so(connect, tool):
    client = await connect()
    result = (await client.post(client.call(tool, {"text": "x", "service": "x"}))).json()["result"]
    assert result["isError"] is True
    assert "needs a client with" in result["content"][0]["text"]


async def test_count_reports_progress_under_the_callers_token(connect):
    client = await connect()
    async with client.stream(client.call("count", {"to": 2}, progressToken="p")) as reply:
        received = [message async for message in messages(reply)]
    progress = [m["params"] for m in received if m.get("method") == "notifications/progress"]
    assert progress == [
        {"progressToken": "p", "progress": 1, "total": 2, "message": "1 of 2"},
        {"progressToken": "p", "progress": 2, "total": 2, "message": "2 of 2"},
    ]
    assert text_of(received[-1]) == "Counted to 2."


@pytest.mark.parametrize(
    ("level", "logged"), [("debug", ["counting to 1", "counted 1"]), ("info", ["counting to 1"]), ("error", [])]
)
async def test_count_logs_at_the_level_set(connect, level, logged):
    client = await connect()
    await client.post(client.request("logging/setLevel", {"level": level}))
    async with client.stream(client.call("count", {"to": 1}, progressToken=1)) as reply:
        received = [message async for message in messages(reply)]
    assert [m["params"]["data"] for m in received if m.get("method") == "notifications/message"] == logged


async def test_an_unknown_level_is_refused(connect):
    client = await connect()
    reply = await client.post(client.request("logging/setLevel", {"level": "loud"}))
    assert reply.json()["error"]["code"] == -32602


async def test_a_cancelled_call_ends_without_a_response(connect):
    client = await connect()
    request = client.call("count", {"to": 100}, progressToken=1)
    async with client.stream(request) as reply:
        conversation = messages(reply)
        await anext(conversation)
        await client.post(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}}
        )
        assert [m for m in [m async for m in conversation] if "id" in m] == []


async def test_deploy_asks_twice(connect):
    client = await connect(EVERYTHING)
    questions, final = await converse(
        client, client.call("deploy", {"service": "web"}), accept(confirm=True), accept(region="north")
    )
    titles = [question["params"]["requestedSchema"]["title"] for question in questions]
    assert titles == ["Confirmation", "Region"]
    assert final["result"]["structuredContent"] == {"deployed": True, "region": "north"}


async def test_deploy_does_nothing_without_a_yes(connect):
    client = await connect(EVERYTHING)
    questions, final = await converse(client, client.call("deploy", {"service": "web"}), accept(confirm=False))
    assert len(questions) == 1
    assert final["result"]["structuredContent"] == {"deployed": False}


@pytest.mark.parametrize("as_list", [False, True])
async def test_summarize_returns_what_the_clients_model_wrote(connect, as_list):
    client = await connect(EVERYTHING)
    block = {"type": "text", "text": "Short."}
    answer = {"role": "assistant", "model": "m", "content": [block] if as_list else block}
    questions, final = await converse(client, client.call("summarize", {"text": "Long."}), answer)
    assert questions[0]["method"] == "sampling/createMessage"
    assert questions[0]["params"]["maxTokens"] == 200
    assert text_of(final) == "Short."


async def test_list_workspace_lists_the_clients_roots(connect):
    client = await connect(EVERYTHING)
    roots = {"roots": [{"uri": "file:///src", "name": "src"}]}
    questions, final = await converse(client, client.call("list_workspace"), roots)
    assert questions[0]["method"] == "roots/list"
    assert text_of(final) == "src: file:///src"


async def test_a_note_is_announced_to_every_listening_session(connect):
    writer, reader, subscriber = await connect(), await connect(), await connect()
    await subscriber.post(subscriber.request("resources/subscribe", {"uri": "demo://notes"}))
    async with reader.listen() as plain, subscriber.listen() as subscribed:
        reply = await writer.post(writer.call("add_note", {"text": "Sleep."}))
        assert text_of(reply.json()).endswith("is written.")
        assert (await anext(messages(plain)))["method"] == "notifications/resources/list_changed"
        heard = messages(subscribed)
        assert (await anext(heard))["method"] == "notifications/resources/list_changed"
        updated = await anext(heard)
        assert (updated["method"], updated["params"]) == (
            "notifications/resources/updated",
            {"uri": "demo://notes"},
        )


async def test_an_unsubscribed_session_hears_of_no_update(connect):
    client = await connect()
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await client.post(client.request(method, {"uri": "demo://notes"}))).json()["result"] == {}
    async with client.listen() as stream:
        heard = messages(stream)
        for _ in range(2):
            await client.post(client.call("add_note", {"text": "Sleep."}))
            assert (await anext(heard))["method"] == "notifications/resources/list_changed"


async def test_only_a_resource_that_there_is_can_be_subscribed_to(connect):
    client = await connect()
    reply = await client.post(client.request("resources/subscribe", {"uri": "demo://nothing"}))
    assert reply.json()["error"]["code"] == -32002


async def test_questions_of_two_sessions_do_not_mix(connect):
    first, second = await connect(EVERYTHING), await connect(EVERYTHING)
    async with first.stream(first.call("ask_name")) as one, second.stream(second.call("ask_name")) as two:
        ones, twos = messages(one), messages(two)
        asked_first, asked_second = await anext(ones), await anext(twos)
        await second.answer(asked_second, accept(name="Bob"))
        await first.answer(asked_first, accept(name="Ada"))
        assert (text_of(await anext(ones)), text_of(await anext(twos))) == (
            "Nice to meet you, Ada.",
            "Nice to meet you, Bob.",
        )
