from typing import Any

import pytest
import yaml

from gateway.config.load import from_mapping
from gateway.config.review import summary, warnings

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
