"""What one upstream answered, as the merged endpoint passes it on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway.core.outcome import Outcome
from gateway.errors import ProtocolError
from gateway.wire import codes, meta
from gateway.wire.jsonrpc import JsonObject

MAX_LINKS: Final = 100
"""How many resources of one result are remembered."""


def with_server_info(outcome: Outcome, server_info: JsonObject) -> Outcome:
    """On the merged endpoint it is the gateway that answers."""
    result = outcome.body.get("result")
    if not isinstance(result, dict):
        return outcome
    before = result.get("_meta")
    about = {**(before if isinstance(before, dict) else {}), meta.SERVER_INFO: server_info}
    return replace(outcome, body={"result": {**result, "_meta": about}})


def with_public_name(outcome: Outcome, name: str, public: str) -> Outcome:
    """An error that names a tool or prompt names it as the client does."""
    error = outcome.body.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if not isinstance(data, dict) or name == public or data.get("name") != name:
        return outcome
    return replace(outcome, body={"error": {**outcome.body["error"], "data": {**data, "name": public}}})


def refusal_with_public_name(refusal: ProtocolError, name: str, public: str) -> ProtocolError:
    """The same of a refusal that was raised."""
    if not isinstance(refusal.data, dict) or name == public or refusal.data.get("name") != name:
        return refusal
    data = {**refusal.data, "name": public}
    return ProtocolError(refusal.code, refusal.message, data, status=refusal.status, reason=refusal.reason)


def links_of(outcome: Outcome) -> list[str]:
    """The resources that a result points to: they are read where it came from, listed or not."""
    result = outcome.body.get("result")
    if not isinstance(result, dict):
        return []
    return list(dict.fromkeys(_links(result)))[:MAX_LINKS]


def _links(result: JsonObject) -> Iterator[str]:
    content, messages = result.get("content"), result.get("messages")
    blocks = list(content) if isinstance(content, list) else []
    if isinstance(messages, list):
        blocks += [message.get("content") for message in messages if isinstance(message, dict)]
    for block in blocks:
        if not isinstance(block, dict):
            continue
        linked = block if block.get("type") == "resource_link" else block.get("resource")
        if isinstance(linked, dict) and isinstance(linked.get("uri"), str):
            yield linked["uri"]


def has_resource(outcome: Outcome) -> bool:
    """Whether an answer to `resources/read` is of one that is there: some servers give an empty one for any URI."""
    result = outcome.body.get("result")
    return isinstance(result, dict) and (result.get("resultType") != "complete" or bool(result.get("contents")))


def may_be_elsewhere(outcome: Outcome, *, is_likely: bool) -> bool:
    """Whether an answer to `resources/read` leaves it open that another server has the resource.

    Args:
        outcome: the answer.
        is_likely: whether there is reason to think that the server has it, so that its failure is what the client
            is to hear of.
    """
    if has_resource(outcome):
        return False
    error = outcome.body.get("error")
    code = error.get("code") if isinstance(error, dict) else codes.INVALID_PARAMS
    if is_likely:
        return code in (codes.INVALID_PARAMS, codes.METHOD_NOT_FOUND)
    return code != codes.MISSING_CAPABILITY
