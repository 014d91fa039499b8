"""What becomes of a client's list of servers."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.config.document import parse_document
from gateway.config.imports import Imported, import_text, upstream_names
from gateway.config.load import settle
from gateway.config.model import Settings
from gateway.config.names import is_upstream_name
from gateway.config.problems import ConfigError

TOKEN = "ghp_abcdEFGH1234567890abcdEFGH1234"
URL = "https://docs.example.com/mcp"


def imported(servers: Mapping[str, Any], key: str = "mcpServers", **more: Any) -> Imported:
    return import_text("mcp.json", json.dumps({key: servers, **more}))


def upstreams(found: Imported) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(found.text)["upstreams"]
    return read


def upstream(entry: Mapping[str, Any]) -> dict[str, Any]:
    [read] = upstreams(imported({"docs": entry})).values()
    return dict(read)


def settings(found: Imported, value: str = "set") -> Settings:
    """The settings that `check` would find, with every variable set."""
    environ = {"HOME": "/home/ada", **{variable.name: value for variable in found.variables}}
    return settle(*_swapped(parse_document("gateway.yaml", found.text), environ))


def _swapped(read: tuple[Any, list[Any]], environ: Mapping[str, str]) -> tuple[Any, Any, list[Any]]:
    return read[0], environ, read[1]


def refused(servers: Any, key: str = "mcpServers") -> list[str]:
    with pytest.raises(ConfigError) as error:
        import_text("mcp.json", json.dumps({key: servers}, indent=1))
    return str(error.value).splitlines()


# --- where servers stand, and how ---


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_servers_are_found_under_either_key(key: str) -> None:
    assert upstreams(imported({"docs": {"url": URL}}, key)) == {"docs": {"url": URL}}


def test_servers_are_found_in_an_editors_settings() -> None:
    found = import_text("settings.json", json.dumps({"editor.tabSize": 2, "mcp": {"servers": {"docs": {"url": URL}}}}))
    assert upstreams(found) == {"docs": {"url": URL}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "uvx", "args": ["x", 8080, True]}, {"command": "uvx", "args": ["x", "8080", "true"]}),
        ({"type": "stdio", "command": "uvx", "args": []}, {"command": "uvx"}),
        ({"command": ["uvx", "x"], "args": ["y"]}, {"command": "uvx", "args": ["x", "y"]}),
        ({"command": "uvx", "env": {"PORT": 1, "ON": False, "NONE": None}, "cwd": "/srv"}, None),
        ({"type": "http", "url": URL}, {"url": URL}),
        ({"type": "streamableHttp", "url": URL}, {"url": URL}),
        ({"transport": "streamable-http", "url": URL, "type": None}, {"url": URL}),
        ({"type": "sse", "url": URL}, {"url": URL, "transport": "sse"}),
        ({"serverUrl": URL}, {"url": URL}),
        ({"httpUrl": URL, "headers": {"X-Team": "blue", "X-Number": 7}}, None),
        ({"url": URL, "disabledTools": ["drop"]}, {"url": URL, "tools": {"exclude": ["drop"]}}),
        ({"url": URL, "includeTools": ["a"], "excludeTools": ["b"]}, None),
    ],
)
def test_the_ways_of_different_clients_to_say_the_same(entry: dict[str, Any], expected: dict[str, Any] | None) -> None:
    others = {
        "command": {"command": "uvx", "env": {"PORT": "1", "ON": "false"}, "cwd": "/srv"},
        "httpUrl": {"url": URL, "headers": {"X-Team": "blue", "X-Number": "7"}},
        "url": {"url": URL, "tools": {"include": ["a"], "exclude": ["b"]}},
    }
    assert upstream(entry) == (expected or others[next(iter(entry))])


def test_what_is_disabled_is_left_out_and_said() -> None:
    found = imported({"on": {"url": URL}, "off": {"url": "?", "disabled": True}, "out": {"x": 1, "enabled": False}})
    assert list(upstreams(found)) == ["on"]
    assert found.notes == (
        "mcp.json:1: mcpServers.off: left out: disabled",
        "mcp.json:1: mcpServers.out: left out: disabled",
    )


def test_what_only_the_client_has_is_left_out_and_said() -> None:
    found = imported(
        {
            "git": {"command": "uvx", "autoApprove": ["x"], "timeout": 60, "envFile": ".env", "headers": {"X": "y"}},
            "docs": {"url": URL, "env": {"A": "b"}, "headers": {"Accept": "text/plain"}, "tools": {"a": 1}},
        }
    )
    assert upstreams(found) == {"git": {"command": "uvx"}, "docs": {"url": URL}}
    assert found.notes == (
        "mcp.json:1: mcpServers.git.envFile: left out: write the variables of that file under env",
        "mcp.json:1: mcpServers.git: left out, since only the client has it: autoApprove, timeout, headers",
        "mcp.json:1: mcpServers.docs.headers.Accept: left out: the gateway sets it itself",
        "mcp.json:1: mcpServers.docs.tools: left out: not a list of tools",
        "mcp.json:1: mcpServers.docs: left out, since only the client has it: env",
    )


# --- names ---


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["docs", "a-1"], ["docs", "a-1"]),
        (["GitHub Server", "@upstash/context7"], ["github-server", "upstash-context7"]),
        (["Docs", "docs", "DOCS"], ["docs-2", "docs", "docs-3"]),
        (["legacy", "Legacy"], ["legacy-server", "legacy-server-2"]),
        (["Café", "数据库", "", "--"], ["cafe", "server", "server-2", "--"]),
        (["X" * 40, "x" * 33], ["x" * 32, "x" * 30 + "-2"]),
    ],
)
def test_names_become_those_of_upstreams(names: list[str], expected: list[str]) -> None:
    assert upstream_names(names) == expected


@given(st.lists(st.text(max_size=40), max_size=12, unique=True))
def test_every_name_becomes_one_of_its_own(names: list[str]) -> None:
    found = upstream_names(names)
    assert all(map(is_upstream_name, found))
    assert len(set(found)) == len(names)
    assert all(ours == theirs for ours, theirs in zip(found, names, strict=True) if is_upstream_name(theirs))


def test_a_server_that_is_called_otherwise_is_said_to_be() -> None:
    assert imported({"My Docs": {"url": URL}}).notes == ("mcp.json:1: mcpServers.My Docs: called my-docs here",)


# --- placeholders ---


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("${env:TEAM}/x", "${TEAM}/x"),
        ("${TEAM}", "${TEAM}"),
        ("${TEAM:-blue}", "${TEAM:-blue}"),
        ("$TEAM", "${TEAM}"),
        ("${input:my-team}", "${MY_TEAM}"),
        ("${userHome}${/}x", "${HOME}/x"),
        ("${workspaceFolder}/x", "${WORKSPACE_FOLDER}/x"),
        ("a ${ b", "a $${ b"),
        ("$team costs $5 {x}", "$team costs $5 {x}"),
    ],
)
def test_placeholders_become_references(theirs: str, ours: str) -> None:
    assert upstream({"command": "uvx", "args": [theirs], "env": {"X": theirs}, "cwd": theirs}) == {
        "command": "uvx",
        "args": [ours],
        "env": {"X": ours},
        "cwd": ours,
    }


def test_what_has_to_be_set_is_listed_once_with_what_is_known_of_it() -> None:
    inputs = [{"type": "promptString", "id": "api-key", "description": "Key of the\nservice"}]
    entry = {"command": "uvx", "env": {"A": "${input:api-key}", "B": "${env:TEAM}", "C": "${userHome}", "D": "$TEAM"}}
    found = imported({"docs": entry}, inputs=inputs)
    assert [(variable.name, variable.places, variable.meaning) for variable in found.variables] == [
        ("API_KEY", ("upstreams.docs.env.A",), "Key of the\nservice"),
        ("TEAM", ("upstreams.docs.env.B", "upstreams.docs.env.D"), ""),
    ]
    assert "\n#   API_KEY: upstreams.docs.env.A (Key of the service)\n" in found.text


def test_an_input_and_a_variable_of_one_name_stay_apart() -> None:
    read = upstream(
        {"command": "uvx", "env": {"A": "${env:API_KEY}", "B": "${input:api-key}", "C": "${input:API_KEY}"}}
    )
    assert read["env"] == {"A": "${API_KEY}", "B": "${API_KEY_2}", "C": "${API_KEY_3}"}


@pytest.mark.parametrize("theirs", ["${file}", "${config:x}", "${command:x}", "${workspaceFolderBasename}", "$${X}"])
def test_a_placeholder_of_an_editor_is_a_problem(theirs: str) -> None:
    shown = "$${" if theirs.startswith("$$") else theirs
    assert refused({"docs": {"command": "uvx", "cwd": theirs}}) == [
        "mcp.json:5: mcpServers.docs.cwd: a placeholder that only its own client can fill in; "
        f"found {shown}; write the value"
    ]


# --- secrets ---


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"API_KEY": "abc"}, {"API_KEY": "${API_KEY}"}),
        ({"DB_PASSWORD": "12345"}, {"DB_PASSWORD": "${DB_PASSWORD}"}),
        ({"THING": TOKEN}, {"THING": "${THING}"}),
        ({"DATABASE": "postgres://ada:s3cret@db/x"}, {"DATABASE": "${DATABASE}"}),
        ({"DATABASE": "postgres://ada:s3cret@${env:DB}/x"}, {"DATABASE": "postgres://ada:${DATABASE}@${DB}/x"}),
        ({"HEADERS": '{"Authorization": "x"}'}, {"HEADERS": "${HEADERS}"}),
        ({"SOME_ID": "0b6f5f7e-5a3c-4c1e-9d3e-0123456789ab"}, {"SOME_ID": "${SOME_ID}"}),
        ({"API_KEY": ""}, {"API_KEY": ""}),
        ({"USE_AUTH": "true"}, {"USE_AUTH": "true"}),
        ({"MAX_TOKENS": 4096}, {"MAX_TOKENS": "4096"}),
        ({"KEY_FILE": "/etc/ssl/my.key"}, {"KEY_FILE": "/etc/ssl/my.key"}),
        ({"FOLDER": "/srv/MyCoolProject2024-server/x"}, {"FOLDER": "/srv/MyCoolProject2024-server/x"}),
        ({"MODEL": "claude-sonnet-4-5-20250929"}, {"MODEL": "claude-sonnet-4-5-20250929"}),
        ({"MY.TOKEN": "abc"}, {"MY.TOKEN": "${MY_TOKEN}"}),
        ({"X_KEY": "pa${ss"}, {"X_KEY": "${X_KEY}"}),
    ],
)
def test_secrets_of_a_process_become_references(env: dict[str, Any], expected: dict[str, str]) -> None:
    assert upstream({"command": "uvx", "env": env})["env"] == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Authorization": "Bearer abc"}, {"Authorization": "Bearer ${DOCS_TOKEN}"}),
        ({"authorization": "Basic abc="}, {"authorization": "Basic ${DOCS_TOKEN}"}),
        ({"X-API-Key": "abc"}, {"X-API-Key": "${DOCS_X_API_KEY}"}),
        ({"Cookie": "id=1"}, {"Cookie": "${DOCS_COOKIE}"}),
        ({"X-Who": TOKEN}, {"X-Who": "${DOCS_X_WHO}"}),
        ({"Authorization": "Bearer ${env:GH}"}, {"Authorization": "Bearer ${GH}"}),
        ({"X-Team": "blue"}, {"X-Team": "blue"}),
    ],
)
def test_secrets_in_headers_become_references(headers: dict[str, str], expected: dict[str, str]) -> None:
    assert upstream({"url": URL, "headers": headers})["headers"] == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--token", "abc", "x"], ["--token", "${DOCS_TOKEN}", "x"]),
        (["--api-key=abc"], ["--api-key=${DOCS_API_KEY}"]),
        (
            ["remote", "https://x.example.com/sse", "--header", "Authorization: Bearer abc"],
            ["remote", "https://x.example.com/sse", "--header", "Authorization: Bearer ${DOCS_AUTHORIZATION}"],
        ),
        (["--header", "Authorization:${env:AUTH}"], ["--header", "Authorization:${AUTH}"]),
        (["postgres://ada:s3cret@db/x"], ["${DOCS_ARGUMENT}"]),
        (["-e", f"GH_PAT={TOKEN}"], ["-e", "GH_PAT=${DOCS_GH_PAT}"]),
        (["-y", "@scope/server-github@2025.4.8", "/srv/A1b2C3d4E5f6G7h8I9j0/x"], None),
    ],
)
def test_secrets_in_arguments_become_references(args: list[str], expected: list[str] | None) -> None:
    assert upstream({"command": "uvx", "args": args})["args"] == (expected or args)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{URL}?apiKey=abc&page=1", f"{URL}?apiKey=${{DOCS_APIKEY}}&page=1"),
        (f"{URL}?who={TOKEN}#x", None),
        (f"{URL}/s/{TOKEN}/sse", f"{URL}/s/${{DOCS_TOKEN}}/sse"),
        (f"{URL}?key=${{input:k}}", f"{URL}?key=${{K}}"),
        (f"{URL}/v2025-11-25/x?y=z", f"{URL}/v2025-11-25/x?y=z"),
    ],
)
def test_secrets_in_urls_become_references(url: str, expected: str | None) -> None:
    assert upstream({"url": url})["url"] == (expected or f"{URL}?who=${{DOCS_WHO}}#x")


def test_one_secret_is_one_variable_and_two_are_two() -> None:
    found = imported(
        {
            "one": {"command": "uvx", "env": {"API_KEY": "first"}},
            "two": {"command": "uvx", "env": {"API_KEY": "second", "OTHER_KEY": "first"}},
            "three": {"command": "uvx", "env": {"API_KEY": "${env:TWO_API_KEY}"}},
        }
    )
    assert [each["env"] for each in upstreams(found).values()] == [
        {"API_KEY": "${API_KEY}"},
        {"API_KEY": "${TWO_API_KEY_2}", "OTHER_KEY": "${API_KEY}"},
        {"API_KEY": "${TWO_API_KEY}"},
    ]


# --- problems ---


def test_every_problem_is_named_at_once_with_its_line_and_remedy() -> None:
    assert refused(
        {
            "a": {"url": "ftp://x"},
            "b": {"args": ["x"]},
            "c": {"command": "uvx", "url": URL, "type": "http", "args": "x", "env": ["X"]},
            "d": 7,
            "e": {"url": "https://ada:s3cret@docs.example.com/mcp", "type": "websocket"},
            "f": {"command": "uvx", "cwd": 7, "args": [None], "env": {"X": []}},
            "g": {"url": URL, "serverUrl": URL, "type": "stdio"},
        }
    ) == [
        'mcp.json:4: mcpServers.a.url: not a URL; found "ftp://x"; allowed: http:// or https://, a host and a path, '
        "such as https://docs.example.com/mcp",
        "mcp.json:6: mcpServers.b: neither a command nor a url; write one of them, or remove it",
        "mcp.json:12: mcpServers.c.command: the type is http, which has no command; remove the type, or write a url",
        "mcp.json:13: mcpServers.c.url: a command stands here too; remove one of them",
        'mcp.json:15: mcpServers.c.args: not a list; write ["ARGUMENT", ...]',
        'mcp.json:16: mcpServers.c.env: not an object; write {"NAME": "VALUE"}',
        'mcp.json:20: mcpServers.d: not an object; write {"command": ...} or {"url": ...}',
        "mcp.json:22: mcpServers.e.url: holds a user name or password; write an Authorization header under headers",
        "mcp.json:23: mcpServers.e.type: no transport of ours; allowed: stdio, http, streamable-http, sse; remove it",
        "mcp.json:29: mcpServers.f.args[0]: not text; put it in double quotes",
        "mcp.json:32: mcpServers.f.env.X: not text; put it in double quotes",
        "mcp.json:36: mcpServers.g.url: the type is stdio, which has no url; remove the type, or write a command",
        "mcp.json:37: mcpServers.g.serverUrl: url stands here too; remove one of them",
    ]


def test_what_the_model_refuses_is_said_of_the_clients_own_keys() -> None:
    said = refused(
        {
            "My Docs": {"serverUrl": "docs.example.com"},
            "git": {"command": " ", "env": {"A B": "x"}},
            "h": {"url": URL, "headers": {"X Y": "z", "X-Team": "blué"}},
        }
    )
    assert [line.partition("; ")[0] for line in said] == [
        "mcp.json:4: mcpServers.My Docs.serverUrl: not a URL",
        "mcp.json:7: mcpServers.git.command: not a program",
        "mcp.json:9: mcpServers.git.env.A B: not the name of a variable",
        "mcp.json:15: mcpServers.h.headers.X Y: not a header name",
        "mcp.json:16: mcpServers.h.headers.X-Team: not a header value",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "mcp.json:1: no servers; allowed: mcpServers, servers; write them as"),
        ('{"mcpServers": {}}', "mcp.json:1: no servers;"),
        ('{"mcpServers": []}', 'mcp.json:1: mcpServers: not an object; write {"NAME": {...}}'),
        ('{"servers": {"a": {"disabled": true}}}', "mcp.json:1: no server that is not disabled; enable one"),
        (
            '{"servers": {"a": {"url": "https://a.example", "url": "https://b.example"}}}',
            "mcp.json:1: servers.a.url: wr",
        ),
        ("servers:", "mcp.json:1: not JSON:"),
    ],
)
def test_a_file_without_servers_is_a_problem(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        import_text("mcp.json", text)
    assert str(error.value).startswith(said)


# --- the whole ---

texts = st.text(max_size=20) | st.sampled_from(
    ["${env:X}", "${input:y}", "$X", "${", "no", "~", "1e3", TOKEN, ": #", "- "]
)
entries = st.fixed_dictionaries(
    {"command": st.sampled_from(["uvx", "/opt/x y"])},
    optional={
        "args": st.lists(texts, max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "API_KEY", "b.c"]), texts, max_size=3),
        "cwd": texts,
        "anything": texts,
    },
) | st.fixed_dictionaries(
    {"url": st.sampled_from([URL, f"{URL}?key=abc", f"{URL}/{TOKEN}"])},
    optional={"headers": st.dictionaries(st.sampled_from(["X-Team", "Authorization"]), texts, max_size=2)},
)


@given(st.dictionaries(st.text(max_size=10), entries, min_size=1, max_size=3))
def test_what_is_written_is_a_configuration_of_the_same_servers_without_their_secrets(
    servers: dict[str, dict[str, Any]],
) -> None:
    try:
        found = imported(servers)
    except ConfigError as error:
        assert all(re.match(r"mcp\.json:1: mcpServers\..*; ", line) for line in str(error).splitlines())
        return
    assert TOKEN not in found.text + str(found.notes) + str(found.variables)
    ours = settings(found, value="set").upstreams
    for theirs, upstream in zip(servers.values(), ours.values(), strict=True):
        assert upstream.command == theirs.get("command")
        assert len(upstream.args) == len(theirs.get("args", []))
        assert list(upstream.env) == list(theirs.get("env", {}))
        assert list(upstream.headers) == list(theirs.get("headers", {}))


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["http", "sse", "stdio", URL, "a\nb"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
KEYS = (
    "command",
    "args",
    "env",
    "url",
    "serverUrl",
    "headers",
    "type",
    "transport",
    "cwd",
    "disabled",
    "tools",
    "envFile",
)


@given(
    st.dictionaries(st.text(max_size=4), st.dictionaries(st.sampled_from(KEYS), junk, max_size=4) | junk, max_size=2),
    junk,
)
def test_whatever_a_file_holds_it_is_imported_or_refused_in_lines(servers: dict[str, Any], inputs: Any) -> None:
    for name, entry in servers.items():
        if isinstance(entry, dict) and not {"command", "url"} & entry.keys():
            servers[name] = {**entry, "command": "uvx"}
    try:
        found = imported(servers, inputs=inputs)
    except ConfigError as error:
        assert all("\n" not in str(problem) for problem in error.problems)
    else:
        assert all("\n" not in note for note in found.notes)
        assert settings(found).upstreams


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30))
def test_a_plain_text_comes_through_as_it_is(text: str) -> None:
    assume("${" not in text)
    found = imported({"docs": {"command": "uvx", "args": ["x", text], "env": {"A": text}}})
    assume(not found.variables)  # else it looks like a secret
    [upstream] = upstreams(found).values()
    assert upstream["args"][1] == text
    [read] = settings(found).upstreams.values()
    assert (read.args[1], read.plain_env()) == (text, {"A": text})
