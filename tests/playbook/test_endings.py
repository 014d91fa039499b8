"""How a call ends before its time: the client leaves, nobody answers, the server is too slow."""

from gateway.core.exchange_events import Answered, ClientLeft, Expired, Fail, Gather, Overtaken, Quieted
from gateway.core.request_state import refused
from gateway.core.transitions import State
from tests.playbook.vocabulary import (
    A_FORM,
    A_PAGE,
    A_PROMPT,
    A_ROOTS,
    ADA,
    DONE,
    SILENT,
    TIMED_OUT,
    answered,
    call,
    cancelled,
    form,
    inputs,
    leg,
    nobody_answered,
    page,
    roots,
    sample,
    walked_away,
)
from tests.support.playbook import Playbook


def test_a_client_that_leaves_cancels_its_call() -> None:
    assert Playbook(call()) >> ClientLeft() << cancelled("the client closed the request") << State.CLOSED


def test_a_client_that_leaves_before_it_was_asked_leaves_no_question_open() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> ClientLeft()
        << walked_away(0)
        << cancelled("the client closed the request")
        << State.CLOSED
    )


def test_a_client_that_leaves_while_its_answers_are_at_work_cancels_the_call() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        >> ClientLeft()
        << cancelled("the client closed the request")
        << State.CLOSED
    )


def test_a_silent_server_is_given_up() -> None:
    assert Playbook(call()) >> TIMED_OUT << cancelled("timed out") << Fail(SILENT) << State.CLOSED


def test_a_server_that_is_given_up_has_its_questions_answered() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> TIMED_OUT
        << walked_away(0)
        << cancelled("timed out")
        << Fail(SILENT)
        << State.CLOSED
    )


def test_a_client_that_never_comes_back_has_walked_away() -> None:
    """`cancel` for what the user was asked, an error for sampling and roots, which have no such word."""
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> page("pay")
        << Gather()
        >> sample(1)
        << Gather()
        >> roots(2)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM, pay=A_PAGE, sampling_1=A_PROMPT, roots_1=A_ROOTS)
        >> Expired()
        << walked_away(0)
        << walked_away("pay")
        << nobody_answered(1)
        << nobody_answered(2)
        << cancelled("nobody answered in time")
        << State.CLOSED
    )


def test_an_outcome_that_nobody_fetches_is_forgotten() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> DONE
        << State.SETTLED
        >> Expired()
        << State.CLOSED
    )


def test_whatever_ends_a_call_that_has_ended_changes_nothing() -> None:
    assert (
        Playbook(call())
        >> ClientLeft()
        << cancelled("the client closed the request")
        >> ClientLeft()
        >> TIMED_OUT
        >> Expired()
        << State.CLOSED
    )


def test_a_quiet_time_that_ends_late_changes_nothing() -> None:
    assert (
        Playbook(call())
        >> Quieted()
        << State.WAITING
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Quieted()
        << State.SUSPENDED
    )


# --- another replica goes on with the call ---

OVERTAKEN = refused("overtaken by another replica")
GIVEN_UP = Fail(OVERTAKEN)


def test_a_call_that_was_overtaken_says_nothing_more_to_its_server() -> None:
    assert Playbook(call()) >> Overtaken(OVERTAKEN) << GIVEN_UP << State.CLOSED >> Overtaken(OVERTAKEN)


def test_an_overtaken_call_forgets_what_it_was_about_to_ask() -> None:
    assert Playbook(call()) >> form(0) << Gather() >> Overtaken(OVERTAKEN) << GIVEN_UP << State.CLOSED


def test_an_overtaken_round_leaves_its_questions_open() -> None:
    suspended = Playbook(call()) >> form(0) << Gather() >> Quieted() << inputs(elicitation_1=A_FORM)
    assert suspended >> Overtaken(OVERTAKEN) << State.CLOSED


def test_an_overtaken_outcome_is_left_to_the_other_replica() -> None:
    settled = Playbook(call()) >> form(0) << Gather() >> Quieted() << inputs(elicitation_1=A_FORM) >> DONE
    assert settled >> Overtaken(OVERTAKEN) << State.CLOSED
