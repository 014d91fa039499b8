"""The official modern client hears what changes on a server, and what a server logs."""

from collections.abc import Iterator

import pytest

from tests.support import modern_client
from tests.support.conformance import PROFILES
from tests.support.modern_client import Operation, Session, call
from tests.support.processes import gateway

pytestmark = pytest.mark.contract

SERVERS = [name for name in PROFILES if "2025-" not in name]
WATCHED = "test://watched-resource"


def _listen(during: Operation, **to: object) -> Operation:
    return {"do": "listen", "to": to, "during": during}


OPERATIONS = {
    "tools": _listen(call("test_trigger_tool_change"), tools_list_changed=True),
    "prompts": _listen(call("test_trigger_prompt_change"), prompts_list_changed=True),
    "resource": _listen(call("trigger_resource_update", {"uri": WATCHED}), resource_subscriptions=[WATCHED]),
    "all levels": call("test_logging_tool", log_level="debug"),
    "errors": call("test_logging_tool", log_level="error"),
    "no level": call("test_logging_tool"),
    "progress": call("test_tool_with_progress"),
}


@pytest.fixture(scope="module", params=SERVERS)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with PROFILES[request.param]() as server, gateway({"fixture": {"url": server.url}}) as front:
        yield modern_client.run(front.url, OPERATIONS)


@pytest.mark.parametrize(
    ("label", "event"),
    [("tools", "ToolsListChanged"), ("prompts", "PromptsListChanged"), ("resource", "ResourceUpdated")],
)
def test_it_hears_what_changed(session: Session, label: str, event: str) -> None:
    assert session.result(label)["event"] == event


@pytest.mark.parametrize(("label", "count"), [("all levels", 8), ("errors", 4), ("no level", 0)])
def test_it_hears_the_log_from_the_level_that_it_asked_for(session: Session, label: str, count: int) -> None:
    assert session.text(label) == "Logged at every level"
    levels = [message["level"] for message in session.outcomes[label]["logs"]]
    assert levels == ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"][8 - count :]


def test_it_hears_all_progress_in_order(session: Session) -> None:
    assert [report["progress"] for report in session.outcomes["progress"]["progress"]] == [0, 50, 100]
