"""The process: its ports, its signals, and how it says that it cannot start."""

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway import plans, serving, telemetry
from gateway.app import Gateway
from gateway.cli import main
from gateway.config.model import Settings
from gateway.upstream.any_era import AnyEraUpstream
from tests.support.command import WAIT_S, command, exit_code, told, write_config
from tests.support.messages import good_request
from tests.support.scripted import ScriptedUpstream, Wire


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands here without changing the process that runs the tests."""
    monkeypatch.setattr(telemetry, "configure", lambda _level: None)
    monkeypatch.setattr(serving, "raise_descriptor_limit", lambda: None)


async def test_after_a_signal_calls_end_in_order_and_the_operators_port_says_so(tmp_path: Path) -> None:
    release = asyncio.Event()
    async with ScriptedUpstream() as upstream, httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as http:

        @upstream.on("tools/call")
        async def wait(wire: Wire) -> None:
            await release.wait()
            await upstream.answer(wire)

        config = write_config(tmp_path, upstream.url, port=0, admin={"port": 0}, drain="10s")
        async with command("serve", "-c", config) as process:
            admin = f"http://{told(process, 'serving')['admin']}"
            for base in (admin, process.url.removesuffix("/mcp")):
                assert (await http.get(f"{base}/healthz")).json() == {"status": "ok"}
                assert (await http.get(f"{base}/readyz")).json()["ready"] is True
            assert (await http.get(f"{admin}/mcp")).status_code == 404

            headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
            call = asyncio.create_task(http.post(process.url, content=body, headers=headers))
            await upstream.seen("tools/call")
            process.popen.terminate()
            async with asyncio.timeout(WAIT_S):
                while (ready := await http.get(f"{admin}/readyz")).status_code == 200:
                    pass
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert (await http.get(f"{admin}/healthz")).status_code == 200

            release.set()
            reply = await call
            assert reply.json()["result"]["content"][0]["text"] == "hi"
            assert reply.headers["connection"] == "close"
            assert await exit_code(process) == 0
            assert upstream.received("DELETE")
            assert told(process, "request")["status"] == 200
            assert "Traceback" not in process.log()


async def test_the_demo_prints_calls_for_where_it_serves_and_ends_with_an_interrupt() -> None:
    async with command("demo", "--port", 0) as process, httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as http:
        headers, body = good_request("server/discover")
        assert (await http.post(process.url, content=body, headers=headers)).status_code == 200
        process.popen.send_signal(signal.SIGINT)
        assert await exit_code(process) == 130
        assert "Traceback" not in process.log()


TAKEN: Sequence[tuple[str, str]] = [
    ("port", "server.port: 127.0.0.1:{taken} is already in use; choose another port, or end what listens there\n"),
    (
        "admin",
        "server.admin: 127.0.0.1:{taken} is already in use; choose another port, or write server.admin: false\n",
    ),
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("key", "line"), TAKEN)
def test_a_port_in_use_is_one_line_and_nothing_is_served(
    key: str, line: str, taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ports: dict[str, Any] = {"port": 0, "admin": {"port": 0}}
    ports[key] = taken if key == "port" else {"port": taken}
    assert main(["serve", "-c", str(write_config(tmp_path, "http://127.0.0.1:9/mcp", **ports))]) == 1
    out, err = capsys.readouterr()
    assert err.splitlines(keepends=True)[-1] == line.format(taken=taken)
    assert "serving" not in out + err
    assert "Traceback" not in out + err


@pytest.mark.usefixtures("in_process")
def test_a_demo_on_a_port_in_use_is_one_line(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--port", str(taken)]) == 1
    expected = f"demo: 127.0.0.1:{taken} is already in use; choose another port with --port\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize(("drain", "spent_s", "expected_s"), [("40s", 0, 40), ("40s", 15, 25), ("40s", 60, 1)])
async def test_what_is_left_of_the_drain_time_is_for_ending_sessions(
    drain: str, spent_s: float, expected_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, graces = [1000.0], []

    async def note(_upstream: AnyEraUpstream, grace_s: float) -> None:
        graces.append(grace_s)

    monkeypatch.setattr(AnyEraUpstream, "close", note)
    monkeypatch.setattr("gateway.app.time.monotonic", lambda: now_s[0])
    settings = {"server": {"drain": drain}, "upstreams": {"docs": {"url": "http://127.0.0.1:9/mcp"}}}
    gateway = Gateway(Settings.model_validate(settings))
    gateway.leave()
    now_s[0] += spent_s
    await gateway.close()
    assert graces == [expected_s]


@pytest.mark.parametrize(
    ("host", "sent", "status"),
    [
        ("127.0.0.1", "evil.test", 403),
        ("127.0.0.2", "evil.test", 403),
        ("127.0.0.2", "127.0.0.2:8080", 200),
        ("::1", "evil.test", 403),
        ("::1", "[::1]:8080", 200),
        ("gateway.localhost", "evil.test", 403),
        ("gateway.localhost", "gateway.localhost:8080", 200),
        ("0.0.0.0", "evil.test", 200),
        ("192.0.2.1", "evil.test", 200),
    ],
)
def test_host_is_checked_wherever_only_this_machine_can_reach_the_gateway(host: str, sent: str, status: int) -> None:
    from gateway.core.front_door import Headers, check_head
    from gateway.errors import ProtocolError
    from tests.support.messages import to_asgi

    settings = Settings.model_validate({"server": {"host": host}, "upstreams": {"docs": {"url": "http://a.test/mcp"}}})
    headers, _body = good_request(headers={"Host": sent})
    found = 200
    try:
        check_head("POST", Headers(to_asgi(headers)), plans.front_door(settings.server))
    except ProtocolError as refused:
        found = refused.status
    assert found == status
