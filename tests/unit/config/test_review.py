from typing import Any

import pytest
import yaml

from gateway.config.load import from_mapping
from gateway.config.review import capacity, rounds_allowed, summary, warnings

KEY = "A" * 43 + "="
DIGEST = "ab" * 32


def configured(upstream: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """A configuration without anything to warn of, changed."""
    docs = {"url": "https://docs.example.com/mcp", **(upstream or {})}
    return {"state": {"keys": KEY}, "upstreams": {"docs": docs}, **sections}


API_KEY = {"type": "api_key", "keys": [{"name": "alice", "sha256": DIGEST}]}
SECRET = {"headers": {"Authorization": "Bearer topsecret"}}
EVERYWHERE = {"host": "0.0.0.0", "allowed_hosts": ["mcp.example.com"]}


@pytest.mark.parametrize(
    "quiet",
    [
        configured(),
        configured(SECRET),
        configured(SECRET | {"url": "http://127.0.0.1:8000/mcp"}),
        configured(SECRET | {"url": "http://localhost:8000/mcp"}),
        configured({"url": "http://docs.internal/mcp"}),
        configured(SECRET, server=EVERYWHERE, auth=API_KEY),
        configured(server=EVERYWHERE),
    ],
)
def test_ordinary_configuration_is_no_reason_to_warn(quiet: dict[str, Any]) -> None:
    assert warnings(from_mapping(quiet)) == ()


@pytest.mark.parametrize(
    ("suspicious", "warning"),
    [
        (configured(state={}), "state.keys: none, so a key is made at each start"),
        (configured(server={"host": "0.0.0.0"}), "server.allowed_hosts: none while bound to 0.0.0.0"),
        (configured(server={"host": "::"}), "server.allowed_hosts: none while bound to ::"),
        (configured(SECRET, server=EVERYWHERE), "auth.type: none while bound to 0.0.0.0"),
        (configured(SECRET, server={"host": "10.0.0.1"}), "auth.type: none while bound to 10.0.0.1"),
        (configured(SECRET | {"url": "http://docs.internal/mcp"}), "upstreams.docs.url: http:// to another machine"),
        (
            configured({"url": "http://docs.internal/mcp", "auth": {"type": "passthrough"}}),
            "upstreams.docs.url: http:// to another machine",
        ),
        (
            configured({"timeout": "15m"}),
            "upstreams.docs.timeout: longer than max_duration, which ends every call after 10m",
        ),
        (configured(prefix="always"), "prefix: always has no effect in this release"),
        (configured(partial="fail"), "partial: fail has no effect in this release"),
    ],
)
def test_what_may_surprise_is_said_in_one_line(suspicious: dict[str, Any], warning: str) -> None:
    (said,) = warnings(from_mapping(suspicious))
    assert said.startswith(warning)
    assert "\n" not in said


def test_several_upstreams_are_said_to_have_an_endpoint_each() -> None:
    tree = configured()
    tree["upstreams"]["git"] = {"url": "https://git.example.com/mcp"}
    assert warnings(from_mapping(tree)) == (
        "upstreams: several are not merged in this release; give clients /mcp/NAME instead of /mcp",
    )


def test_a_suspended_round_is_counted_with_two_descriptors() -> None:
    settings = from_mapping(configured())
    assert rounds_allowed(settings, 20_000) - rounds_allowed(settings, 19_000) == 500


def test_descriptors_of_listeners_and_of_sessions_at_work_are_set_aside() -> None:
    ordinary = rounds_allowed(from_mapping(configured()), 20_000)
    more_listeners = configured(server={"max_listeners": 1100})
    assert ordinary - rounds_allowed(from_mapping(more_listeners), 20_000) == 50
    more_sessions = configured({"sessions": {"max": 74}})
    assert ordinary - rounds_allowed(from_mapping(more_sessions), 20_000) == 10


def test_fewer_descriptors_than_are_set_aside_allow_no_round() -> None:
    assert rounds_allowed(from_mapping(configured()), 256) == 0


def test_more_rounds_than_there_are_descriptors_for_are_said_in_one_line() -> None:
    settings = from_mapping(configured(rounds={"max": 5000}))
    (said,) = warnings(settings, descriptors=10_000)
    assert said.startswith("rounds.max: 5000, but 10000 open files allow 4372 suspended rounds")
    assert warnings(settings, descriptors=20_000) == ()


@pytest.mark.parametrize(
    ("descriptors", "said"),
    [
        (10_000, "10000 open files allow 4372 suspended rounds; rounds.max allows 1000"),
        (None, "open files are not limited; rounds.max allows 1000 suspended rounds"),
    ],
)
def test_capacity_says_how_many_rounds_the_descriptors_allow(descriptors: int | None, said: str) -> None:
    assert capacity(from_mapping(configured()), descriptors) == said


def test_summary_is_the_whole_configuration_as_it_can_be_written() -> None:
    settings = from_mapping(configured({"timeout": 90}, server={"admin": False}, rounds={"names": {"book": ["seat"]}}))
    written = yaml.safe_load(summary(settings))
    assert (written["server"]["admin"], written["server"]["max_body_bytes"]) == (False, "4MiB")
    assert written["upstreams"]["docs"]["timeout"] == "90s"
    assert written["rounds"]["names"] == {"book": ["seat"]}
    written["state"]["keys"] = KEY
    assert from_mapping(written) == settings


def test_summary_shows_no_secret() -> None:
    url = "https://docs.example.com/mcp?key=topsecret"
    text = summary(from_mapping(configured(SECRET | {"url": url}, auth=API_KEY)))
    assert not [secret for secret in ("topsecret", KEY, DIGEST) if secret in text]
    assert text.count("***") == 4
