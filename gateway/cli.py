"""The command line: serve, check, probe, import, keygen, demo.

Exit codes: 0 fine, 1 problems (each a line on stderr), 2 a command line that cannot be read. What a command needs is
imported when it runs, so that the others stay quick.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway import __version__
from gateway.errors import GatewayError

if TYPE_CHECKING:
    from gateway.config.model import Settings

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_ENVIRONMENT: Final = "Without -c, environment variables configure one upstream: ERA_GATEWAY_UPSTREAM_URL and others."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the arguments; those of the process by default.

    Returns:
        The exit code.

    Raises:
        SystemExit: 2 for a bad command line; 0 after --help and --version.
    """
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except GatewayError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left. Python flushes stdout once more at exit, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="era-gateway",
        description="A stateless MCP endpoint (2026-07-28) in front of servers of every era.",
        epilog="Exit codes: 0 fine, 1 problems, 2 a command line that cannot be read.",
    )
    parser.add_argument("--version", action="version", version=f"era-gateway {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_check(commands)
    _add_probe(commands)
    _add_import(commands)
    _add_keygen(commands)
    _add_demo(commands)
    return parser


def _add_serve(commands: _Commands) -> None:
    about = "Run the gateway until it is told to stop (SIGTERM, or Ctrl-C)."
    parser = commands.add_parser("serve", help="run the gateway", description=about, epilog=_ENVIRONMENT)
    _add_config(parser)
    parser.add_argument("--host", help="listen on this address instead of server.host")
    parser.add_argument("--port", type=_port, help="listen on this port instead of server.port; 0: any free one")
    parser.add_argument("--reload", action="store_true", help="start anew when the configuration file changes")
    parser.set_defaults(run=_serve, parser=parser)


def _add_check(commands: _Commands) -> None:
    about = "List every problem of a configuration; if there is none, print what was understood, secrets as ***."
    parser = commands.add_parser("check", help="check a configuration", description=about, epilog=_ENVIRONMENT)
    _add_config(parser)
    parser.set_defaults(run=_check)


def _add_probe(commands: _Commands) -> None:
    about = "Ask a server which era, version, transport and capabilities it speaks."
    usage = "era-gateway probe [--header 'NAME: VALUE'] URL | [--env NAME=VALUE] -- COMMAND ARG... | -c FILE"
    parser = commands.add_parser("probe", help="ask a server what it speaks", description=about, usage=usage)
    parser.add_argument(
        "target",
        nargs="*",
        metavar="URL",
        help="the server's MCP endpoint, such as https://HOST/mcp; or, after --, the command of a stdio server",
    )
    parser.add_argument(
        "--header", action="append", default=[], type=_header, metavar="'NAME: VALUE'", help="send it; may be repeated"
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        type=_variable,
        metavar="NAME=VALUE",
        help="give the command a variable beside PATH, HOME and the like (NAME alone: your own); may be repeated",
    )
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="ask every server of a configuration, and name what clashes"
    )
    parser.set_defaults(run=_probe, parser=parser)


def _add_import(commands: _Commands) -> None:
    about = "Make a configuration of the servers in a client's mcp.json; secrets become ${NAME}, and are not shown."
    parser = commands.add_parser("import", help="make a configuration of a client's mcp.json", description=about)
    parser.add_argument("file", type=Path, metavar="FILE", help="the client's file: JSON, with or without comments")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")
    parser.add_argument("--force", action="store_true", help="even if that file exists")
    parser.set_defaults(run=_import)


def _add_keygen(commands: _Commands) -> None:
    about = "Print a new key for state.keys. Put the newest first, and keep the old one until rounds.ttl has passed."
    parser = commands.add_parser("keygen", help="print a new state key", description=about)
    parser.set_defaults(run=_keygen)


def _add_demo(commands: _Commands) -> None:
    about = "Run a small legacy server with the gateway in front of it, and print calls to paste."
    parser = commands.add_parser("demo", help="try the gateway with a small server", description=about)
    parser.add_argument("--port", type=_port, help="the gateway's port")
    parser.set_defaults(run=_demo)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help="the configuration file (YAML)")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"not a port: {text!r}; allowed: 0 to 65535")
    return int(text)


def _header(text: str) -> tuple[str, str]:
    from gateway.config.secret import parse_header_name, parse_header_value

    name, _, value = text.partition(":") if ":" in text else ("", "", "")
    try:
        return parse_header_name(name.strip()), str(parse_header_value(value))
    except ValueError:
        allowed = "'NAME: VALUE' in ASCII, other than what the protocol sets itself"
        raise argparse.ArgumentTypeError(f"not a header; allowed: {allowed}") from None


def _variable(text: str) -> tuple[str, str]:
    from gateway.config.command import parse_variable_name

    name, sign, value = text.partition("=")
    try:
        return str(parse_variable_name(name)), value if sign else os.environ[name]
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a variable: {name!r}; allowed: NAME=VALUE, or NAME") from None
    except KeyError:
        raise argparse.ArgumentTypeError(f"{name} is not set in the environment") from None


def _settings(arguments: argparse.Namespace) -> "Settings":
    from gateway.config.environment import from_environment
    from gateway.config.load import load

    path: Path | None = arguments.config
    return from_environment(os.environ) if path is None else load(path, os.environ)


def _settings_to_serve(arguments: argparse.Namespace) -> "Settings":
    from gateway.config.problems import ConfigError, Problem

    settings = _settings(arguments).listening_on(arguments.host, arguments.port)
    if settings.server.clashes:
        remedy = "choose another port, or write server.admin: false"
        raise ConfigError((Problem("command line", None, "--port: the admin port", remedy=remedy),))
    return settings


def _warn(settings: "Settings") -> None:
    from gateway.config.review import warnings
    from gateway.process import raise_descriptor_limit

    for warning in warnings(settings, descriptors=raise_descriptor_limit()):
        print(f"warning: {warning}", file=sys.stderr)


def _check(arguments: argparse.Namespace) -> int:
    from gateway.config.review import capacity, summary
    from gateway.process import raise_descriptor_limit

    settings = _settings(arguments)
    _warn(settings)
    print(f"# {arguments.config or 'environment'}: no problems; understood as follows\n{summary(settings)}", end="")
    print(f"# {capacity(settings, raise_descriptor_limit())}")
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    if arguments.reload:
        return _serve_and_reload(arguments)
    settings = _settings_to_serve(arguments)
    from gateway.serving import serve

    _warn(settings)
    return _run(lambda: serve(settings))


def _serve_and_reload(arguments: argparse.Namespace) -> int:
    if arguments.config is None:
        arguments.parser.error("--reload watches a file: give one with -c")
    from gateway.reload import supervise

    host = ["--host", arguments.host] if arguments.host is not None else []
    port = ["--port", str(arguments.port)] if arguments.port is not None else []
    command = [sys.executable, "-m", "gateway", "serve", "-c", str(arguments.config), *host, *port]
    return supervise(arguments.config, command, lambda: _settings_to_serve(arguments).server.drain_s)


def _run(serve: Callable[[], None]) -> int:
    """Serve, and give the exit code of a server that could not start the one meaning that it has here."""
    try:
        serve()
    except SystemExit as stop:
        return 1 if stop.code else 0
    return 0


def _probe(arguments: argparse.Namespace) -> int:
    from gateway.probing import probe

    return probe(arguments, lambda: _settings(arguments))


def _import(arguments: argparse.Namespace) -> int:
    from gateway.importing import run

    run(arguments.file, arguments.output, force=arguments.force)
    return 0


def _keygen(_arguments: argparse.Namespace) -> int:
    from cryptography.fernet import Fernet

    print(Fernet.generate_key().decode())
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from gateway.serving import demo

    return _run(lambda: demo(arguments.port))
