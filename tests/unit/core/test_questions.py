import pytest

from gateway.core.exchange_events import Post
from gateway.core.questions import Question, Questions, fault_of, refusal
from gateway.errors import ProtocolError, to_reply
from gateway.wire.jsonrpc import JsonObject, RequestId

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer"}},
    "required": ["name"],
}


def _ask(request_id: RequestId, method: str = "elicitation/create", params: object = None) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {"requestedSchema": SCHEMA}}


def _form() -> Question:
    return Questions().add(_ask(0))


def test_a_question_keeps_the_id_that_the_server_gave_it() -> None:
    for request_id in (0, 1, "0", "q-1"):
        question = Questions().add(_ask(request_id))
        post = question.answered({"action": "decline"})
        assert post == Post({"jsonrpc": "2.0", "id": request_id, "result": {"action": "decline"}})
        assert type(post.message["id"]) is type(request_id)


def test_names_are_unique_within_a_call_even_after_their_questions_are_closed() -> None:
    questions = Questions()
    first = questions.add(_ask(0))
    questions.close(first)
    assert [first.name, questions.add(_ask(1)).name] == ["elicitation_1", "elicitation_2"]


def test_a_name_is_remembered_after_its_question_was_answered() -> None:
    questions = Questions()
    questions.close(questions.add(_ask(0)))
    answers: JsonObject = {"elicitation_1": {}, "elicitation_2": {}}
    assert list(questions.still_ahead(answers)) == ["elicitation_2"]


def test_the_operators_names_come_first() -> None:
    questions = Questions(["owner"])
    assert [questions.add(_ask(n)).name for n in range(2)] == ["owner", "elicitation_1"]


def test_a_question_is_recognized_by_id_and_type() -> None:
    questions = Questions()
    questions.add(_ask(1))
    assert questions.has_seen(_ask(1))
    assert not questions.has_seen(_ask("1"))
    assert not questions.has_seen(_ask(2))


def test_questions_are_answered_in_the_order_of_asking_and_unknown_names_ignored() -> None:
    questions = Questions()
    for request_id in range(3):
        questions.add(_ask(request_id))
    answered = questions.close_answered(
        {"elicitation_3": {"action": "cancel"}, "elicitation_1": {"action": "decline"}, "x": {"action": "accept"}}
    )
    assert [question.request_id for question in answered] == [0, 2]
    assert list(questions.to_input_requests()) == ["elicitation_2"]


def test_a_question_is_answered_once() -> None:
    questions = Questions()
    questions.add(_ask(0))
    assert questions.close_answered({"elicitation_1": {"action": "decline"}})
    assert questions.close_answered({"elicitation_1": {"action": "decline"}}) == []


def test_withdrawing_closes_the_one_question() -> None:
    questions = Questions()
    questions.add(_ask(1))
    questions.add(_ask("1"))
    questions.withdraw(1)
    assert list(questions.to_input_requests()) == ["elicitation_2"]
    questions.withdraw("1")
    assert not questions


def test_whoever_walks_away_cancels_forms_and_fails_the_rest() -> None:
    questions = Questions()
    questions.add(_ask(0))
    questions.add(_ask(1, "sampling/createMessage", {"messages": []}))
    questions.add(_ask(2, "roots/list"))
    cancel, *errors = questions.cancel_all()
    assert cancel.message["result"] == {"action": "cancel"}
    assert [post.message["error"]["code"] for post in errors] == [-32603, -32603]
    assert not questions
    assert questions.cancel_all() == []


# --- answers against their question ---


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("Ada", "the answer must be an object"),
        ({}, "action must be accept, decline or cancel"),
        ({"action": "maybe"}, "action must be accept, decline or cancel"),
        ({"action": "accept", "content": "Ada"}, "content must be an object"),
        ({"action": "accept"}, "content.name is required"),
        ({"action": "accept", "content": {"name": 7}}, "content.name must be a string"),
        ({"action": "accept", "content": {"name": "A"}}, "content.name must have at least 2 characters"),
        ({"action": "accept", "content": {"name": "Ada", "age": "36"}}, "content.age must be an integer"),
        ({"action": "decline", "content": {"name": "Ada"}}, "content is only for an accepted form"),
    ],
)
def test_a_wrong_answer_is_named_by_question_and_field(answer: object, complaint: str) -> None:
    questions = Questions()
    questions.add(_ask(0))
    with pytest.raises(ProtocolError) as caught:
        questions.check({"elicitation_1": answer})
    said = to_reply(caught.value).error
    assert said["code"] == -32602
    assert said["message"].startswith("inputResponses.elicitation_1: ")
    assert said["message"].endswith(complaint)


@pytest.mark.parametrize("secret", ["s3cr3t-value", 8_675_309])
def test_the_value_of_a_wrong_answer_is_never_told(secret: object) -> None:
    wrong: list[JsonObject] = [
        {"action": secret},
        {"action": "accept", "content": secret},
        {"action": "accept", "content": {"name": [secret]}},
        {"action": "accept", "content": {"name": "Ada", "age": {"x": secret}}},
    ]
    for answer in wrong:
        with pytest.raises(ProtocolError) as caught:
            _form().check(answer)
        assert str(secret) not in repr(to_reply(caught.value)) + str(caught.value.__cause__)


def test_accepts_is_the_same_judgement_without_the_words() -> None:
    assert _form().accepts({"action": "accept", "content": {"name": "Ada"}})
    assert not _form().accepts({"action": "accept", "content": {}})


def test_answers_to_other_names_are_not_looked_at() -> None:
    questions = Questions()
    questions.add(_ask(0))
    questions.check({"unknown": 7})


# --- what no client could answer ---


def test_only_questions_have_no_fault() -> None:
    assert fault_of(_ask(0)) is None
    assert fault_of({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}) is None
    assert fault_of({"jsonrpc": "2.0", "id": 0, "method": "roots/list", "params": None}) is None


@pytest.mark.parametrize(("method", "params", "code"), [("tasks/get", {}, -32601), ("roots/list", ["x"], -32602)])
def test_everything_else_is_answered_with_an_error(method: str, params: object, code: int) -> None:
    fault = fault_of({"jsonrpc": "2.0", "id": "f", "method": method, "params": params})
    assert fault is not None
    assert (fault.message["id"], fault.message["error"]["code"]) == ("f", code)


def test_a_refusal_names_the_method() -> None:
    error = refusal(_ask(3), "The client is gone").message["error"]
    assert error == {"code": -32603, "message": "The client is gone elicitation/create"}
