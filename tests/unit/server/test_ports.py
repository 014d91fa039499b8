"""gateway.server.ports: binding, and the one line that says why it did not work."""

import socket
from collections.abc import Iterator

import pytest
import uvicorn

from gateway.errors import ListenError
from gateway.server.graceful import GracefulServer
from gateway.server.ports import Bound, bind


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def bound(host: str, port: int) -> Bound:
    return bind(GracefulServer(uvicorn.Config("none", host=host, port=port, log_config=None)), "server.port", "do so")


def closed(listening: Bound) -> Bound:
    for opened in listening.sockets:
        opened.close()
    return listening


def test_any_free_port_is_told() -> None:
    listening = bound("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", listening.port)):
        closed(listening)


def test_every_address_of_a_name_has_the_same_port() -> None:
    listening = bound("localhost", 0)
    assert {opened.getsockname()[1] for opened in listening.sockets} == {listening.port}
    closed(listening)


def test_all_addresses_of_both_families_are_one_host() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("the kernel of this machine has no IPv6")
    listening = bound("::", 0)
    with socket.create_connection(("127.0.0.1", listening.port)):
        closed(listening)


def test_connections_do_not_wait_for_more_to_send() -> None:
    listening = bound("127.0.0.1", 0)
    assert {opened.proto for opened in closed(listening).sockets} == {socket.IPPROTO_TCP}


def test_taken_port_is_said_to_be_in_use(taken: int) -> None:
    with pytest.raises(ListenError) as caught:
        bound("127.0.0.1", taken)
    assert str(caught.value) == f"server.port: 127.0.0.1:{taken} is already in use; do so"


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_foreign_address_is_said_to_be_foreign(host: str) -> None:
    with pytest.raises(ListenError) as caught:
        bound(host, 18080)
    shown = f"[{host}]" if ":" in host else host
    assert str(caught.value).startswith(f"server.port: {shown}:18080 is ")
    assert str(caught.value).endswith("; do so")
    assert "\n" not in str(caught.value)


def test_name_that_does_not_resolve_is_a_problem_in_one_line() -> None:
    with pytest.raises(ListenError, match=r"^server\.port: no-such-host\.invalid:18080 is .+; do so$"):
        bound("no-such-host.invalid", 18080)
