"""Rung 12: the arguments that a tool wants mirrored into `Mcp-Param-*` headers.

An intermediary may have routed or billed by the header; a call whose arguments say something else must not run
(2026-07-28, basic/transports/streamable-http, "Server Behavior for Custom Headers"). Values never go on the wire.
"""

import re
from decimal import Decimal
from typing import Final

from gateway.core.inbound_request import InboundError, InboundRequest
from gateway.errors import ProtocolError
from gateway.translate.param_marks import ParamMark
from gateway.wire import codes, headers
from gateway.wire.jsonrpc import Json

_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_BOOLEANS: Final = {True: "true", False: "false"}


def check_param_headers(request: InboundRequest, marks: tuple[ParamMark, ...]) -> None:
    """Compare each marked argument of a call with its header; headers of no mark are nobody's business here.

    Args:
        request: a `tools/call`.
        marks: the valid marks of the tool that it calls.

    Raises:
        InboundError: -32020 for a header that is missing, malformed or different, or there without an argument.
    """
    for mark in marks:
        problem = _problem(request, mark)
        if problem is not None:
            message = f"{headers.PARAM_PREFIX}{mark.header} {problem} params.arguments.{'.'.join(mark.path)}"
            raise InboundError(ProtocolError(codes.HEADER_MISMATCH, message), request.id)


def _problem(request: InboundRequest, mark: ParamMark) -> str | None:
    argument = _argument(request.params.get("arguments"), mark.path)
    header = request.param_headers.get(mark.header.lower())
    if argument is None:
        return None if header is None else "was sent without"
    if header is None:
        return "is missing: it must mirror"
    try:
        text = headers.decode_sentinel(header)
    except ValueError:
        return "has characters that need Base64, or Base64 that does not decode; it must mirror"
    return None if _is_equal(text, argument) else "differs from"


def _argument(arguments: Json, path: tuple[str, ...]) -> Json:
    """The value at the exact path; None when nothing is there, as for null: both send no header."""
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _is_equal(text: str, argument: Json) -> bool:
    # By the argument's type, not the mark's: an argument of a wrong type is for the tool to refuse.
    if isinstance(argument, str):
        return text == argument
    if isinstance(argument, bool):
        return text == _BOOLEANS[argument]
    if isinstance(argument, int | float):  # numerically: 42.0 and 42 are equal ("Server Validation")
        return _NUMBER.fullmatch(text) is not None and Decimal(text) == Decimal(repr(argument))
    return False
