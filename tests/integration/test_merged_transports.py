"""Servers of every transport and era behind one endpoint, as a client's own list of servers has them."""

from pathlib import Path
from typing import Any

from tests.support.asking_tools import filled
from tests.support.offering_server import OfferingUpstream
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway
from tests.support.sse_server import SseServer
from tests.support.stdio import StdioServer, descendants


async def test_all_transports_are_one_endpoint(tmp_path: Path) -> None:
    before = descendants()
    async with (
        SseServer() as sse,
        OfferingUpstream("http", tools=["x"]) as http,
        OfferingUpstream("modern", era="modern", tools=["x"]) as modern,
    ):
        upstreams: dict[str, Any] = {
            "local": StdioServer(tmp_path).configured(),
            "old": {"type": "sse", "url": sse.url},
            "http": {"type": "http", "url": http.url},
            "modern": {"url": modern.url},
        }
        async with running_gateway(upstreams=upstreams) as gateway, RoundClient(gateway.url) as client:
            listed = (await client.request("tools/list")).result
            assert "era-gateway/unavailable" not in listed["_meta"]
            prefixes = [tool["name"].partition("__")[0] for tool in listed["tools"]]
            assert list(dict.fromkeys(prefixes)) == list(upstreams)
            for tool in ("local__echo", "old__echo"):
                assert (await client.call(tool, {"text": "hi"})).text == "hi"
            assert (await client.call("http__x")).text == "x@http"
            assert (await client.call("modern__x")).text == "x@modern"
            for tool in ("local__book", "old__ask"):
                asked = await client.call(tool)
                (name,) = asked.questions
                done = await client.call(tool, answers={name: filled("Ada")}, state=asked.state)
                assert "Ada" in done.text
            await gateway.until_idle()
    assert descendants() <= before
