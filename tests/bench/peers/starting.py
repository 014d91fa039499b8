"""How each peer is started in front of the canned upstream, with its defaults wherever it has some."""

import http.client
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.load import Load
from tests.bench.peers.handshake import HandshakeError, Opened, open_session
from tests.bench.processes import ROOT, NotReadyError, Target, free_port

_ENVIRONMENTS: Final = ROOT / ".envs" / "peers"
_PATIENCE_S: Final = 90.0
_LITELLM_KEY: Final = "sk-bench"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another gateway.

    Args:
        name: as the table shows it.
        program: what must be installed.
        command: makes its command line from the program, a port, the upstream's URL and a folder.
        path: its endpoint.
        environment: makes what it needs of environment variables, from a folder.
        prepare: after the start, given its port, the upstream's URL and its environment: register the upstream.
            Returns the credentials for calls.
        has_workers: as in `Target`.
    """

    name: str
    program: Path
    command: Callable[[str, int, str, Path], list[str]]
    path: str = "/mcp"
    environment: Callable[[Path], dict[str, str]] = field(default=lambda folder: {})
    prepare: Callable[[int, str, Mapping[str, str]], dict[str, str]] = field(default=lambda *_: {})

    has_workers: bool = True

    def load(self, opened: Opened, port: int, tool: str, connections: int, seconds: float) -> Load:
        """A load on it, in the session that is open."""
        name = opened.name_of(tool)
        return Load(port, tool, connections, seconds, legacy=True, name=name, path=self.path, headers=opened.headers)


def start_peer(peer: Peer, upstream: Target, folder: Path) -> tuple[Target, Opened]:
    """Starts a peer, registers the upstream, and opens the session that the load will use.

    Raises:
        NotReadyError: it is not installed, or no session can be opened; the message says what it said last.
    """
    if not peer.program.exists():
        raise NotReadyError(f"{peer.name} is not installed ({peer.program.relative_to(ROOT)} is missing)")
    port, url = free_port(), f"http://127.0.0.1:{upstream.port}/mcp"
    environment = {**os.environ, **peer.environment(folder)}
    log = folder / f"{peer.name.replace(' ', '-')}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            peer.command(str(peer.program), port, url, folder),
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
        )
    target = Target(peer.name, port, process, peer.has_workers)
    try:
        return target, _session_of(peer, target, url, environment)
    except BaseException as error:
        target.stop()
        if not isinstance(error, (NotReadyError, HandshakeError, OSError, subprocess.SubprocessError)):
            raise
        raise NotReadyError(f"{peer.name}: {error}; its log ends: {log.read_text()[-300:]!r}") from None


def _session_of(peer: Peer, target: Target, url: str, environment: Mapping[str, str]) -> Opened:
    """Waits until the peer listens, then until it has the upstream's tools."""
    deadline = time.monotonic() + _PATIENCE_S
    credentials: dict[str, str] | None = None
    while True:
        try:
            if credentials is None:
                credentials = peer.prepare(target.port, url, environment)
            opened = open_session(target.port, peer.path, credentials)
            opened.name_of("json_1k")
            return opened
        except (OSError, http.client.HTTPException, HandshakeError) as error:
            if target.process.poll() is not None or time.monotonic() > deadline:
                raise NotReadyError(str(error)) from None
            time.sleep(0.3)


def _fastmcp(mode: str) -> Callable[[str, int, str, Path], list[str]]:
    script = str(Path(__file__).with_name("fastmcp_proxy.py"))
    return lambda program, port, url, folder: [program, script, str(port), url, mode]


def _litellm(program: str, port: int, url: str, folder: Path) -> list[str]:
    config = folder / "litellm.yaml"
    config.write_text(
        f"model_list: []\ngeneral_settings: {{master_key: {_LITELLM_KEY}}}\n"
        f'mcp_servers: {{bench: {{url: "{url}", transport: http, allow_all_keys: true}}}}\n'
    )
    return [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


def _mcp_proxy(program: str, port: int, _url: str, _folder: Path) -> list[str]:
    """It reaches servers over stdio only, so it gets the canned upstream's other face."""
    server = f"cd '{ROOT}' && exec '{sys.executable}' -m tests.bench.upstream --stdio"
    return [program, "--host", "127.0.0.1", "--port", str(port), "--server", "stream", "--", "sh", "-c", server]


def _contextforge_environment(folder: Path) -> dict[str, str]:
    """What it insists on: secrets that are strong, leave to reach this machine, and no limit of 100 calls a minute."""
    return {
        "JWT_SECRET_KEY": secrets.token_hex(32),
        "AUTH_ENCRYPTION_SECRET": secrets.token_hex(32),
        "BASIC_AUTH_PASSWORD": f"Aa1!{secrets.token_hex(16)}",
        "PLATFORM_ADMIN_EMAIL": "admin@example.com",
        "PLATFORM_ADMIN_PASSWORD": f"Aa1!{secrets.token_hex(16)}",
        "DEFAULT_USER_PASSWORD": f"Aa1!{secrets.token_hex(16)}",
        "DATABASE_URL": f"sqlite:///{folder}/contextforge.db",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "LOG_LEVEL": "ERROR",
        "RATE_LIMITING_ENABLED": "false",
    }


def _register_at_contextforge(port: int, url: str, environment: Mapping[str, str]) -> dict[str, str]:
    make_token = [
        *(str(_ENVIRONMENTS / "contextforge/bin/python"), "-m", "mcpgateway.utils.create_jwt_token"),
        *("--username", "admin@example.com", "--exp", "600", "--secret", environment["JWT_SECRET_KEY"]),
    ]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()  # an OSError until it listens
    made = subprocess.run(make_token, env=dict(environment), capture_output=True, text=True, check=True)
    credentials = {"Authorization": f"Bearer {made.stdout.split()[-1]}"}
    server = {"name": "bench", "url": url, "transport": "STREAMABLEHTTP", "visibility": "public"}
    connection.request("POST", "/gateways", json.dumps(server), {"Content-Type": "application/json", **credentials})
    reply = connection.getresponse()
    told = reply.read()
    if reply.status not in (200, 201):
        raise HandshakeError(f"did not take the upstream: HTTP {reply.status} {told[:200]!r}")
    return credentials


PEERS: Final = (
    Peer("fastmcp default", _ENVIRONMENTS / "fastmcp/bin/python", _fastmcp("default")),
    Peer("fastmcp shared", _ENVIRONMENTS / "fastmcp/bin/python", _fastmcp("shared")),
    Peer(
        "litellm",
        _ENVIRONMENTS / "litellm/bin/litellm",
        _litellm,
        path="/mcp/",
        prepare=lambda *_: {"Authorization": f"Bearer {_LITELLM_KEY}"},
    ),
    Peer(
        "contextforge",
        _ENVIRONMENTS / "contextforge/bin/mcpgateway",
        lambda program, port, url, folder: [program, "--host", "127.0.0.1", "--port", str(port)],
        path="/mcp/",
        environment=_contextforge_environment,
        prepare=_register_at_contextforge,
    ),
    Peer("mcp-proxy", _ENVIRONMENTS / "npm/node_modules/.bin/mcp-proxy", _mcp_proxy, has_workers=False),
)
"""The peers, in the order of the table."""
