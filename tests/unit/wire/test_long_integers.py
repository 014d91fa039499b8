"""Integers beyond 64 bits keep their value, wherever they stand; what looks like one in a string costs nothing."""

import json

import pytest

from gateway.wire.jsonrpc import decode

FILL = "x" * 600


@pytest.mark.parametrize("number", ["9223372036854775808123", "-12345678901234567890", "1234567890123456789"])
@pytest.mark.parametrize("before", range(20))
def test_a_long_integer_is_found_wherever_it_stands(number: str, before: int) -> None:
    text = f'{{"a":"{FILL}{"y" * before}","b":{number},"c":"{FILL}"}}'
    assert decode(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["1" * 50, "1234567 " * 200, "12345678901234567 " * 200, "0" * 5000])
def test_digits_in_a_string_are_no_number(text: str) -> None:
    assert decode(json.dumps([FILL + text, 7]).encode()) == [FILL + text, 7]


def test_many_numbers_that_are_nearly_long_do_not_hide_a_long_one() -> None:
    numbers = [10**17] * 200 + [10**25]
    assert decode(json.dumps(numbers).encode()) == numbers
