"""Whole files: what is understood, and what is wrong.

Each bad/NAME.yaml has its problems, line by line, in bad/NAME.txt.
"""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.config.load import from_mapping, load
from gateway.config.model import Settings
from gateway.config.problems import ConfigError

URL = "https://docs.example.com/mcp"
DIGEST = "ab" * 32
KEY = "A" * 43 + "="
CASES = Path(__file__).parent / "bad"
BAD = sorted(path.stem for path in CASES.glob("*.yaml"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("gateway.yaml")


def problems_of(file: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(file, environ or {})
    return [str(problem) for problem in caught.value.problems]


def settings_of(file: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    file.write_text(text, encoding="utf-8")
    return load(file, environ or {})


def upstream(rest: str) -> str:
    return f"upstreams:\n  docs:\n    url: {URL}\n{rest}"


GOOD = upstream("")


def test_one_url_is_enough(file: Path) -> None:
    settings = settings_of(file, GOOD)
    docs = settings.upstreams["docs"]
    assert (docs.url, docs.era, docs.timeout_s, docs.max_duration_s) == (URL, "auto", 60.0, 600.0)
    assert (settings.server.host, settings.server.port, settings.server.path) == ("127.0.0.1", 8080, "/mcp")
    assert (settings.rounds.gather_s, settings.rounds.max_per_upstream) == (0.06, None)
    assert settings.state.keys == ()


def test_every_value_of_a_file_is_understood(file: Path) -> None:
    text = f"""
server:
  host: 0.0.0.0
  port: "${{PORT:-9000}}"
  path: /v1/mcp
  allowed_origins: "${{ORIGINS}}"
  allowed_hosts: [MCP.example.com, "mcp.internal:8080"]
  max_body_bytes: 64KB
  keepalive: 10s
  stream_after: 500ms
  drain: 1m
  admin: false
upstreams:
  docs:
    type: streamable-http
    url: {URL}
    era: legacy
    transport: streamable-http
    headers:
      Authorization: "Bearer ${{TOKEN}}"
      X-Count: 5
    timeout: 90
    max_duration: 1h
    connect_timeout: 2.5s
    max_message_bytes: 1GiB
    pass_client_info: true
    sessions: {{reuse: sticky, max: 3, idle: 30s}}
  no: {{url: "http://127.0.0.1:1/", auth: {{type: passthrough}}}}
prefix: always
partial: fail
rounds:
  ttl: 20m
  max: 5
  max_per_principal: 2
  max_per_upstream: 4
  gather: 0s
  gather_max: 0s
  names: {{book: [seat, meal]}}
state: {{keys: "{KEY} {KEY}", store: "memory://"}}
cache: {{ttl: 5m, scope: public}}
auth:
  type: api_key
  keys:
    - {{name: alice, sha256: "{DIGEST.upper()}", scopes: [docs]}}
    - {{name: bob, sha256: "{"cd" * 32}", scopes: "docs, no"}}
    - {{name: carol, sha256: "{"ef" * 32}"}}
log: {{level: DEBUG}}
"""
    settings = settings_of(file, text, {"TOKEN": "t", "ORIGINS": "https://a.test, https://b.test:443"})
    server, docs, rounds = settings.server, settings.upstreams["docs"], settings.rounds
    assert (server.port, server.admin, server.max_body_bytes) == (9000, None, 64_000)
    assert (server.keepalive_s, server.stream_after_s, server.drain_s) == (10.0, 0.5, 60.0)
    assert server.allowed_origins == ("https://a.test", "https://b.test")
    assert server.allowed_hosts == ("mcp.example.com", "mcp.internal:8080")
    assert docs.plain_headers() == {"Authorization": "Bearer t", "X-Count": "5"}
    assert (docs.timeout_s, docs.max_duration_s, docs.connect_timeout_s) == (90.0, 3600.0, 2.5)
    assert (docs.max_message_bytes, docs.pass_client_info) == (1024**3, True)
    assert (docs.sessions.reuse, docs.sessions.max, docs.sessions.idle_s) == ("sticky", 3, 30.0)
    assert settings.upstreams["no"].auth.type == "passthrough"
    assert (settings.prefix, settings.partial) == ("always", "fail")
    assert (rounds.ttl_s, rounds.max, rounds.max_per_principal, rounds.max_per_upstream) == (1200.0, 5, 2, 4)
    assert (rounds.gather_s, rounds.gather_max_s) == (0.0, 0.0)
    assert rounds.names == {"book": ("seat", "meal")}
    assert [key.get_secret_value() for key in settings.state.keys] == [KEY, KEY]
    assert (settings.cache.ttl_s, settings.cache.scope, settings.log.level) == (300.0, "public", "debug")
    alice, bob, carol = settings.auth.keys
    assert (alice.name, alice.sha256.get_secret_value(), alice.scopes) == ("alice", DIGEST, frozenset({"docs"}))
    assert (bob.scopes, carol.scopes) == (frozenset({"docs", "no"}), None)


def test_section_without_keys_is_one_of_defaults(file: Path) -> None:
    empty = "server:\nrounds:\nstate:\ncache:\nauth:\nlog:\n"
    lists = "    headers:\n    sessions:\n    auth:\n"
    assert settings_of(file, empty + upstream(lists)) == settings_of(file, GOOD)
    assert settings_of(file, f"server:\n  admin:\n  allowed_hosts:\n{GOOD}") == settings_of(file, GOOD)


def test_settings_do_not_change(file: Path) -> None:
    settings = settings_of(file, GOOD)
    with pytest.raises(ValidationError, match="frozen"):
        settings.server.port = 1


def test_settings_show_no_secret(file: Path) -> None:
    text = upstream("    headers: {X-Key: topsecret}\n") + f"state: {{keys: {KEY}}}\n"
    text += f"auth: {{type: api_key, keys: [{{name: a, sha256: {DIGEST}}}]}}\n"
    shown = f"{settings_of(file, text)!r} {settings_of(file, text)}"
    assert not [secret for secret in ("topsecret", KEY, DIGEST) if secret in shown]


def test_settings_can_listen_elsewhere(file: Path) -> None:
    settings = settings_of(file, GOOD)
    moved = settings.listening_on("0.0.0.0", 0)
    assert (moved.server.host, moved.server.port, moved.server.clashes) == ("0.0.0.0", 0, False)
    assert moved.upstreams == settings.upstreams
    assert settings.listening_on(None, None) == settings
    assert settings.listening_on(None, 9090).server.clashes


def test_plain_values_make_settings_too() -> None:
    settings = from_mapping(
        {
            "server": {"port": 0, "admin": False, "max_body_bytes": 100},
            "upstreams": {"docs": {"url": "${URL}", "timeout": 0.5, "pass_client_info": True}},
        },
        {"URL": URL},
    )
    assert (settings.server.admin, settings.upstreams["docs"].timeout_s) == (None, 0.5)
    with pytest.raises(ConfigError, match=r"^configuration: upstreams: no upstream"):
        from_mapping({})


@pytest.mark.parametrize("name", BAD)
def test_problems_are_listed_exactly(name: str) -> None:
    expected = (CASES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    with pytest.raises(ConfigError) as caught:
        load(CASES / f"{name}.yaml", {})
    assert [str(problem).removeprefix(f"{CASES}/") for problem in caught.value.problems] == expected


def test_no_expected_problem_shows_a_secret() -> None:
    assert not [path.name for path in CASES.glob("*.txt") if "topsecret" in path.read_text(encoding="utf-8")]


def test_problems_of_every_kind_come_together_in_the_order_of_the_file(file: Path) -> None:
    headers = "    headers: {X: '${NO}'}\n    command: uvx\n"
    text = f"server: {{port: x}}\nserver: {{}}\n{upstream(headers)}lag: 1\n"
    lines = [problem.split(":")[1] for problem in problems_of(file, text)]
    assert lines == ["1", "2", "6", "7", "8"]


def test_variable_of_the_wrong_form_is_a_problem_of_its_key(file: Path) -> None:
    (problem,) = problems_of(file, f"server:\n  port: ${{PORT}}\n{GOOD}", {"PORT": "http"})
    assert problem.startswith('gateway.yaml:2: server.port: not a whole number; found "http"; ')


STDIO = """
upstreams:
  git:
    type: stdio
    command: uvx
    args: [mcp-server-git, --repository, "${REPO}"]
    env: {TOKEN: "${TOKEN}", EMPTY: }
    cwd: /srv
"""


def test_command_is_read_with_what_belongs_to_it(file: Path) -> None:
    git = settings_of(file, STDIO, {"REPO": "/repo", "TOKEN": "topsecret"}).upstreams["git"]
    assert (git.url, git.command, git.cwd) == (None, "uvx", "/srv")
    assert git.args == ("mcp-server-git", "--repository", "/repo")
    assert git.plain_env() == {"TOKEN": "topsecret", "EMPTY": ""}
    assert "topsecret" not in repr(git)


def test_a_process_may_take_longer_to_start_and_there_are_fewer_of_them(file: Path) -> None:
    git = settings_of(file, "upstreams: {git: {command: uvx}}").upstreams["git"]
    assert (git.connect_timeout_s, git.sessions.max, git.sessions.reuse) == (60.0, 16, "pooled")
    text = "upstreams: {git: {command: uvx, connect_timeout: 5s, sessions: {max: 3, reuse: sticky}}}"
    git = settings_of(file, text).upstreams["git"]
    assert (git.connect_timeout_s, git.sessions.max, git.sessions.reuse) == (5.0, 3, "sticky")
    assert settings_of(file, "upstreams: {git: {command: uvx, sessions: }}").upstreams["git"].sessions.max == 16


def test_rest_of_a_stdio_upstream_is_checked_as_usual(file: Path) -> None:
    problems = problems_of(file, "upstreams:\n  git:\n    command: uvx\n    timeout: soon\n")
    assert [problem.split(":")[1] for problem in problems] == ["4"]


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ("type: sse", "sse"),
        ("type: sse, transport: auto", "sse"),
        ("transport: sse", "sse"),
        ("transport: sse, era: legacy", "sse"),
        ("type: http", "auto"),
        ("type: http, transport: streamable-http", "streamable-http"),
    ],
)
def test_type_says_the_transport_as_clients_write_it(file: Path, entry: str, transport: str) -> None:
    text = f"upstreams: {{docs: {{url: {URL}, {entry}}}}}"
    assert settings_of(file, text).upstreams["docs"].transport == transport


def test_entry_of_a_clients_file_works_as_it_is(file: Path) -> None:
    text = f'{{"upstreams": {{"docs": {{"type": "http", "url": "{URL}", "headers": {{"A": "b"}}}}}}}}'
    assert settings_of(file, text).upstreams["docs"].plain_headers() == {"A": "b"}


def test_long_or_unprintable_value_is_shown_in_short(file: Path) -> None:
    problems = problems_of(file, f'log: {{level: "{"x" * 100}"}}\nprefix: "a\\nb"\n{GOOD}')
    assert f'found "{"x" * 80}..."' in problems[0]
    assert 'found "a\\nb"' in problems[1]
