"""From settings to a running process: the gateway on its ports, until a signal ends it."""

import contextlib

import structlog
import uvicorn

from gateway import telemetry
from gateway.app import Gateway
from gateway.config import model
from gateway.demo.calls import curl_calls
from gateway.demo.server import PATH as DEMO_PATH
from gateway.demo.server import create_app as create_demo
from gateway.process import raise_descriptor_limit
from gateway.server.graceful import GracefulServer
from gateway.server.ports import Bound, bind, run
from gateway.server.protocol import OneWriteProtocol
from gateway.server.site import Site, admin_site

log = structlog.get_logger()


def serve(settings: model.Settings) -> None:
    """Serve until a signal ends it.

    Raises:
        ListenError: a port cannot be had; nothing was started.
        KeyboardInterrupt: the signal was SIGINT.
    """
    telemetry.configure(settings.log.level)
    raise_descriptor_limit()
    gateway = Gateway(settings)
    server = settings.server
    with contextlib.ExitStack() as ports:
        remedy = "choose another port, or end what listens there"
        front = ports.enter_context(_bound_front(gateway, server, "server.port", remedy))
        beside = [] if server.admin is None else [ports.enter_context(_bound_admin(gateway, server.admin))]
        admin = None if server.admin is None else f"{server.admin.host}:{beside[0].port}"
        log.info("serving", host=server.host, port=front.port, admin=admin, upstreams=list(gateway.upstreams))
        run(front, beside)


def _bound_front(
    gateway: Gateway, server: model.Server, key: str, remedy: str
) -> contextlib.AbstractContextManager[Bound]:
    front = GracefulServer(uvicorn_config(gateway.site, server), gateway.drain)
    return contextlib.closing(bind(front, key, remedy))


def _bound_admin(gateway: Gateway, admin: model.Admin) -> contextlib.AbstractContextManager[Bound]:
    config = uvicorn.Config(
        admin_site(gateway.readiness, gateway.exposition),
        host=admin.host,
        port=admin.port,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    remedy = "choose another port, or write server.admin: false"
    return contextlib.closing(bind(GracefulServer(config), "server.admin", remedy))


def uvicorn_config(site: Site, server: model.Server) -> uvicorn.Config:
    """How uvicorn serves a site."""
    return uvicorn.Config(
        site,
        host=server.host,
        port=server.port,
        http=OneWriteProtocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="on",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, int(server.drain_s)),
        backlog=4096,
    )


def demo(port: int | None) -> None:
    """Run the demo server with the gateway in front of it, and print calls to paste, until a signal ends it.

    Args:
        port: the gateway's; 8080 by default.

    Raises:
        ListenError: the port cannot be had.
        KeyboardInterrupt: the signal was SIGINT.
    """
    telemetry.configure("warning")
    config = uvicorn.Config(create_demo(), port=0, log_config=None, timeout_graceful_shutdown=1)
    with contextlib.closing(bind(GracefulServer(config), "demo", "end something that listens")) as behind:
        settings = model.Settings.model_validate(
            {
                "server": {"port": 8080 if port is None else port, "admin": False, "drain": "1s"},
                "upstreams": {"demo": {"url": f"http://127.0.0.1:{behind.port}{DEMO_PATH}"}},
            }
        )
        remedy = "choose another port with --port"
        with _bound_front(Gateway(settings), settings.server, "demo", remedy) as front:
            print(curl_calls(f"http://127.0.0.1:{front.port}{settings.server.path}"), flush=True)
            run(front, [behind])
