"""`era-gateway import`: what is written where, and what `check` says of it."""

import os
from pathlib import Path

import pytest

from gateway.cli import main

CLIENT = """{
  // what a desktop client keeps
  "mcpServers": {
    "Docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer hunter2"}},
    "git": {"command": "python3", "args": ["-m", "mcp_server_git"], "env": {"TOKEN": "hunter3"}, "autoApprove": []},
  },
}
"""
SET = """\
note: {file}:4: mcpServers.Docs: called docs here
note: {file}:5: mcpServers.git: left out, since only the client has it: autoApprove
set DOCS_TOKEN: upstreams.docs.headers.Authorization (written out in the file)
set TOKEN: upstreams.git.env.TOKEN (written out in the file)
"""

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(CLIENT, encoding="utf-8")
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "gateway.yaml"


def test_the_configuration_goes_to_stdout_and_what_is_to_be_done_to_stderr(source: Path, capsys: Captured) -> None:
    assert main(["import", str(source)]) == 0
    out, err = capsys.readouterr()
    assert err == SET.format(file=source)
    assert out.startswith("# Made of mcp.json by era-gateway import;")
    assert "hunter" not in out + err


def test_what_is_written_passes_the_check_once_its_variables_are_set(
    source: Path, target: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["import", str(source), "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == SET.format(file=source) + f"{target}: written; next: era-gateway check -c {target}\n"

    assert main(["check", "-c", str(target)]) == 1
    problems = capsys.readouterr().err.splitlines()
    assert [line.partition("; ")[2].partition(" in ")[0] for line in problems] == ["set DOCS_TOKEN", "set TOKEN"]

    monkeypatch.setenv("DOCS_TOKEN", "hunter2")
    monkeypatch.setenv("TOKEN", "hunter3")
    assert main(["check", "-c", str(target)]) == 0
    out, err = capsys.readouterr()
    assert "    url: https://docs.example.com/mcp\n" in out
    assert "hunter" not in out + err


def test_no_file_is_overwritten_unless_that_is_said(source: Path, target: Path, capsys: Captured) -> None:
    target.write_text("mine", encoding="utf-8")
    assert main(["import", str(source), "-o", str(target)]) == 1
    assert capsys.readouterr().err == f"{target}: exists already; choose another name, or give --force\n"
    assert target.read_text(encoding="utf-8") == "mine"
    assert main(["import", str(source), "-o", str(target), "--force"]) == 0
    assert target.read_text(encoding="utf-8").startswith("# Made of")


def test_a_link_to_nothing_is_not_followed(source: Path, target: Path, capsys: Captured) -> None:
    target.symlink_to("elsewhere")
    assert main(["import", str(source), "-o", str(target)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert not target.exists()


def test_the_clients_own_file_is_never_written(source: Path, capsys: Captured) -> None:
    assert main(["import", str(source), "-o", str(source), "--force"]) == 1
    assert "the file that is to be read; choose another name" in capsys.readouterr().err
    assert source.read_text(encoding="utf-8") == CLIENT


def test_nothing_is_written_if_there_are_problems(source: Path, target: Path, capsys: Captured) -> None:
    source.write_text('{"servers": {"a": {},\n"b": {}}}', encoding="utf-8")
    assert main(["import", str(source), "-o", str(target)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(": neither")[0] for line in err.splitlines()] == [
        f"{source}:1: servers.a",
        f"{source}:2: servers.b",
    ]
    assert not target.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file; give the path of a client's mcp.json"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8; found byte 0xff; save it as UTF-8"),
        (b"\xef\xbb\xbf{}", "no servers; allowed: mcpServers, servers; write them as"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem(
    tmp_path: Path, content: bytes | None, said: str, capsys: Captured
) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["import", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_a_problem(source: Path, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "none" / "gateway.yaml"
    assert main(["import", str(source), "-o", str(target)]) == 1
    assert capsys.readouterr().err == (f"{target}: cannot be written: {os.strerror(2)}; choose another name\n")
