"""What the shell that drives an exchange promises never to do; the exchange names the event and the state."""

from gateway.core.exchange_events import Answered, ClientLeft, Expired, Gather, Quieted
from tests.playbook.vocabulary import A_FORM, DELIVERED, DONE, TIMED_OUT, call, form, inputs, leg
from tests.support.playbook import Impossible, Playbook


def test_nobody_retries_or_outwaits_a_call_that_is_at_work() -> None:
    assert Playbook(call()) >> Answered(leg()) << Impossible >> Expired() << Impossible


def test_nobody_retries_or_outwaits_a_call_that_gathers() -> None:
    assert Playbook(call()) >> form(0) << Gather() >> Answered(leg()) << Impossible >> Expired() << Impossible


def test_a_client_that_is_away_cannot_leave_and_is_not_waited_for_by_the_clock() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> ClientLeft()
        << Impossible
        >> TIMED_OUT
        << Impossible
    )


def test_the_same_holds_when_the_outcome_waits_for_it() -> None:
    assert (
        Playbook(call())
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> DONE
        >> ClientLeft()
        << Impossible
        >> TIMED_OUT
        << Impossible
    )


def test_a_call_that_has_ended_takes_no_answers() -> None:
    assert Playbook(call()) >> DONE << DELIVERED >> Answered(leg()) << Impossible
