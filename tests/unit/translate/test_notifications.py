"""Notifications, from legacy servers to modern clients."""

import pytest

from gateway.translate.notifications import (
    passes,
    progress_of,
    to_modern_change,
    to_modern_message,
    to_modern_progress,
)
from gateway.wire.jsonrpc import Json

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.parametrize("token", ["abc", 0, 7])
def test_progress_carries_the_client_s_token_and_its_type(token: str | int) -> None:
    params = {"progressToken": "gw-1", "progress": 1, "total": 3, "message": "m", "x": 1}
    modern = to_modern_progress(params, token)
    assert modern == {**params, "progressToken": token}
    assert type(modern["progressToken"]) is type(token)


def test_a_total_that_is_null_is_left_out() -> None:
    assert to_modern_progress({"progress": 1, "total": None, "message": None}, 1) == {"progress": 1, "progressToken": 1}


@pytest.mark.parametrize("value", [0, 0.5, -1, 10**20])
def test_progress_is_a_number(value: Json) -> None:
    assert progress_of({"progress": value}) == value


@pytest.mark.parametrize("params", [None, {}, {"progress": "1"}, {"progress": True}, {"progress": None}])
def test_progress_that_is_no_number_must_not_go_out(params: Json) -> None:
    assert progress_of(params) is None


@pytest.mark.parametrize(("asked", "sent"), [("debug", "debug"), ("warning", "error"), ("info", "emergency")])
def test_a_message_at_or_above_the_level_passes(asked: str, sent: str) -> None:
    assert passes(asked, {"level": sent, "data": 1})


@pytest.mark.parametrize(("asked", "sent"), [("warning", "info"), ("emergency", "alert"), ("debug", "loud")])
def test_a_message_below_the_level_or_of_none_does_not_pass(asked: str, sent: str) -> None:
    assert not passes(asked, {"level": sent, "data": 1})


@pytest.mark.parametrize("params", [None, [], {}, {"level": []}])
def test_a_malformed_message_does_not_pass(params: Json) -> None:
    assert not passes("debug", params)


def test_nothing_passes_without_a_level() -> None:
    assert not passes(None, {"level": "emergency", "data": 1})


def test_a_message_goes_out_without_nulls_and_with_data() -> None:
    assert to_modern_message({"level": "info", "logger": None}) == {"level": "info", "data": None}


def test_a_server_cannot_forge_the_protocol_s_own_keys() -> None:
    params = {"level": "info", "data": 1, "_meta": {SUBSCRIPTION: "L1", "com.ex/k": 1}}
    assert to_modern_message(params)["_meta"] == {"com.ex/k": 1}


@pytest.mark.parametrize("subscription_id", ["L1", 5])
def test_a_change_is_tagged_with_the_listen_request(subscription_id: str | int) -> None:
    modern = to_modern_change({"uri": "note://1", "_meta": {"k": 1, SUBSCRIPTION: "forged"}}, subscription_id)
    assert modern == {"uri": "note://1", "_meta": {"k": 1, SUBSCRIPTION: subscription_id}}


def test_a_change_without_params_is_tagged_all_the_same() -> None:
    assert to_modern_change(None, "L1") == {"_meta": {SUBSCRIPTION: "L1"}}
