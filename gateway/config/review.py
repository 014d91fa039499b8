"""What `check` says of a configuration that can be used: what was understood, and what the operator should know."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml

from gateway.config.addresses import is_every_address, is_loopback
from gateway.config.model import Settings, Upstream
from gateway.config.review_merging import merging_warnings
from gateway.config.review_sessions import session_warnings
from gateway.config.values import duration_text

_DESCRIPTORS_EACH: Final = 2
_DESCRIPTORS_ELSEWHERE: Final = 128


def summary(settings: Settings) -> str:
    """Write settings as YAML, every default filled in and every secret as `***`."""
    return yaml.safe_dump(settings.model_dump(mode="json", by_alias=True), sort_keys=False, width=1000)


def warnings(settings: Settings, *, descriptors: int | None = None) -> tuple[str, ...]:
    """Name what is allowed and yet may surprise, one line each: the key, what it means, what to do.

    Args:
        settings: what was configured.
        descriptors: how many files the process may have open; None if nothing bounds them.
    """
    beyond = () if descriptors is None else _descriptor_warnings(settings, descriptors)
    own = (*_server_warnings(settings), *_upstream_warnings(settings), *session_warnings(settings))
    return (*own, *merging_warnings(settings), *beyond)


def rounds_allowed(settings: Settings, descriptors: int) -> int:
    """How many rounds can be suspended at once with so many descriptors: two each, the call and its session's stream.

    Those that listeners and the sessions at work may need are set aside, and some for everything else.
    """
    sessions = sum(upstream.sessions.max for upstream in settings.upstreams.values())
    aside = _DESCRIPTORS_ELSEWHERE + settings.server.max_listeners + _DESCRIPTORS_EACH * sessions
    return max(0, descriptors - aside) // _DESCRIPTORS_EACH


def capacity(settings: Settings, descriptors: int | None) -> str:
    """Say how many suspended rounds the limit of open files allows. Args as for `warnings`."""
    if descriptors is None:
        return f"open files are not limited; rounds.max allows {settings.rounds.max} suspended rounds"
    allowed = rounds_allowed(settings, descriptors)
    return f"{descriptors} open files allow {allowed} suspended rounds; rounds.max allows {settings.rounds.max}"


def _descriptor_warnings(settings: Settings, descriptors: int) -> Iterator[str]:
    allowed = rounds_allowed(settings, descriptors)
    if settings.rounds.max > allowed:
        yield (
            f"rounds.max: {settings.rounds.max}, but {descriptors} open files allow {allowed} suspended rounds "
            "(two files each); raise the hard limit (ulimit -Hn), or lower rounds.max or server.max_listeners"
        )


def _server_warnings(settings: Settings) -> Iterator[str]:
    host = settings.server.host
    if not settings.state.keys:
        yield (
            "state.keys: none, so a key is made at each start, and calls that wait for an answer end with the process; "
            "run era-gateway keygen"
        )
    if is_every_address(host) and not settings.server.allowed_hosts:
        yield (
            f"server.allowed_hosts: none while bound to {host}, so the Host header is not checked; "
            "name the hosts that clients use"
        )
    server = settings.server
    if server.lame_duck_s and server.lame_duck_s >= server.drain_s:
        yield (
            f"server.lame_duck: {duration_text(server.lame_duck_s)}, not less than server.drain, so new calls are "
            "taken until all are cut off; raise server.drain"
        )
    is_open = settings.auth.type == "none" and not is_loopback(host)
    if is_open and any(upstream.has_credentials for upstream in settings.upstreams.values()):
        yield (
            f"auth.type: none while bound to {host}, so whoever reaches the port uses the upstreams' credentials; "
            "write auth: {type: api_key, ...}"
        )


def _upstream_warnings(settings: Settings) -> Iterator[str]:
    for name, upstream in settings.upstreams.items():
        if _tells_secrets(upstream):
            yield f"upstreams.{name}.url: http:// to another machine shows its credentials to the network; use https://"
        if upstream.command is not None and not _is_found(upstream.command, upstream.plain_env(), upstream.cwd):
            yield f"upstreams.{name}.command: not found here; {_command_remedy(upstream.command)}"
        if upstream.timeout_s > upstream.max_duration_s:
            limit = duration_text(upstream.max_duration_s)
            yield f"upstreams.{name}.timeout: longer than max_duration, which ends every call after {limit}; raise that"


def _tells_secrets(upstream: Upstream) -> bool:
    """Whether a credential leaves this machine in clear text."""
    if upstream.url is None:
        return False
    url = urlsplit(upstream.url)
    has_secrets = bool(upstream.headers) or upstream.auth.type == "passthrough"
    return has_secrets and url.scheme == "http" and not is_loopback(url.hostname or "")


def _is_found(program: str, env: Mapping[str, str], folder: str | None) -> bool:
    if os.sep in program:
        return Path(folder or "", program).expanduser().is_file()
    return shutil.which(program, path=env.get("PATH")) is not None


def _command_remedy(program: str) -> str:
    return "write what follows the first word under args" if " " in program else "install it where the gateway runs"
