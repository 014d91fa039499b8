"""`python -m gateway.demo`: the demo server alone, without a gateway in front."""

import argparse

import uvicorn

from gateway.demo.server import PATH, create_app


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m gateway.demo", description=f"A legacy MCP server at {PATH}.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8081)
    arguments = parser.parse_args()
    # GET streams never end by themselves: do not wait for them at shutdown.
    uvicorn.run(create_app(), host=arguments.host, port=arguments.port, timeout_graceful_shutdown=1)


main()
