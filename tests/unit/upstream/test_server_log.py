import pytest
import structlog.testing

from gateway.upstream.lines import Overlong
from gateway.upstream.server_log import MOST_LINES, PERIOD_S, ServerLog


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def logged(log: ServerLog, *lines: bytes) -> list[str]:
    with structlog.testing.capture_logs() as entries:
        for line in lines:
            log.write("stderr", line)
    return [entry["line"] for entry in entries if entry["event"] == "server output"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"  ready  ", ["ready"]),
        (b"", []),
        (b" \r", []),
        ("héllo ✓".encode(), ["héllo ✓"]),
        (b"\xff\x1b[31mred\x00", ["\N{REPLACEMENT CHARACTER} [31mred"]),
        (b"x" * 1001, ["x" * 1000 + "..."]),
    ],
)
def test_a_line_is_logged_as_what_can_be_read_of_it(line: bytes, shown: list[str]) -> None:
    assert [text.strip() for text in logged(ServerLog("git"), line)] == shown


def test_a_line_over_the_limit_is_its_beginning() -> None:
    log = ServerLog("git")
    with structlog.testing.capture_logs() as entries:
        log.write("stdout", Overlong(b"begin", b"end"))
    assert entries == [
        {"event": "server output", "log_level": "info", "upstream": "git", "stream": "stdout", "line": "begin"}
    ]


def test_secrets_are_not_shown_and_short_words_are_none() -> None:
    log = ServerLog("git", ["topsecret", "topsecret-and-more", "1", "true", ""])
    assert logged(log, b"1 topsecret-and-more true", b"xtopsecretx") == ["1 *** true", "x***x"]
    assert log.last == ["1 *** true", "x***x"]


def test_a_flood_is_cut_and_counted_and_what_comes_later_is_logged_again() -> None:
    clock = Clock()
    log = ServerLog("git", now_s=clock)
    assert len(logged(log, *[b"x"] * (MOST_LINES + 7))) == MOST_LINES
    clock.now_s += PERIOD_S
    with structlog.testing.capture_logs() as entries:
        log.write("stderr", b"again")
    assert [(entry["event"], entry.get("lines"), entry.get("line")) for entry in entries] == [
        ("server output left out", 7, None),
        ("server output", None, "again"),
    ]


def test_the_last_lines_are_kept_whether_or_not_they_were_logged() -> None:
    log = ServerLog("git")
    logged(log, *(f"line {number}".encode() for number in range(2 * MOST_LINES)))
    assert log.last == [f"line {number}" for number in range(2 * MOST_LINES - 5, 2 * MOST_LINES)]
