"""Three real servers of two eras behind one endpoint: for the official runner, and for the official modern client."""

import json
from collections.abc import Iterator, Mapping

import pytest

from tests.support import modern_client
from tests.support.conformance import assert_passed
from tests.support.conformance import run as run_conformance
from tests.support.modern_client import Operation, Session, call
from tests.support.processes import gateway, legacy_python, legacy_typescript, modern_python

pytestmark = pytest.mark.contract

NAMES = ("python", "typescript", "modern")
CLAIMED = 40
"""The scenarios that are claimed for each server alone; those of the tasks extension are not."""


@pytest.fixture(scope="module")
def upstreams() -> Iterator[Mapping[str, Mapping[str, str]]]:
    """Servers that have the same tools, prompts and resources."""
    with legacy_python() as python, legacy_typescript() as typescript, modern_python() as modern:
        servers = (python, typescript, modern)
        yield {name: {"url": server.url} for name, server in zip(NAMES, servers, strict=True)}


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]], ids=lambda order: f"{order[0]} first")
def test_the_runner_finds_no_fault_whoever_comes_first(
    upstreams: Mapping[str, Mapping[str, str]], order: tuple[str, ...]
) -> None:
    with gateway({name: upstreams[name] for name in order}, prefix="never", cache={"ttl": "1m"}) as front:
        checks = run_conformance(front.url)
    claimed = [scenario for scenario in checks if not scenario.startswith("tasks-")]
    assert len(claimed) == CLAIMED
    for scenario in claimed:
        assert_passed(checks[scenario])


def _listen(during: Operation, **to: object) -> Operation:
    return {"do": "listen", "to": to, "during": during}


OPERATIONS: dict[str, Operation] = {
    "tools": {"do": "list_tools"},
    "prompts": {"do": "list_prompts"},
    "resources": {"do": "list_resources"},
    "templates": {"do": "list_resource_templates"},
    "resource": {"do": "read_resource", "uri": "test://static-text"},
    "template": {"do": "read_resource", "uri": "test://template/7/data"},
}
for name in NAMES:
    OPERATIONS |= {
        f"{name} counts before": call(f"{name}__count_executions"),
        f"{name} text": call(f"{name}__test_simple_text"),
        f"{name} progress": call(f"{name}__test_tool_with_progress"),
        f"{name} log": call(f"{name}__test_logging_tool", log_level="debug"),
        f"{name} header": call(f"{name}__custom_header_region", {"region": "eu"}),
        f"{name} form": call(f"{name}__test_input_required_result_elicitation", answers={"name": "Ada"}),
        f"{name} rounds": call(
            f"{name}__test_input_required_result_multi_round", answers={"name": "Ada", "color": "blue"}
        ),
        f"{name} prompt": {
            "do": "get_prompt",
            "name": f"{name}__test_input_required_result_prompt",
            "answers": {"context": "rain"},
        },
        f"{name} completion": {
            "do": "complete",
            "ref": {"type": "ref/prompt", "name": f"{name}__test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "t"},
        },
        f"{name} change": _listen(call(f"{name}__test_trigger_tool_change"), tools_list_changed=True),
        f"{name} counts": call(f"{name}__count_executions"),
    }


@pytest.fixture(scope="module")
def session(upstreams: Mapping[str, Mapping[str, str]]) -> Iterator[Session]:
    with gateway(upstreams) as front:
        yield modern_client.run(front.url, OPERATIONS)


def test_the_client_finds_everything_once(session: Session) -> None:
    assert session.connection["serverInfo"]["name"] == "era-gateway"
    for label, member in (("tools", "tools"), ("prompts", "prompts")):
        names = [entry["name"] for entry in session.result(label)[member]]
        assert len(names) == len(set(names))
        assert {name.partition("__")[0] for name in names} == set(NAMES)
    uris = [entry["uri"] for entry in session.result("resources")["resources"]]
    assert len(uris) == len(set(uris)) > 0


@pytest.mark.parametrize("name", NAMES)
def test_each_server_does_what_it_does_alone(session: Session, name: str) -> None:
    assert session.text(f"{name} text")
    assert [report["progress"] for report in session.outcomes[f"{name} progress"]["progress"]] == [0, 50, 100]
    assert len(session.outcomes[f"{name} log"]["logs"]) == 8
    assert "eu" in session.text(f"{name} header")
    assert session.result(f"{name} completion")["completion"]["values"]
    assert session.result(f"{name} change")["event"] == "ToolsListChanged"


@pytest.mark.parametrize("name", NAMES)
def test_each_server_asks_and_is_answered(session: Session, name: str) -> None:
    assert "Ada" in session.text(f"{name} form")
    assert all(answer in session.text(f"{name} rounds") for answer in ("Ada", "blue"))
    assert "rain" in session.result(f"{name} prompt")["messages"][0]["content"]["text"]


def test_resources_are_read(session: Session) -> None:
    assert session.result("resource")["contents"][0]["text"]
    assert "7" in json.dumps(session.result("template")["contents"])


@pytest.mark.parametrize("name", NAMES[:2])
def test_what_asked_ran_exactly_once(session: Session, name: str) -> None:
    before, after = (json.loads(session.text(f"{name} {when}")) for when in ("counts before", "counts"))
    for tool in ("test_input_required_result_elicitation", "test_input_required_result_multi_round"):
        for what in ("started", "finished"):
            assert after[what][tool] - before[what].get(tool, 0) == 1
