"""A call with several rounds: what is missing is asked for again, and the server may have more to ask."""

from gateway.core.exchange_events import Answered, Gather, Quieted
from gateway.core.notices import MAX_HELD
from gateway.core.questions import MAX_AHEAD_BYTES
from gateway.core.transitions import State
from tests.playbook.vocabulary import (
    A_FORM,
    A_PROMPT,
    A_ROOTS,
    ADA,
    BOB,
    DELIVERED,
    DONE,
    ROOTS,
    SAID,
    answered,
    call,
    form,
    inputs,
    leg,
    log_line,
    logged,
    progress,
    progressed,
    roots,
    sample,
)
from tests.support.playbook import Playbook


def test_an_answer_that_is_missing_is_asked_for_again() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> form(1)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM, elicitation_2=A_FORM)
        >> Answered(leg({"elicitation_2": BOB}))
        << answered(1, BOB)
        << inputs(elicitation_1=A_FORM)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_a_retry_without_answers_gets_the_questions_again() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg())
        << inputs(elicitation_1=A_FORM)
        << State.SUSPENDED
    )


def test_unknown_answers_are_ignored() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": ADA, "no_such_question": BOB}))
        << answered(0, ADA)
        << State.WAITING
    )


def test_a_server_that_asks_one_thing_after_the_other() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        >> sample(1)
        << Gather()
        << State.GATHERING
        >> Quieted()
        << inputs(sampling_1=A_PROMPT)
        >> Answered(leg({"sampling_1": SAID}))
        << answered(1, SAID)
        >> roots(2)
        << Gather()
        >> Quieted()
        << inputs(roots_1=A_ROOTS)
        >> Answered(leg({"roots_1": ROOTS}))
        << answered(2, ROOTS)
        >> DONE
        << DELIVERED
        << State.CLOSED
    )


def test_a_question_that_comes_while_the_client_is_away_belongs_to_the_next_round() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> sample(1)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        << inputs(sampling_1=A_PROMPT)
        << State.SUSPENDED
    )


def test_an_answer_of_an_earlier_round_is_no_answer_to_a_later_question() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        >> form(1)
        << Gather()
        >> Quieted()
        << inputs(elicitation_2=A_FORM)
    )


def test_each_leg_has_its_own_progress_token_and_level() -> None:
    assert (
        Playbook(call(progress="first", logs="warning"))
        >> progressed(1)
        << progress("first", 1)
        >> logged("error", "e")
        << log_line("error", "e")
        >> logged("info", "too much")
        >> form(0)
        << Gather()
        >> progressed(2)
        << progress("first", 2)
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> progressed(3)
        >> logged("info", "meanwhile")
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}, progress=2, logs="debug"))
        << progress(2, 3)
        << log_line("info", "meanwhile")
        << answered(0, ADA)
        >> logged("info", "now wanted")
        << log_line("info", "now wanted")
        >> progressed(4)
        << progress(2, 4)
        >> DONE
        << DELIVERED
    )


def test_what_was_told_before_a_call_finished_by_itself_is_told_with_its_outcome() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> logged("warning", "giving up")
        >> DONE
        << State.SETTLED
        >> Answered(leg({"elicitation_1": ADA}, logs="info"))
        << log_line("warning", "giving up")
        << DELIVERED
        << State.CLOSED
    )


def test_a_flood_while_the_client_is_away_leaves_the_latest() -> None:
    playbook = Playbook(call()) >> form(0) << Gather() >> Quieted() << inputs(elicitation_1=A_FORM)
    for number in range(MAX_HELD + 50):
        playbook = playbook >> logged("info", str(number))
    playbook = playbook >> Answered(leg({"elicitation_1": ADA}, logs="info"))
    for number in range(50, MAX_HELD + 50):
        playbook = playbook << log_line("info", str(number))
    assert playbook << answered(0, ADA) << State.WAITING


def test_progress_only_grows_and_only_of_this_call() -> None:
    assert (
        Playbook(call(progress=9))
        >> progressed(1)
        << progress(9, 1)
        >> progressed(1)
        >> progressed(0.5)
        >> progressed(7, token="another-call")
        >> progressed(1.5)
        << progress(9, 1.5)
        << State.WAITING
    )


def test_nothing_is_relayed_that_was_not_asked_for() -> None:
    assert Playbook(call()) >> progressed(1) >> logged("emergency", "x") << State.WAITING


def test_of_answers_that_nobody_asked_for_a_suspended_call_keeps_little() -> None:
    exchange = call()
    book = Playbook(exchange) >> form(0) << Gather() >> Quieted() << inputs(elicitation_1=A_FORM)
    for number in range(3):
        book = book >> Answered(leg({f"junk{number}": {"text": "x" * 30_000}})) << inputs(elicitation_1=A_FORM)
    assert book
    assert len(str(exchange._answers._leg.answers)) < MAX_AHEAD_BYTES
