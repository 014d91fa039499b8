"""What the server may do while its question is out: withdraw it, give up, finish, or lose its stream."""

from gateway.core.exchange_events import Answered, Fail, Gather, Quieted, Resume, Withdrew
from gateway.core.transitions import State
from tests.playbook.vocabulary import (
    A_FORM,
    A_PROMPT,
    ADA,
    BROKEN,
    CUT,
    DELIVERED,
    DONE,
    LOST,
    PAUSED,
    SAID,
    answered,
    call,
    cancelled,
    form,
    inputs,
    leg,
    log_line,
    logged,
    refused,
    sample,
    walked_away,
)
from tests.support.playbook import Playbook


def test_a_question_withdrawn_before_it_was_put_is_never_put() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Withdrew(0)
        << State.WAITING
        >> Quieted()
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_the_other_questions_are_still_put() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> sample(1)
        << Gather()
        >> Withdrew(0)
        << State.GATHERING
        >> Quieted()
        << inputs(sampling_1=A_PROMPT)
    )


def test_a_round_with_nothing_left_to_ask_goes_on() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Withdrew(0)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_withdrawing_what_is_not_open_changes_nothing() -> None:
    assert (
        Playbook(call())
        >> Withdrew(0)
        << State.WAITING
        >> form(0)
        << Gather()
        >> Withdrew("0")
        << State.GATHERING
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
    )


def test_a_server_that_finishes_while_it_gathers_is_done() -> None:
    assert Playbook(call()) >> form(0) << Gather() >> DONE << DELIVERED << State.CLOSED


def test_the_result_of_a_server_that_gave_up_waits_for_the_retry() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Withdrew(0)
        >> DONE
        << State.SETTLED
        >> Answered(leg({"elicitation_1": ADA}))
        << DELIVERED
        << State.CLOSED
    )


def test_what_a_server_says_after_its_result_reaches_nobody() -> None:
    assert (
        Playbook(call(logs="debug"))
        >> form(0)
        << Gather()
        >> logged("info", "asked")
        << log_line("info", "asked")
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> DONE
        << State.SETTLED
        >> DONE
        >> logged("info", "late")
        >> Withdrew(0)
        >> Quieted()
        >> BROKEN
        << State.SETTLED
        >> form(1)
        << refused(1, "The client is gone elicitation/create")
        << State.SETTLED
        >> Answered(leg({"elicitation_1": ADA}))
        << DELIVERED
        >> DONE
        >> logged("info", "later")
        >> Withdrew(0)
        >> Quieted()
        >> BROKEN
        << State.CLOSED
        >> sample(2)
        << refused(2, "The client is gone sampling/createMessage")
        << State.CLOSED
    )


def test_a_stream_that_pauses_is_picked_up_at_once_while_the_client_waits() -> None:
    assert (
        Playbook(call())
        >> PAUSED
        << Resume()
        << State.WAITING
        >> form(0)
        << Gather()
        >> PAUSED
        << Resume()
        << State.GATHERING
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
    )


def test_a_stream_that_breaks_ends_the_call_with_an_unknown_outcome() -> None:
    assert Playbook(call()) >> BROKEN << cancelled("the stream broke") << Fail(CUT) << State.CLOSED


def test_a_stream_that_breaks_before_the_question_was_put_ends_the_call_too() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> BROKEN
        << walked_away(0)
        << cancelled("the stream broke")
        << Fail(CUT)
        << State.CLOSED
    )


def test_a_stream_that_pauses_while_the_client_is_away_is_picked_up_when_it_is_back() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> sample(1)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM, sampling_1=A_PROMPT)
        >> PAUSED
        << State.SUSPENDED
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        << inputs(sampling_1=A_PROMPT)
        << State.SUSPENDED
        >> Answered(leg({"sampling_1": SAID}))
        << answered(1, SAID)
        << Resume()
        << State.WAITING
        >> DONE
        << DELIVERED
    )


def test_a_stream_that_breaks_while_the_client_is_away_has_lost_the_call() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> BROKEN
        << walked_away(0)
        << cancelled("the stream broke")
        << State.SETTLED
        >> Answered(leg({"elicitation_1": ADA}))
        << Fail(LOST)
        << State.CLOSED
    )
