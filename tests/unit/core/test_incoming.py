import pytest

from gateway.core.exchange_events import Asked, Notified, Responded, Withdrew
from gateway.core.incoming import Changed, Pinged, sort, split
from gateway.wire.jsonrpc import Json, JsonObject, RequestId

OWN = "call-1"


def _own(message: Json) -> object:
    return sort(message, OWN, is_own_stream=True)


def _aside(message: Json) -> object:
    return sort(message, None, is_own_stream=False)


@pytest.mark.parametrize("body", [{"result": {}}, {"error": {"code": 1, "message": "m"}}, {"result": None}])
def test_a_response_with_the_calls_id_is_its_response(body: JsonObject) -> None:
    message = {"jsonrpc": "2.0", "id": OWN, **body}
    assert _own(message) == Responded(message)


@pytest.mark.parametrize("request_id", [None, "server-error", ""])
def test_an_error_without_a_readable_id_on_the_calls_own_stream_is_about_the_call(request_id: Json) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32700, "message": "m"}}
    assert _own(message) == Responded(message)


@pytest.mark.parametrize(
    "message",
    [
        {"id": "call-2", "result": {}},
        {"id": 1, "error": {"code": 1, "message": "m"}},
        {"id": OWN},
        {"result": {}},
        {},
        [],
        None,
        "text",
        {"method": 7},
        {"id": OWN, "method": None},
    ],
)
def test_what_is_no_message_for_this_call_means_nothing(message: Json) -> None:
    assert _own(message) is None


def test_a_response_on_another_stream_is_nobodys() -> None:
    assert _aside({"id": OWN, "result": {}}) is None
    assert _aside({"id": None, "error": {}}) is None


@pytest.mark.parametrize("request_id", [0, 1, -1, "0", "e-1", ""])
def test_a_request_of_the_server_is_a_question_whatever_its_id(request_id: RequestId) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create"}
    assert _own(message) == Asked(message)
    assert _aside(message) == Asked(message)


@pytest.mark.parametrize("request_id", [1.5, True, [], {}, "x" * 257, 2**63])
def test_a_request_whose_id_cannot_be_answered_is_none(request_id: Json) -> None:
    assert _own({"id": request_id, "method": "elicitation/create"}) is None


def test_a_ping_is_no_question() -> None:
    assert _own({"id": 0, "method": "ping"}) == Pinged(0)


def test_a_cancelled_request_of_the_servers_is_withdrawn() -> None:
    assert _own({"method": "notifications/cancelled", "params": {"requestId": 0, "reason": "r"}}) == Withdrew(0)


@pytest.mark.parametrize("params", [None, {}, [], {"requestId": None}, {"requestId": 1.5}])
def test_a_cancellation_of_nothing_means_nothing(params: Json) -> None:
    assert _own({"method": "notifications/cancelled", "params": params}) is None


@pytest.mark.parametrize("kind", ["tools/list_changed", "prompts/list_changed", "resources/list_changed"])
def test_changes_concern_the_whole_upstream(kind: str) -> None:
    message = {"method": f"notifications/{kind}"}
    assert _aside(message) == Changed(message)


@pytest.mark.parametrize("method", ["notifications/progress", "notifications/message", "notifications/unheard_of"])
def test_other_notifications_are_for_the_exchange(method: str) -> None:
    message = {"method": method, "params": {}}
    assert _own(message) == Notified(message)


def test_a_request_with_a_null_id_is_a_notification() -> None:
    message = {"id": None, "method": "notifications/message"}
    assert _own(message) == Notified(message)


def test_a_body_holds_one_message_or_a_batch() -> None:
    assert split({"id": 1}) == [{"id": 1}]
    assert split([{"id": 1}, {"id": 2}]) == [{"id": 1}, {"id": 2}]
    assert split([]) == []
