"""What a request state carries for the death of a replica: enough to go on with the call, and not too much."""

import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet

from gateway.core.questions import Question
from gateway.core.recovery import (
    MAX_BYTES,
    Provision,
    RecoveryPoint,
    Standing,
    page_members,
    provide,
    questions_in,
    to_pages,
)
from gateway.core.request_state import RequestState, RequestStateSealer, digest
from gateway.core.tokens import Sealer

FORM = Question("elicitation_1", 0, "elicitation/create", {"message": "Who?", "requestedSchema": {"type": "object"}})
ROOTS = Question("roots_1", "r", "roots/list", {})
STANDING = Standing((FORM, ROOTS), ["owner"], [7, "7"], {"sampling_1": {"role": "user"}}, 3)
POINT = RecoveryPoint("call-7", "sess-1", "2025-11-25", {"name": "u", "version": "1"}, "e-5", 100, STANDING)
WHERE = {"session": "sess-1", "version": "2025-11-25", "call": "call-7"}
LARGE: dict[str, Any] = {"message": "x" * MAX_BYTES}


def nested(depth: int) -> Any:
    """What cannot be written as JSON."""
    value: Any = {}
    for _ in range(depth):
        value = {"deeper": value}
    return value


def through_json(members: Any) -> Any:
    """What becomes of members in a token."""
    return json.loads(json.dumps(members))


@pytest.mark.parametrize(
    "point",
    [
        POINT,
        replace(POINT, event_id=None, retry_ms=None, server_info=None),
        replace(POINT, standing=Standing((FORM,), [], [], {}, 1)),
        POINT.tied(),
    ],
)
def test_a_point_is_what_it_was(point: RecoveryPoint) -> None:
    back = RecoveryPoint.from_members(through_json(point.to_members(in_full=True)))
    assert back.to_members(in_full=True) == point.to_members(in_full=True)
    assert list(back.standing.questions) == list(point.standing.questions)
    assert [type(request_id) for request_id in back.standing.past_ids] == [
        type(request_id) for request_id in point.standing.past_ids
    ]


def test_a_call_that_is_not_to_be_gone_on_with_can_still_be_ended() -> None:
    assert POINT.to_members(in_full=False) == WHERE
    point = RecoveryPoint.from_members(WHERE)
    assert (point.session_id, point.request_id, point.version) == ("sess-1", "call-7", "2025-11-25")
    assert not point.is_resumable


def test_what_says_nothing_takes_no_room() -> None:
    members = replace(POINT, standing=Standing((FORM,))).to_members(in_full=True)
    assert set(members) == {"session", "version", "call", "event", "retry", "info", "asked"}


@pytest.mark.parametrize(
    "standing",
    [
        Standing((replace(FORM, params=LARGE),)),
        Standing((FORM,), ahead={"a": LARGE}),
        Standing((FORM,), past_ids=["i" * MAX_BYTES]),
        Standing((replace(FORM, params=nested(5000)),)),
    ],
)
def test_what_is_too_much_for_a_token_is_left_out(standing: Standing) -> None:
    assert replace(POINT, standing=standing).to_members(in_full=True) == WHERE
    assert provide(replace(POINT, standing=standing), {"a": 1}, resumes=True) == Provision(WHERE)


@pytest.mark.parametrize(
    ("point", "answers", "resumes", "is_enough"),
    [
        (POINT, None, True, True),
        (POINT, None, False, False),
        (POINT, {}, False, True),
        (replace(POINT, event_id=None), None, True, False),
        (replace(POINT, event_id=None), {}, True, True),
        (POINT.tied(), None, True, False),
        (POINT.tied(), {}, True, True),
        (POINT, LARGE, True, True),
        (POINT, LARGE, False, False),
    ],
)
def test_questions_are_carried_where_somebody_could_use_them(
    point: RecoveryPoint, answers: Any, resumes: bool, is_enough: bool
) -> None:
    provision = provide(point, answers, resumes=resumes)
    assert provision.is_enough is is_enough
    assert provision.names_session is (is_enough and point.session_id is not None)
    assert provision.recovery is not None
    assert list(questions_in(provision.recovery)) == ([FORM, ROOTS] if is_enough else [])
    assert provision.answers == (None if answers is LARGE else answers)


def test_pages_are_carried_whatever_waits_for_them() -> None:
    members = through_json(page_members((FORM,)))
    assert to_pages(members) == (FORM,)
    assert questions_in(members) == (FORM,)
    assert to_pages(WHERE) is None
    assert page_members((replace(FORM, params=LARGE),)) is None


# --- in the token ---

STATE = RequestState("suspended", "docs", digest("alice"), "r", 1000.0, "handle", "owner")


def sealer() -> RequestStateSealer:
    return RequestStateSealer(Sealer(MultiFernet([Fernet(Fernet.generate_key())])), lambda: 0.0)


def test_a_token_carries_a_point_and_answers() -> None:
    seals = sealer()
    state = replace(STATE, recovery=POINT.to_members(in_full=True), answers={"elicitation_1": ["d", {}]})
    opened = seals.open(seals.seal(state), upstream="docs", principal_id="alice", request="r")
    assert opened == state


def test_a_token_of_a_release_without_recovery_still_opens() -> None:
    keys = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))
    names = ("kind", "upstream", "principal", "request", "expires_s", "handle", "owner")
    old = {"v": 1, **{name: getattr(STATE, name) for name in names}}
    opened = RequestStateSealer(keys, lambda: 0.0).open(
        keys.seal(old), upstream="docs", principal_id="alice", request="r"
    )
    assert (opened.recovery, opened.answers) == (None, None)


def test_a_token_of_a_common_call_stays_short() -> None:
    state = replace(STATE, recovery=POINT.to_members(in_full=True))
    assert len(sealer().seal(state)) < 2000
