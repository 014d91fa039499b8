"""One question, one answer: what every kind of question looks like from both sides."""

from gateway.core.exchange_events import Answered, Complete, Gather, Quieted, Responded
from gateway.core.transitions import State
from tests.playbook.vocabulary import (
    A_FORM,
    A_PAGE,
    A_PROMPT,
    A_ROOTS,
    ADA,
    CALL_ID,
    DECLINED,
    DELIVERED,
    DONE,
    ROOTS,
    SAID,
    answered,
    call,
    form,
    inputs,
    leg,
    page,
    roots,
    sample,
)
from tests.support.playbook import Playbook


def test_a_call_that_asks_nothing() -> None:
    assert Playbook(call()) >> DONE << DELIVERED << State.CLOSED


def test_an_error_of_the_server_ends_the_call_like_a_result() -> None:
    error = {"jsonrpc": "2.0", "id": CALL_ID, "error": {"code": -32000, "message": "no"}}
    assert Playbook(call()) >> Responded(error) << Complete(error) << State.CLOSED


def test_a_form() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        << State.GATHERING
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        << State.WAITING
        >> DONE
        << DELIVERED
        << State.CLOSED
    )


def test_a_page_to_visit() -> None:
    assert (
        Playbook(call())
        >> page("el-9")
        << Gather()
        >> Quieted()
        << inputs(**{"el-9": A_PAGE})
        >> Answered(leg({"el-9": {"action": "accept"}}))
        << answered("el-9", {"action": "accept"})
        >> DONE
        << DELIVERED
    )


def test_a_sample_of_the_clients_model() -> None:
    assert (
        Playbook(call(method="prompts/get"))
        >> sample(0)
        << Gather()
        >> Quieted()
        << inputs(sampling_1=A_PROMPT)
        >> Answered(leg({"sampling_1": SAID}))
        << answered(0, SAID)
        >> DONE
        << DELIVERED
    )


def test_the_clients_roots() -> None:
    assert (
        Playbook(call(method="resources/read"))
        >> roots("r")
        << Gather()
        >> Quieted()
        << inputs(r=A_ROOTS)
        >> Answered(leg({"r": ROOTS}))
        << answered("r", ROOTS)
        >> DONE
        << DELIVERED
    )


def test_a_user_who_declines_is_understood_by_the_server() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": DECLINED}))
        << answered(0, DECLINED)
        >> DONE
        << DELIVERED
    )


def test_questions_that_come_together_are_asked_together_and_answered_in_their_order() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> sample(1)
        << Gather()
        >> roots(2)
        << Gather()
        << State.GATHERING
        >> Quieted()
        << inputs(elicitation_1=A_FORM, sampling_1=A_PROMPT, roots_1=A_ROOTS)
        >> Answered(leg({"roots_1": ROOTS, "sampling_1": SAID, "elicitation_1": ADA}))
        << answered(0, ADA)
        << answered(1, SAID)
        << answered(2, ROOTS)
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_the_operator_names_the_questions_of_a_tool() -> None:
    assert (
        Playbook(call(names=("owner", "deputy")))
        >> form(0)
        << Gather()
        >> form(1)
        << Gather()
        >> form(2)
        << Gather()
        >> Quieted()
        << inputs(owner=A_FORM, deputy=A_FORM, elicitation_1=A_FORM)
    )


def test_an_answer_sent_ahead_is_used_when_its_question_comes() -> None:
    assert Playbook(call({"elicitation_1": ADA})) >> form(0) << answered(0, ADA) << State.WAITING >> DONE << DELIVERED


def test_an_answer_sent_ahead_that_does_not_fit_is_asked_for() -> None:
    assert (
        Playbook(call({"elicitation_1": {"action": "accept", "content": {}}}))
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
    )


def test_an_answer_sent_ahead_waits_for_its_question_through_the_rounds() -> None:
    assert (
        Playbook(call({"sampling_1": SAID, "roots_1": ROOTS}))
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> sample(1)
        << answered(1, SAID)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        >> roots(2)
        << answered(2, ROOTS)
        << State.WAITING
        >> DONE
        << DELIVERED
    )
