import pytest
from pydantic_core import PydanticCustomError

from gateway.config.values import (
    duration_text,
    parse_duration,
    parse_size,
    parse_whole,
    size_text,
    split_texts,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("60s", 60.0),
        ("10m", 600.0),
        ("1h", 3600.0),
        ("1.5h", 5400.0),
        ("2 m", 120.0),
        ("90", 90.0),
        (90, 90.0),
        (0.25, 0.25),
        ("0s", 0.0),
    ],
)
def test_duration_is_read_as_people_write_it(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written", ["soon", "", "-1s", "1d", "1e9", "inf", "nan", "5 minutes", "9" * 400, True, None, []]
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a duration"):
        parse_duration(written)


@pytest.mark.parametrize("text", ["60s", "90s", "10m", "5m", "60ms", "1.5s", "0s", "24h", "1s"])
def test_duration_is_written_as_it_was_read(text: str) -> None:
    assert duration_text(parse_duration(text)) == text.replace("1.5s", "1500ms")


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4MiB", 4 * 1024**2),
        ("64KB", 64_000),
        ("64kib", 65_536),
        ("1GiB", 1024**3),
        ("2 GB", 2_000_000_000),
        ("1.5KiB", 1536),
        ("12B", 12),
        ("4194304", 4_194_304),
        (4_194_304, 4_194_304),
    ],
)
def test_size_is_read_as_people_write_it(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["big", "", "-1", "4M", "0.3", "4MiBs", "4Mb/s", False, None])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a size"):
        parse_size(written)


@pytest.mark.parametrize("text", ["4MiB", "64KiB", "1GiB", "1000", "1536KiB"])
def test_size_is_written_as_it_was_read(text: str) -> None:
    assert size_text(parse_size(text)) == text


@pytest.mark.parametrize(("written", "number"), [("8080", 8080), (7, 7), (" 7 ", 7), ("-1", -1)])
def test_whole_number_is_read_from_text_too(written: object, number: int) -> None:
    assert parse_whole(written) == number


@pytest.mark.parametrize("written", ["1.0", 1.5, "x", "", True, None, "٣", "1_000", "9" * 5000])
def test_what_is_no_whole_number_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a whole number"):
        parse_whole(written)


@pytest.mark.parametrize(
    ("written", "items"),
    [(None, []), ("", []), ("a, b\nc,,", ["a", "b", "c"]), (["a, b"], ["a, b"]), ({"a": 1}, {"a": 1})],
)
def test_text_is_split_into_a_list_and_all_else_is_left(written: object, items: object) -> None:
    assert split_texts(written) == items
