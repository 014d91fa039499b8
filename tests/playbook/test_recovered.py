"""A call whose process has died goes on in another, as if nothing had been; or is made again with what was answered."""

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Answered, Expired, Gather, Quieted, Resume
from gateway.core.questions import Question
from gateway.core.recorded import Recorded
from gateway.core.recovery import Standing
from gateway.core.transitions import State
from tests.playbook.vocabulary import (
    A_FORM,
    A_PROMPT,
    A_ROOTS,
    ADA,
    BOB,
    CALL_ID,
    DELIVERED,
    DONE,
    FORM,
    PAUSED,
    PROMPT,
    ROOTS,
    SAID,
    answered,
    call,
    cancelled,
    form,
    inputs,
    leg,
    log_line,
    logged,
    progress,
    progressed,
    question,
    roots,
    sample,
    undeclared,
    walked_away,
)
from tests.support.playbook import Playbook

NAME = Question("elicitation_2", 1, "elicitation/create", FORM)
MODEL = Question("sampling_1", 2, "sampling/createMessage", PROMPT)


def left(*questions: Question, **more: object) -> Exchange:
    """A call that was left after its first round."""
    exchange = call()
    past = {"past_names": ["elicitation_1"], "past_ids": [0], "rounds": 2}
    exchange.restore(Standing(questions, **{**past, **more}))  # type: ignore[arg-type]
    return exchange


def test_a_call_goes_on_where_it_was_left() -> None:
    exchange = left(NAME)
    assert (
        Playbook(exchange)
        >> PAUSED
        << State.SUSPENDED
        >> Answered(leg({"elicitation_2": ADA}, progress="p", logs="info"))
        << answered(1, ADA)
        << Resume()
        << State.WAITING
        >> progressed(1)
        << progress("p", 1)
        >> logged("info", "on")
        << log_line("info", "on")
        >> form(2)
        << Gather()
        >> Quieted()
        << inputs(elicitation_3=A_FORM)
        >> Answered(leg({"elicitation_3": BOB}))
        << answered(2, BOB)
        >> DONE
        << DELIVERED
    )
    assert exchange.rounds == 3


def test_what_a_stream_repeats_is_known() -> None:
    assert (
        Playbook(left(NAME))
        >> form(0)
        >> form(1)
        << State.SUSPENDED
        >> Answered(leg({"elicitation_2": ADA}))
        << (answered(1, ADA))
        << State.WAITING
        >> form(0)
        >> form(1)
        << State.WAITING
    )


def test_an_id_of_another_type_is_another_question() -> None:
    asked_again = Playbook(left(NAME)) >> form("1") >> Answered(leg({"elicitation_2": ADA}))
    assert asked_again << answered(1, ADA) << inputs(elicitation_3=A_FORM)


def test_what_it_asked_while_nobody_heard_is_the_next_round() -> None:
    assert (
        Playbook(left(NAME))
        >> sample(2)
        >> Answered(leg({"elicitation_2": ADA}))
        << answered(1, ADA)
        << inputs(sampling_1=A_PROMPT)
        << State.SUSPENDED
    )


def test_answers_that_the_server_has_had_are_not_sent_again() -> None:
    assert (
        Playbook(left(NAME))
        >> sample(2)
        >> Answered(leg({"elicitation_2": ADA}), is_delivered=True)
        << inputs(sampling_1=A_PROMPT)
        >> Answered(leg({"sampling_1": SAID}))
        << answered(2, SAID)
        << State.WAITING
    )


def test_a_call_that_ended_meanwhile_has_its_outcome_delivered() -> None:
    assert (
        Playbook(left(NAME))
        >> DONE
        << State.SETTLED
        >> Answered(leg({"elicitation_2": ADA}), is_delivered=True)
        << DELIVERED
        << State.CLOSED
    )


def test_of_several_questions_the_rest_is_asked_again() -> None:
    assert (
        Playbook(left(NAME, MODEL))
        >> Answered(leg({"sampling_1": SAID}))
        << answered(2, SAID)
        << inputs(elicitation_2=A_FORM)
        << State.SUSPENDED
    )


def test_what_was_sent_ahead_of_its_question_is_not_forgotten() -> None:
    exchange = left(NAME, ahead={"roots_1": ROOTS})
    assert (
        Playbook(exchange)
        >> Answered(leg({"elicitation_2": ADA}))
        << answered(1, ADA)
        >> roots(2)
        << answered(2, ROOTS)
        << State.WAITING
    )


def test_what_the_retry_cannot_be_asked_ends_the_call() -> None:
    assert (
        Playbook(left(NAME, MODEL))
        >> Answered(leg({"elicitation_2": ADA}, capabilities={}))
        << answered(1, ADA)
        << question_refused()
        << cancelled("the client lacks a capability")
        << undeclared({"sampling": {}})
    )


def question_refused() -> object:
    """What sampling is answered when nobody will."""
    return MODEL.cancelled()


def test_a_call_that_nobody_comes_back_for_either_ends_as_any() -> None:
    assert Playbook(left(NAME)) >> Expired() << walked_away(1) << cancelled("nobody answered in time") << State.CLOSED


def test_an_exchange_stands_where_its_copy_is_put() -> None:
    one = call(names=("owner",))
    assert (
        Playbook(one)
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(owner=A_FORM)
        >> Answered(leg({"owner": ADA, "roots_1": ROOTS}))
        << answered(0, ADA)
        >> form("mail")
        << Gather()
        >> Quieted()
        << inputs(mail=A_FORM)
    )
    other = call(names=("owner",))
    other.restore(one.standing)
    assert other.standing == one.standing
    assert (other.state, other.rounds) == (State.SUSPENDED, 2)
    assert one.standing == Standing(
        questions=(Question("mail", "mail", "elicitation/create", FORM),),
        past_names=["owner"],
        past_ids=[0],
        ahead={"roots_1": ROOTS},
        rounds=2,
    )


# --- made again ---


def again(recorded: Recorded) -> Exchange:
    """The call, made anew."""
    return Exchange("tools/call", CALL_ID, leg(), recorded=recorded)


def recorded_answers() -> Recorded:
    """What a call records that asks twice and is answered."""
    recorded = Recorded()
    assert (
        Playbook(again(recorded))
        >> form(0)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1=A_FORM)
        >> Answered(leg({"elicitation_1": ADA}))
        << answered(0, ADA)
        >> sample(1)
        << Gather()
        >> Quieted()
        << inputs(sampling_1=A_PROMPT)
        >> Answered(leg({"sampling_1": SAID}))
        << answered(1, SAID)
    )
    return Recorded(recorded.to_members())


def test_a_call_that_is_made_again_is_answered_as_it_was() -> None:
    assert (
        Playbook(again(recorded_answers()))
        >> form(7)
        << answered(7, ADA)
        >> sample(8)
        << answered(8, SAID)
        << State.WAITING
        >> roots(9)
        << Gather()
        >> Quieted()
        << inputs(roots_1=A_ROOTS)
        >> Answered(leg({"roots_1": ROOTS}))
        << answered(9, ROOTS)
        >> DONE
        << DELIVERED
    )


def test_a_question_that_is_another_one_now_is_asked() -> None:
    other = {**FORM, "message": "Delete 5 files?"}
    assert (
        Playbook(again(recorded_answers()))
        >> question(7, "elicitation/create", other)
        << Gather()
        >> Quieted()
        << inputs(elicitation_1={"method": "elicitation/create", "params": other})
        >> Answered(leg({"elicitation_1": BOB}))
        << answered(7, BOB)
        >> sample(8)
        << answered(8, SAID)
    )


def test_an_id_that_the_server_makes_up_for_a_question_does_not_make_it_another_one() -> None:
    recorded = Recorded()
    page = {"mode": "url", "message": "Pay", "url": "https://pay.test/x", "elicitationId": "el-1"}
    accepted = {"action": "accept"}
    first = again(recorded)
    first.receive(question(0, "elicitation/create", page))
    first.receive(Quieted())
    first.receive(Answered(leg({"elicitation_1": accepted})))
    second = Playbook(again(Recorded(recorded.to_members())))
    assert second >> question(0, "elicitation/create", {**page, "elicitationId": "el-2"}) << answered(0, accepted)


def test_an_answer_that_was_sent_ahead_is_recorded_with_its_question() -> None:
    recorded = Recorded()
    assert (
        Playbook(Exchange("tools/call", CALL_ID, leg({"elicitation_1": ADA}), recorded=recorded))
        >> form(0)
        << (answered(0, ADA))
    )
    assert Playbook(again(Recorded(recorded.to_members()))) >> form(0) << answered(0, ADA)


def test_a_call_that_may_not_be_made_again_records_nothing() -> None:
    exchange = call({"elicitation_1": ADA})
    assert Playbook(exchange) >> form(0) << answered(0, ADA)
    assert exchange.recorded is None
