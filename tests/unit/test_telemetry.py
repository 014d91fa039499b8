"""gateway.telemetry: each thing that is logged is one line of JSON, and says no more than it should."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from gateway import telemetry

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    """Configure logging, and read what was logged."""
    written = io.BytesIO()
    before, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    stderr = io.TextIOWrapper(written, write_through=True)  # closes what it wraps when it goes: so it stays
    monkeypatch.setattr(sys, "stderr", stderr)
    telemetry.configure("info")
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    stderr.detach()


def test_a_line_has_what_there_is_to_say(lines: Lines) -> None:
    structlog.get_logger().info("request", status=200, code=None, target="a\nb")
    [line] = lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "info", "event": "request", "status": 200, "target": "a\nb"}


def test_what_is_below_the_level_is_not_there(lines: Lines) -> None:
    structlog.get_logger().debug("header mismatch")
    assert lines() == []


@pytest.mark.parametrize("value", ["\ud800", {"a": "\udfff"}, 2**70, object(), {1: 2}, b"\xff", float("nan")])
def test_any_value_can_be_told(lines: Lines, value: Any) -> None:
    structlog.get_logger().info("odd", value=value)
    assert [line["event"] for line in lines()] == ["odd"]


def fail() -> None:
    try:
        int("a secret")
    except ValueError as error:
        raise RuntimeError("another secret") from error


def test_of_an_exception_there_are_frames_and_types_and_not_its_text(lines: Lines) -> None:
    try:
        fail()
    except RuntimeError:
        structlog.get_logger().exception("unforeseen failure")
    [line] = lines()
    assert line["level"] == "error"
    assert line["exception"].index("ValueError") < line["exception"].index("RuntimeError")
    assert "in fail" in line["exception"]
    assert "a secret" not in line["exception"].replace('int("a secret")', "")
    assert "another secret" not in line["exception"].replace('RuntimeError("another secret")', "")


def test_libraries_log_in_lines_of_json(lines: Lines) -> None:
    try:
        fail()
    except RuntimeError:
        logging.getLogger("some.package").exception("Exception in %s\n", "an application")
    logging.getLogger("some.package").info("not told")
    [line] = lines()
    assert (line["level"], line["logger"], line["event"]) == ("error", "some.package", "Exception in an application\n")
    assert line["exception"].endswith("RuntimeError")


async def test_a_failure_in_the_loop_is_told_without_its_text(lines: Lines) -> None:
    loop = asyncio.get_running_loop()
    context = {"message": "Task exception was never retrieved", "exception": ValueError("a secret"), "future": "secret"}
    telemetry.log_loop_failure(loop, context)
    await asyncio.sleep(2 * telemetry.FLUSH_AFTER_S)  # lines are written together: this is that time
    [line] = lines()
    assert (line["event"], line["what"]) == ("background work failed", "Task exception was never retrieved")
    assert line["exception"] == "ValueError"
    assert "secret" not in json.dumps(line)
