"""`era-gateway probe -c FILE`: every server of a configuration, as a client would see it, and what clashes."""

from pathlib import Path
from typing import Any

from gateway.config.load import from_mapping
from gateway.inspection import Inspection, inspect
from tests.support.offering_server import OfferingUpstream
from tests.support.stdio import StdioServer, descendants


async def inspected(upstreams: dict[str, Any], **settings: Any) -> Inspection:
    return await inspect(from_mapping({"upstreams": upstreams, **settings}))


async def test_every_server_is_asked_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    before = descendants()
    found = await inspected(
        {
            "git": StdioServer(tmp_path).configured(tools={"include": ["echo", "facts"]}),
            "new": StdioServer(tmp_path, "--era", "modern").configured(tools={"include": ["echo"]}),
            "none": {"command": "no-such-program"},
        }
    )
    assert str(found).splitlines() == [
        "git   legacy, stdio 1: 2 tools",
        "new   modern, stdio 1: 1 tool",
        "none  Upstream 'none' cannot be reached: its command is not to be found",
    ]
    assert not found.is_whole
    assert descendants() <= before


async def test_clashes_are_named_where_there_is_no_prefix() -> None:
    one = OfferingUpstream("one", tools=[["x"], ["y"]], resources=["r:1"])
    two = OfferingUpstream("two", tools=["y", "z"], resources=["r:1", "r:2"])
    async with one, two:
        upstreams = {"one": {"url": one.url}, "two": {"url": two.url}}
        assert (await inspected(upstreams, prefix="never")).clashes == [
            "tools: y of one is used, that of two is left out",
            "resources: r:1 of one is used, that of two is left out",
        ]
        found = await inspected(upstreams)
        assert found.clashes == ["resources: r:1 of one is used, that of two is left out"]
        assert found.is_whole
        assert "one  legacy, one 1: 2 tools, 1 resource" in str(found)
