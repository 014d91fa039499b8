from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.cursors import MAX_CURSOR_CHARS, MAX_PAGES, Cursors, Place, cursor_of
from gateway.core.tokens import Sealer
from gateway.errors import ProtocolError

TOOLS, PROMPTS = "tools/list", "prompts/list"
KEY = Fernet.generate_key()
PLACES = [Place("docs", "", 3, 1, "ab", True), Place("git")]

places = st.builds(
    Place,
    upstream=st.sampled_from(["docs", "git"]),
    cursor=st.none() | st.text(max_size=20),
    skip=st.integers(0, 1000),
    pages=st.integers(0, MAX_PAGES),
    mark=st.text("0123456789abcdef", max_size=16),
    is_known=st.booleans(),
)


def cursors(now_s: float = 1000.0, key: bytes = KEY) -> Cursors:
    return Cursors(Sealer(MultiFernet([Fernet(key)])), 60.0, lambda: now_s)


@given(st.lists(places, max_size=5))
def test_a_cursor_leads_to_its_places_on_any_replica(there: list[Place]) -> None:
    assert cursors().open(cursors().seal(TOOLS, "alice", there), TOOLS, "alice") == there


@pytest.mark.parametrize(
    ("method", "principal", "now_s", "reason"),
    [
        (PROMPTS, "alice", 1000.0, "of another list or principal"),
        (TOOLS, "bob", 1000.0, "of another list or principal"),
        (TOOLS, "alice", 1060.0, "expired"),
    ],
)
def test_a_cursor_is_good_for_its_list_its_principal_and_its_time(
    method: str, principal: str, now_s: float, reason: str
) -> None:
    sealed = cursors().seal(TOOLS, "alice", PLACES)
    assert cursors(1059.0).open(sealed, TOOLS, "alice") == PLACES
    with pytest.raises(ProtocolError) as refused:
        cursors(now_s).open(sealed, method, principal)
    assert (refused.value.code, refused.value.reason) == (-32602, reason)


@pytest.mark.parametrize("damaged", ["", "p2", "gAAAA", "=", " "])
def test_what_is_no_cursor_is_refused_with_the_one_message(damaged: str) -> None:
    expected = "Invalid or expired cursor; begin the list again without one"
    with pytest.raises(ProtocolError, match=expected) as refused:
        cursors().open(damaged, TOOLS, "alice")
    assert (refused.value.code, refused.value.status) == (-32602, 400)


def test_a_cursor_does_not_open_with_another_key_or_with_anything_added() -> None:
    sealed = cursors().seal(TOOLS, "alice", PLACES)
    for token, key in ((sealed, Fernet.generate_key()), (sealed + "-TAMPERED", KEY), (sealed[:-1], KEY)):
        with pytest.raises(ProtocolError):
            cursors(key=key).open(token, TOOLS, "alice")


def test_no_other_token_of_the_gateway_is_a_cursor() -> None:
    sealer = Sealer(MultiFernet([Fernet(KEY)]))
    for payload in ({"v": 1, "kind": "suspended"}, payload_with(), payload_with([["docs", None, 0, 0, "", False, 1]])):
        with pytest.raises(ProtocolError):
            cursors().open(sealer.seal(payload), TOOLS, "alice")


def payload_with(places: Any = None) -> dict[str, Any]:
    sealed = cursors().seal(TOOLS, "alice", [])
    payload = Sealer(MultiFernet([Fernet(KEY)])).open(sealed)
    del payload["places"]
    return payload if places is None else {**payload, "places": places}


# --- the end of lists ---


def walked(cursors_given: list[str]) -> int:
    """How many pages are looked at of a list whose pages have these cursors, over and over again."""
    place: Place | None = Place("docs")
    pages = 0
    while place is not None and pages < len(cursors_given):
        place = place.following(cursors_given[pages])
        pages += 1
    return pages


@given(st.lists(st.text(max_size=3), unique=True, max_size=60))
def test_every_page_of_a_list_that_ends_is_reachable(different: list[str]) -> None:
    assert walked(different) == len(different)


@given(st.integers(0, 40), st.integers(1, 40))
def test_a_list_that_goes_in_a_circle_is_ended_soon(before: int, circle: int) -> None:
    given_out = [str(number) for number in range(before)]
    given_out += [f"c{number % circle}" for number in range(100_000 // circle)]
    assert walked(given_out[:10_000]) <= 4 * (before + circle) + 2


def test_a_list_of_too_many_pages_is_ended() -> None:
    assert walked([str(number) for number in range(MAX_PAGES + 10)]) == MAX_PAGES + 1


def test_a_cursor_beyond_all_bounds_ends_the_list() -> None:
    assert Place("docs").following("x" * MAX_CURSOR_CHARS) is not None
    assert Place("docs").following("x" * (MAX_CURSOR_CHARS + 1)) is None


@pytest.mark.parametrize(
    ("result", "cursor"),
    [({}, None), ({"nextCursor": None}, None), ({"nextCursor": ""}, ""), ({"nextCursor": 7}, None)],
)
def test_an_empty_cursor_is_a_cursor(result: dict[str, Any], cursor: str | None) -> None:
    assert cursor_of(result) == cursor


def test_the_cursors_of_many_upstreams_fit_into_one() -> None:
    many = [Place(f"upstream-{number}", "x" * MAX_CURSOR_CHARS) for number in range(40)]
    assert cursors().open(cursors().seal(TOOLS, "alice", many), TOOLS, "alice") == many
