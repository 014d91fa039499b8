"""The official modern client hears what changes on the official reference server."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import modern_client
from tests.support.modern_client import Operation, call
from tests.support.processes import Process, everything, gateway

pytestmark = pytest.mark.contract

WATCHED = "demo://resource/dynamic/text/1"


def _listen(during: Operation, **to: object) -> Operation:
    return {"do": "listen", "to": to, "during": during}


DATA = {"name": "hi.gz", "data": "data:text/plain;base64,aGk=", "outputType": "resourceLink"}


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with everything() as process:
        yield process


def run(server: Process, operation: Operation, **upstream: object) -> Any:
    """What the client hears while it does something."""
    with gateway({"everything": {"url": server.url, **upstream}}) as front:
        return modern_client.run(front.url, {"it": operation}).result("it")


def test_it_hears_of_an_update_of_what_it_subscribed_to(server: Process) -> None:
    # The server tells a session of updates that this session has switched on: so a user has one for everything.
    operation = _listen(call("toggle-subscriber-updates"), resource_subscriptions=[WATCHED])
    heard = run(server, operation, sessions={"reuse": "sticky"})
    assert heard["event"] == "ResourceUpdated"
    assert heard["honored"]["resourceSubscriptions"] == [WATCHED]
    assert "Started simulated resource updated notifications" in heard["during"]["content"][0]["text"]


@pytest.mark.parametrize("reuse", ["pooled", "sticky"])
def test_it_hears_of_a_resource_that_a_call_has_added(server: Process, reuse: str) -> None:
    operation = _listen(call("gzip-file-as-resource", DATA), resources_list_changed=True)
    heard = run(server, operation, sessions={"reuse": reuse})
    assert heard["event"] == "ResourcesListChanged"
    assert not heard["during"]["isError"]
