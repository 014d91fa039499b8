from typing import Any

import pytest
import yaml

from gateway.config.load import from_mapping
from gateway.config.review import summary, warnings
from gateway.config.review_merging import _DEFAULTS

KEY = "A" * 43 + "="
DIGEST = "ab" * 32


def configured(upstream: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """A configuration without anything to warn of, changed."""
    docs = {"url": "https://docs.example.com/mcp", **(upstream or {})}
    return {"state": {"keys": KEY}, "upstreams": {"docs": docs}, **sections}


def several(docs: dict[str, Any], git: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A configuration of two upstreams."""
    tree = configured(docs, **sections)
    tree["upstreams"]["git"] = {"url": "https://git.example.com/mcp", **git}
    return tree


API_KEY = {"type": "api_key", "keys": [{"name": "alice", "sha256": DIGEST}]}
SECRET = {"headers": {"Authorization": "Bearer topsecret"}}
STDIO = {"url": None, "command": "sh"}
STICKY = {"sessions": {"reuse": "sticky"}}
SHARED = {"keys": KEY, "store": "redis://redis.example.com:6379/0"}
EVERYWHERE = {"host": "0.0.0.0", "allowed_hosts": ["mcp.example.com"]}


@pytest.mark.parametrize(
    "quiet",
    [
        configured(),
        configured(SECRET),
        configured(SECRET | {"url": "http://127.0.0.1:8000/mcp"}),
        configured(SECRET | {"url": "http://localhost:8000/mcp"}),
        configured({"url": "http://docs.internal/mcp"}),
        configured(STDIO),
        configured(STDIO | {"command": "./sh", "cwd": "/bin"}),
        configured(SECRET, server=EVERYWHERE, auth=API_KEY),
        configured(server=EVERYWHERE),
        configured(server={"lame_duck": "5s", "drain": "6s"}),
        configured(server={"lame_duck": "0s", "drain": "0s"}),
        configured(prefix="always", partial="fail", page_size=10),
        configured({"tools": {"rename": {"a": "b", "b": "a"}, "describe": {"b": "Ours"}}}),
        configured(STICKY),
        configured(STICKY, state=SHARED),
        configured(STICKY, server=EVERYWHERE, auth=API_KEY),
        configured(STICKY | {"auth": {"type": "passthrough"}}, server=EVERYWHERE),
        configured(STICKY | STDIO),
        configured(STDIO, state=SHARED),
        several({}, {}),
        several({}, {}, partial="fail", list_timeout="1s", page_size=10),
    ],
)
def test_ordinary_configuration_is_no_reason_to_warn(quiet: dict[str, Any]) -> None:
    assert warnings(from_mapping(quiet)) == ()


@pytest.mark.parametrize(
    ("suspicious", "warning"),
    [
        (configured(STICKY, server=EVERYWHERE), "upstreams.docs.sessions.reuse: sticky while auth.type is none"),
        (configured(STICKY | STDIO, state=SHARED), "upstreams.docs.sessions.reuse: sticky, but sessions of this kind"),
        (configured(STICKY | {"transport": "sse"}, state=SHARED), "upstreams.docs.sessions.reuse: sticky, but"),
        (configured(state={}), "state.keys: none, so a key is made at each start"),
        (configured(server={"host": "0.0.0.0"}), "server.allowed_hosts: none while bound to 0.0.0.0"),
        (configured(server={"lame_duck": "5s", "drain": "5s"}), "server.lame_duck: 5s, not less than server.drain"),
        (configured(server={"host": "::"}), "server.allowed_hosts: none while bound to ::"),
        (configured(SECRET, server=EVERYWHERE), "auth.type: none while bound to 0.0.0.0"),
        (configured(SECRET, server={"host": "10.0.0.1"}), "auth.type: none while bound to 10.0.0.1"),
        (configured(SECRET | {"url": "http://docs.internal/mcp"}), "upstreams.docs.url: http:// to another machine"),
        (
            configured(STDIO | {"env": {"TOKEN": "topsecret"}}, server=EVERYWHERE),
            "auth.type: none while bound to 0.0.0.0",
        ),
        (
            configured(STDIO | {"command": "no-such-program"}),
            "upstreams.docs.command: not found here; install it where the gateway runs",
        ),
        (
            configured(STDIO | {"command": "sh -c server"}),
            "upstreams.docs.command: not found here; write what follows the first word under args",
        ),
        (configured(STDIO | {"command": "./sh", "cwd": "/etc"}), "upstreams.docs.command: not found here"),
        (
            configured({"url": "http://docs.internal/mcp", "auth": {"type": "passthrough"}}),
            "upstreams.docs.url: http:// to another machine",
        ),
        (
            configured({"timeout": "15m"}),
            "upstreams.docs.timeout: longer than max_duration, which ends every call after 10m",
        ),
        (configured(partial="fail"), "partial: has no effect on a single upstream; remove it, or write prefix: always"),
        (configured(page_size=10), "page_size: has no effect on a single upstream"),
        (configured(prefix="never", list_timeout="1s"), "list_timeout: has no effect on a single upstream"),
        (
            configured({"tools": {"exclude": ["s*"], "rename": {"search": "find"}}}),
            "upstreams.docs.tools.rename.search: not offered, see include and exclude; remove one of them",
        ),
        (
            configured({"tools": {"include": ["get"], "describe": {"search": "Ours"}}}),
            "upstreams.docs.tools.describe.search: not offered, see include and exclude",
        ),
        (
            configured({"tools": {"rename": {"search": "find"}, "describe": {"find": "Ours"}}}),
            "upstreams.docs.tools.describe.find: hidden, since search is renamed to it; rename it too",
        ),
        (several({}, {}, prefix="never"), "prefix: never while there are several upstreams, so where two have"),
    ],
)
def test_what_may_surprise_is_said_in_one_line(suspicious: dict[str, Any], warning: str) -> None:
    (said,) = warnings(from_mapping(suspicious))
    assert said.startswith(warning)
    assert "\n" not in said


def test_tools_that_are_given_one_name_without_a_prefix_clash() -> None:
    rename = {"tools": {"rename": {"search": "find"}}}
    assert warnings(from_mapping(several(rename, rename))) == ()
    (_never, clash) = warnings(from_mapping(several(rename, rename, prefix="never")))
    assert clash == "upstreams.git.tools.rename.search: docs has a tool named find too; choose another"


def test_the_defaults_that_need_no_warning_are_those_of_the_model() -> None:
    settings = from_mapping(configured())
    assert (settings.partial, settings.list_timeout_s, settings.page_size) == tuple(_DEFAULTS.values())


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


def test_summary_of_a_stdio_server_shows_how_it_is_started_and_none_of_its_secrets() -> None:
    args = ["server", "--token", "topsecret", "--api-key=topsecret", "-v"]
    settings = from_mapping(configured(STDIO | {"args": args, "env": {"TOKEN": "topsecret", "EMPTY": None}}))
    shown = yaml.safe_load(summary(settings))["upstreams"]["docs"]
    assert shown["args"] == ["server", "--token", "***", "--api-key=***", "-v"]
    assert shown["env"] == {"TOKEN": "***", "EMPTY": "***"}
    assert (shown["command"], shown["connect_timeout"], shown["sessions"]["max"]) == ("sh", "60s", 16)
    assert "topsecret" not in summary(settings) + repr(settings)
