"""gateway.upstream.probe_stdio: what `era-gateway probe -- COMMAND` says of a server that it starts."""

from pathlib import Path
from typing import Any

import pytest

from gateway.upstream.probe_report import Description, ProbeFailed
from gateway.upstream.probe_stdio import describe_command
from gateway.upstream.stdio import Command
from tests.support.stdio import StdioServer, descendants

CAPABILITIES = {"tools": {"listChanged": True}, "logging": {}}
INFO = {"name": "stdio", "version": "1"}


async def describe(folder: Path, *options: str, **more: Any) -> Description:
    """Describe the server of the tests; no process may be left."""
    before = descendants()
    configured = StdioServer(folder, *options).configured()
    try:
        return await describe_command(Command(configured["command"], tuple(configured["args"]), **more))
    finally:
        assert descendants() <= before


async def test_a_modern_server_is_described_by_its_discover_result(tmp_path: Path) -> None:
    found = await describe(tmp_path, "--era", "modern")
    assert found == Description("modern", "2026-07-28", "stdio", capabilities=CAPABILITIES, server_info=INFO)


@pytest.mark.parametrize(
    ("options", "notes"),
    [
        ((), ()),
        (("--banner",), ()),
        (("--discover", "exit"), ("does not survive server/discover",)),
        (("--discover", "spoil"), ()),
        (("--discover", "mute"), ("leaves server/discover unanswered",)),
    ],
)
async def test_a_legacy_server_is_described_by_initialize(
    tmp_path: Path, options: tuple[str, ...], notes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.probe_stdio.QUIET_S", 0.7)
    assert await describe(tmp_path, *options) == Description(
        "legacy",
        "2025-11-25",
        "stdio",
        has_sessions=True,
        capabilities=CAPABILITIES,
        server_info=INFO,
        notes=(*notes, "each process is a session"),
    )


async def test_a_server_that_cannot_start_is_told_with_its_last_words_and_without_its_secrets(tmp_path: Path) -> None:
    with pytest.raises(ProbeFailed) as caught:
        await describe(tmp_path, "--discover", "exit", "--initialize", "exit", secrets=("configuration",))
    assert str(caught.value).splitlines() == [
        "Upstream 'python' ended with exit status 3 during initialize; it wrote:",
        "  no ***",
    ]


async def test_a_refused_handshake_is_told_in_the_servers_words(tmp_path: Path) -> None:
    with pytest.raises(
        ProbeFailed, match=r"^The server refuses initialize: Unsupported protocol version \(code -32022\)"
    ):
        await describe(tmp_path, "--initialize", "refuse")


async def test_what_is_no_server_is_said_to_have_ended() -> None:
    with pytest.raises(
        ProbeFailed, match=r"^Upstream 'echo' ended with exit status 0 during initialize; it wrote:\n  hi"
    ):
        await describe_command(Command("echo", ("hi",)))
    with pytest.raises(ProbeFailed, match=r"^Upstream 'no-such' cannot be reached: its command is not to be found$"):
        await describe_command(Command("no-such"))
