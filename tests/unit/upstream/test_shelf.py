from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.shelf import Shelf

MIB = 1 << 20


def put(shelf: Shelf, key: object, size: int) -> None:
    shelf.put(key, {"x": "y" * size}, now_s=5.0, expires_s=9.0)


def test_what_was_kept_comes_back_as_an_object_of_its_own() -> None:
    shelf = Shelf(MIB)
    result: dict[str, Any] = {"tools": [{"n": 12345678901234567890123, "t": "\ud83d"}]}
    shelf.put("k", result, now_s=5.0, expires_s=9.0)
    kept = shelf.get("k")
    assert kept is not None
    assert (kept.kept_at_s, kept.expires_s) == (5.0, 9.0)
    assert kept.result() == result
    assert kept.result() is not kept.result()
    assert shelf.get("other") is None


def test_the_one_not_needed_for_longest_makes_room() -> None:
    shelf = Shelf(10 * MIB)
    for key in range(9):
        put(shelf, key, MIB)
    shelf.get(0)
    put(shelf, 9, MIB)
    assert [key for key in range(10) if shelf.get(key) is not None] == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_one_that_is_too_large_is_not_kept_and_drives_out_nothing_but_its_own_predecessor() -> None:
    shelf = Shelf(8 * MIB)
    put(shelf, "other", 10)
    put(shelf, "k", 10)
    put(shelf, "k", 2 * MIB)
    assert shelf.get("k") is None
    assert shelf.get("other") is not None


def test_what_is_no_json_is_not_kept() -> None:
    shelf = Shelf(MIB)
    shelf.put("k", {"x": float("nan"), "y": 10**30}, now_s=0.0)
    assert len(shelf) == 0


def test_what_is_dropped_is_gone() -> None:
    shelf = Shelf(MIB)
    put(shelf, "k", 10)
    shelf.drop("k")
    shelf.drop("k")
    assert (len(shelf), shelf.size_bytes) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30_000))))
def test_the_bound_holds_and_the_count_is_right(puts: list[tuple[int, int]]) -> None:
    shelf = Shelf(100_000)
    for key, size in puts:
        put(shelf, key, size)
        assert shelf.size_bytes <= 100_000
    for key in range(10):
        shelf.drop(key)
    assert (len(shelf), shelf.size_bytes) == (0, 0)
