"""The command line: what each command prints, and its exit code."""

import os
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from gateway import __version__
from gateway.cli import main
from gateway.config.model import Settings
from gateway.errors import GatewayError
from gateway.upstream.probe import Description
from gateway.upstream.stdio import Command

ROOT = Path(__file__).resolve().parents[2]
GOOD = "upstreams: {docs: {url: https://docs.example.com/mcp, headers: {X-Key: topsecret}}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("ERA_GATEWAY_"):
            monkeypatch.delenv(name)


class App(types.ModuleType):
    """Stands for gateway.serving: notes what it is asked to serve."""

    def __init__(self) -> None:
        super().__init__("gateway.serving")
        self.served: list[Settings] = []
        self.ports: list[int | None] = []
        self.failure: BaseException | None = None

    def serve(self, settings: Settings) -> None:
        self.served.append(settings)
        if self.failure is not None:
            raise self.failure

    def demo(self, port: int | None) -> None:
        self.ports.append(port)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App:
    stand_in = App()
    monkeypatch.setitem(sys.modules, "gateway.serving", stand_in)
    return stand_in


def usage_error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


class TestCheck:
    def test_clean_file_is_printed_as_understood(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "-c", str(file)]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"# {file}: no problems; understood as follows\nserver:\n  host: 127.0.0.1\n")
        assert "X-Key: '***'" in out
        assert "topsecret" not in out + err
        assert err.startswith("warning: state.keys: none")

    def test_every_problem_is_a_line_on_stderr(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text(f"{GOOD}prefix: yes\nlag: 1\n", encoding="utf-8")
        assert main(["check", "--config", str(file)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines() == [
            f'{file}:2: prefix: not one of its values; found "yes"; allowed: auto, always, never; write prefix: auto',
            f"{file}:3: lag: unknown key; did you mean log?",
        ]

    def test_without_a_file_the_environment_is_checked(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check"]) == 1
        assert capsys.readouterr().err.startswith("environment: ERA_GATEWAY_UPSTREAM_URL: not set; ")
        monkeypatch.setenv("ERA_GATEWAY_UPSTREAM_URL", "https://docs.example.com/mcp")
        assert main(["check"]) == 0
        assert capsys.readouterr().out.startswith("# environment: no problems")

    def test_file_may_refer_to_the_environment(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text("upstreams: {docs: {url: '${DOCS_URL}'}}\n", encoding="utf-8")
        monkeypatch.delenv("DOCS_URL", raising=False)
        assert main(["check", "-c", str(file)]) == 1
        monkeypatch.setenv("DOCS_URL", "https://docs.example.com/mcp")
        assert main(["check", "-c", str(file)]) == 0

    def test_missing_file_is_a_problem_and_no_trace(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "-c", "none.yaml"]) == 1
        assert capsys.readouterr().err == "none.yaml: no such file; give the path of a configuration file with -c\n"


class TestServe:
    def test_file_is_served(self, file: Path, app: App, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["serve", "-c", str(file)]) == 0
        assert (app.served[0].server.host, app.served[0].server.port) == ("127.0.0.1", 8080)
        assert capsys.readouterr().err.startswith("warning: state.keys: none")

    def test_address_of_the_command_line_goes_first(self, file: Path, app: App) -> None:
        assert main(["serve", "-c", str(file), "--host", "0.0.0.0", "--port", "0"]) == 0
        assert (app.served[0].server.host, app.served[0].server.port) == ("0.0.0.0", 0)

    def test_environment_alone_is_served(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ERA_GATEWAY_UPSTREAM_URL", "https://docs.example.com/mcp")
        assert main(["serve"]) == 0
        assert list(app.served[0].upstreams) == ["default"]

    def test_problems_keep_it_from_serving(self, file: Path, app: App, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("lag: 1\n", encoding="utf-8")
        assert main(["serve", "-c", str(file)]) == 1
        assert app.served == []
        assert f"{file}:1: lag: unknown key" in capsys.readouterr().err

    def test_port_of_the_admin_server_is_a_problem(
        self, file: Path, app: App, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["serve", "-c", str(file), "--port", "9090"]) == 1
        assert app.served == []
        assert capsys.readouterr().err == (
            "command line: --port: the admin port; choose another port, or write server.admin: false\n"
        )

    def test_interrupt_ends_it_quietly(self, file: Path, app: App, capsys: pytest.CaptureFixture[str]) -> None:
        app.failure = KeyboardInterrupt()
        assert main(["serve", "-c", str(file)]) == 130
        assert "Traceback" not in capsys.readouterr().err

    @pytest.mark.parametrize(("code", "expected"), [(3, 1), (0, 0), (None, 0)])
    def test_server_that_cannot_start_is_a_problem(self, file: Path, app: App, code: int | None, expected: int) -> None:
        app.failure = SystemExit(code)
        assert main(["serve", "-c", str(file)]) == expected

    def test_reload_supervises_the_same_command_without_reload(
        self, file: Path, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[Any] = []

        def supervise(*arguments: Any) -> int:
            seen.append(arguments)
            return 0

        monkeypatch.setattr("gateway.reload.supervise", supervise)
        assert main(["serve", "-c", str(file), "--port", "0", "--host", "::1", "--reload"]) == 0
        ((path, command, check),) = seen
        assert path == file
        assert command[1:] == ["-m", "gateway", "serve", "-c", str(file), "--host", "::1", "--port", "0"]
        assert check() == 30.0
        assert app.served == []


class TestProbe:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, str]]]:
        asked: list[tuple[str, Mapping[str, str]]] = []

        async def describe(url: str, headers: Mapping[str, str]) -> Description:
            asked.append((url, headers))
            if "broken" in url:
                raise GatewayError("No connection: refused")
            return Description(
                era="legacy",
                version="2025-11-25",
                transport="streamable-http",
                capabilities={"tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": False}},
                server_info={"name": "everything", "version": "1.0", "title": "Every\x1b[31m thing"},
                instructions="First line\nsecond line",
                notes=("gives no session id",),
            )

        monkeypatch.setattr("gateway.upstream.probe.describe", describe)
        return asked

    @pytest.mark.usefixtures("asked")
    def test_description_is_printed_in_rows(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["probe", "https://docs.example.com/mcp"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "era           legacy",
            "version       2025-11-25",
            "transport     streamable-http",
            "server        everything 1.0 (Every [31m thing)",
            "capabilities  tools (listChanged), logging, resources",
            "instructions  First line second line",
            "note          gives no session id",
        ]

    def test_headers_are_sent(self, asked: list[tuple[str, Mapping[str, str]]]) -> None:
        main(["probe", "HTTP://a.test/mcp", "--header", "Authorization: Bearer a:b", "--header", "X-Team:blue"])
        assert asked == [("HTTP://a.test/mcp", {"Authorization": "Bearer a:b", "X-Team": "blue"})]

    @pytest.mark.usefixtures("asked")
    def test_failure_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["probe", "https://broken.test/mcp"]) == 1
        assert capsys.readouterr() == ("", "No connection: refused\n")

    @pytest.mark.parametrize(
        ("argv", "command"),
        [
            (["--", "uvx", "mcp-server-git", "--repository", "."], ("uvx", "mcp-server-git", "--repository", ".")),
            (["uvx", "x"], ("uvx", "x")),
            (["server"], ("server",)),
        ],
    )
    def test_command_is_started_and_asked(
        self, argv: list[str], command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[Command] = []

        async def describe_command(command: Command) -> Description:
            started.append(command)
            return Description("legacy", "2025-11-25", "stdio")

        monkeypatch.setenv("MINE", "topsecret2")
        monkeypatch.setattr("gateway.telemetry.configure", lambda _level: None)
        monkeypatch.setattr("gateway.upstream.probe_stdio.describe_command", describe_command)
        assert main(["probe", "--env", "A=topsecret1=", "--env", "MINE", *argv]) == 0
        variables = {"A": "topsecret1=", "MINE": "topsecret2"}
        assert started == [Command(command[0], command[1:], variables, secrets=tuple(variables.values()))]

    @pytest.mark.parametrize(
        ("argv", "error"),
        [
            (["--header", "A: b", "--", "uvx"], "--header is for a URL; give a command its --env"),
            (["--env", "A=b", "https://a.test/mcp"], "--env is for a command; give a URL its --header"),
            (
                ["--env", "A B=topsecret", "--", "uvx"],
                "argument --env: not a variable: 'A B'; allowed: NAME=VALUE, or NAME",
            ),
            (["--env", "NOT_SET", "--", "uvx"], "argument --env: NOT_SET is not set in the environment"),
        ],
    )
    def test_options_of_the_one_are_not_for_the_other(
        self, argv: list[str], error: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert usage_error(capsys, "probe", *argv).endswith(error)

    def test_other_schemes_are_a_usage_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert usage_error(capsys, "probe", "ftp://a.test").endswith("not an http:// or https:// URL")

    @pytest.mark.parametrize(
        "header", ["topsecret", "A B: topsecret", "Host: topsecret", "A: topsecret\x00", "A: töpsecret"]
    )
    def test_bad_header_is_a_usage_error_without_its_value(
        self, header: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        error = usage_error(capsys, "probe", "https://a.test", "--header", header)
        assert "argument --header: not a header" in error
        assert "psecret" not in error


def test_keygen_prints_a_new_key_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keygen"]) == main(["keygen"]) == 0
    one, other = capsys.readouterr().out.split()
    assert one != other
    Fernet(one)


def test_key_of_keygen_is_a_state_key(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["keygen"])
    file.write_text(f"{GOOD}state: {{keys: {capsys.readouterr().out.strip()}}}\n", encoding="utf-8")
    assert main(["check", "-c", str(file)]) == 0
    assert capsys.readouterr().err == ""


def test_demo_runs_on_the_port_given(app: App) -> None:
    assert main(["demo"]) == main(["demo", "--port", "9000"]) == 0
    assert app.ports == [None, 9000]


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["sreve"], "invalid choice: 'sreve'"),
        (["serve", "--reload"], "--reload watches a file: give one with -c"),
        (["serve", "--port", "http"], "argument --port: not a port: 'http'; allowed: 0 to 65535"),
        (["serve", "--port", "65536"], "argument --port: not a port: '65536'; allowed: 0 to 65535"),
        (["serve", "--port", "-1"], "argument --port: "),
        (["probe"], "give a URL, -- and a command, or -c FILE"),
        (["probe", "-c", "gateway.yaml", "https://docs.example.com/mcp"], "-c stands alone"),
        (["probe", "-c", "gateway.yaml", "--env", "A=b"], "-c stands alone"),
    ],
)
def test_command_line_that_cannot_be_read_is_a_usage_error(
    argv: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error in usage_error(capsys, *argv)


@pytest.mark.parametrize("command", ["", "serve", "check", "probe", "keygen", "demo"])
def test_every_command_has_a_help_text(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: era-gateway {command}".rstrip())


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert (stop.value.code, capsys.readouterr().out) == (0, f"era-gateway {__version__}\n")


def test_reader_that_has_left_gets_no_trace(file: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gateway", "keygen"]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_check_and_keygen_load_no_server(file: Path) -> None:
    code = "import sys; from gateway.cli import main; main(sys.argv[1:]); main(['keygen']); print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code, "check", "-c", str(file)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert not {"aiohttp", "httpx", "starlette", "uvicorn", "gateway.app", "gateway.serving"} & set(
        ended.stdout.split()
    )
