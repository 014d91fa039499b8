"""FastMCP's proxy in front of one server. Arguments: port, upstream URL, `default` or `shared`."""

import asyncio
import sys

from fastmcp import Client
from fastmcp.server import create_proxy


async def serve(port: int, url: str, mode: str) -> None:
    """Serves until it is ended; `shared` uses one session upstream for everybody."""
    options = {"transport": "http", "host": "127.0.0.1", "port": port, "show_banner": False, "log_level": "error"}
    if mode == "default":
        await create_proxy(url).run_async(**options)
        return
    async with Client(url) as client:
        await create_proxy(client).run_async(**options)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
