"""Questions that must not reach the client, or that no client could answer."""

from gateway.core.exchange_events import Answered, Asked, Fail, Gather, Post, Quieted
from gateway.core.questions import MAX_OPEN
from gateway.core.transitions import State
from gateway.errors import UpstreamError
from gateway.wire.jsonrpc import JsonObject
from tests.playbook.vocabulary import (
    A_FORM,
    ADA,
    DELIVERED,
    DONE,
    EVERYTHING,
    answered,
    call,
    cancelled,
    form,
    inputs,
    leg,
    page,
    question,
    refused,
    roots,
    sample,
    undeclared,
    walked_away,
)
from tests.support.playbook import Playbook

ONLY_FORMS: JsonObject = {"elicitation": {"form": {}}}
NO_SESSION = UpstreamError("docs", "nonsense", "Upstream 'docs' asks its client, but keeps no session")
UNSUPPORTED = "The client does not support this"


def test_what_the_request_did_not_declare_is_refused_and_named() -> None:
    assert (
        Playbook(call(capabilities={}))
        >> form(0)
        << refused(0, f"{UNSUPPORTED} elicitation/create")
        << Gather()
        << State.GATHERING
        >> Quieted()
        << cancelled("the client lacks a capability")
        << undeclared({"elicitation": {"form": {}}})
        << State.CLOSED
    )


def test_exactly_the_missing_parts_are_named_all_at_once() -> None:
    assert (
        Playbook(call(capabilities={**ONLY_FORMS, "sampling": {}}))
        >> form(0)
        << Gather()
        >> page(1)
        << refused(1, f"{UNSUPPORTED} elicitation/create")
        << Gather()
        >> sample(2, tools=[], includeContext="allServers")
        << refused(2, f"{UNSUPPORTED} sampling/createMessage")
        << Gather()
        >> roots(3)
        << refused(3, f"{UNSUPPORTED} roots/list")
        << Gather()
        >> Quieted()
        << walked_away(0)
        << cancelled("the client lacks a capability")
        << undeclared({"elicitation": {"url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
        << State.CLOSED
    )


def test_a_server_that_finishes_without_the_missing_capability_does_not_hide_that_it_was_missing() -> None:
    assert (
        Playbook(call(capabilities={}))
        >> roots(0)
        << refused(0, f"{UNSUPPORTED} roots/list")
        << Gather()
        >> DONE
        << undeclared({"roots": {}})
        << State.CLOSED
    )


def test_a_retry_that_no_longer_declares_what_is_still_open_ends_the_call() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> form(1)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM, elicitation_2=A_FORM)
        >> Answered(leg({"elicitation_1": ADA}, capabilities={"roots": {}}))
        << answered(0, ADA)
        << walked_away(1)
        << cancelled("the client lacks a capability")
        << undeclared({"elicitation": {"form": {}}})
        << State.CLOSED
    )


def test_an_undeclared_question_while_the_client_is_away_is_refused_and_the_call_goes_on() -> None:
    assert (
        Playbook(call(capabilities=ONLY_FORMS))
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> roots(1)
        << refused(1, f"{UNSUPPORTED} roots/list")
        << State.SUSPENDED
    )


def test_a_method_that_cannot_ask_goes_on_without_an_answer() -> None:
    assert (
        Playbook(call(method="tools/list"))
        >> form(0)
        << refused(0, "During tools/list the client cannot be asked elicitation/create")
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_an_unknown_request_of_the_server_is_refused() -> None:
    assert (
        Playbook(call())
        >> question(0, "sampling/invent", {})
        << refused(0, "Method not found: sampling/invent", -32601)
        >> form(1)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> question(2, "sampling/invent", {})
        << refused(2, "Method not found: sampling/invent", -32601)
        << State.SUSPENDED
    )


def test_a_question_with_malformed_parameters_is_refused() -> None:
    assert (
        Playbook(call())
        >> question(0, "elicitation/create", ["Who are you?"])
        << refused(0, "params must be an object: elicitation/create", -32602)
        << State.WAITING
    )


def test_a_server_that_asks_without_end_is_refused() -> None:
    exchange = call()
    flood = Playbook(exchange)
    for number in range(MAX_OPEN):
        flood = flood >> form(number) << Gather()
    assert flood >> form("more") << refused("more", "Too many questions are open: elicitation/create")
    exchange.receive(Quieted())
    assert (
        Playbook(exchange)
        >> form("still more")
        << refused("still more", "Too many questions are open: elicitation/create")
        << State.SUSPENDED
    )


def test_a_server_that_could_not_hear_the_answer_is_not_kept_waiting_for_one() -> None:
    assert (
        Playbook(call(unanswerable=NO_SESSION))
        >> form(0)
        << cancelled("no session")
        << Fail(NO_SESSION)
        << State.CLOSED
    )


def test_such_a_server_is_not_kept_waiting_after_an_undeclared_question_either() -> None:
    assert (
        Playbook(call(capabilities=ONLY_FORMS, unanswerable=NO_SESSION))
        >> roots(0)
        << refused(0, f"{UNSUPPORTED} roots/list")
        << Gather()
        >> form(1)
        << cancelled("no session")
        << Fail(NO_SESSION)
        << State.CLOSED
    )


def test_a_question_that_a_resumed_stream_repeats_is_asked_once() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> form(0)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}, capabilities={}))
        << answered(0, ADA)
        >> form(0)
        << State.WAITING
    )


def test_ids_of_different_types_are_different_questions() -> None:
    assert (
        Playbook(call(capabilities=EVERYTHING))
        >> form(1)
        << Gather()
        >> form("1")
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM, elicitation_2=A_FORM)
    )


def test_a_server_that_does_not_take_a_refusal_does_not_end_the_call() -> None:
    exchange = call()
    (refused,) = exchange.receive(Asked({"jsonrpc": "2.0", "id": 1, "method": "tools/make"}))
    assert isinstance(refused, Post)
    assert not refused.is_vital
