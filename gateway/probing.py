"""`era-gateway probe`: a URL, a command, or every server of a configuration."""

import argparse
import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config.model import Settings


def probe(arguments: argparse.Namespace, settings: Callable[[], "Settings"]) -> int:
    """Ask a server, or all of a configuration; print what was found.

    Args:
        arguments: the command line; its `parser` says what is wrong with it.
        settings: reads the configuration.

    Returns:
        The exit code.

    Raises:
        SystemExit, GatewayError: the command line, or the server, is no good.
    """
    if arguments.config is not None:
        return _probe_all(arguments, settings)
    if not arguments.target:
        arguments.parser.error("give a URL, -- and a command, or -c FILE")
    target: str = arguments.target[0]
    if len(arguments.target) > 1 or "://" not in target:
        return _probe_command(arguments)
    if not target.lower().startswith(("http://", "https://")):
        arguments.parser.error("not an http:// or https:// URL")
    if arguments.env:
        arguments.parser.error("--env is for a command; give a URL its --header")
    from gateway.upstream.probe import describe

    print(asyncio.run(describe(target, dict(arguments.header))))
    return 0


def _probe_all(arguments: argparse.Namespace, settings: Callable[[], "Settings"]) -> int:
    if arguments.target or arguments.header or arguments.env:
        arguments.parser.error("-c stands alone: servers, headers and variables are in the file")
    from gateway import telemetry
    from gateway.inspection import inspect

    telemetry.configure("error")
    found = asyncio.run(inspect(settings()))
    print(found)
    return 0 if found.is_whole else 1


def _probe_command(arguments: argparse.Namespace) -> int:
    if arguments.header:
        arguments.parser.error("--header is for a URL; give a command its --env")
    from gateway import telemetry
    from gateway.upstream.probe_stdio import describe_command
    from gateway.upstream.stdio import Command

    telemetry.configure("error")
    program, *rest = arguments.target
    variables = dict(arguments.env)
    command = Command(program, tuple(rest), variables, secrets=tuple(variables.values()))
    print(asyncio.run(describe_command(command)))
    return 0
