"""What a listener asked to hear, what it can be promised, and what a change means to it.

2026-07-28, basic/patterns/subscriptions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.translate import notifications
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, notification

_FLAGS: Final = {
    "toolsListChanged": methods.TOOLS_CHANGED,
    "promptsListChanged": methods.PROMPTS_CHANGED,
    "resourcesListChanged": methods.RESOURCES_CHANGED,
}
_CAPABILITIES: Final = {
    methods.TOOLS_CHANGED: "tools",
    methods.PROMPTS_CHANGED: "prompts",
    methods.RESOURCES_CHANGED: "resources",
}
LISTS: Final = {
    methods.TOOLS_CHANGED: (methods.TOOLS_LIST,),
    methods.PROMPTS_CHANGED: (methods.PROMPTS_LIST,),
    methods.RESOURCES_CHANGED: (methods.RESOURCES_LIST, methods.RESOURCE_TEMPLATES_LIST),
}
"""The lists that a `list_changed` is about."""

MOST_PARTS: Final = 100
"""How many changes may wait for one listener before parts of resources are told as changes of the whole."""

Change: TypeAlias = tuple[str, str]
"""A method of a notification, and the URI that it names ("" for a list): two equal changes are one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Kinds of changes.

    Args:
        lists: the methods of `list_changed` notifications.
        uris: the resources whose updates count.
    """

    lists: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris)

    def __or__(self, other: "Filter") -> "Filter":
        return Filter(self.lists | other.lists, self.uris | other.uris)

    def __and__(self, other: "Filter") -> "Filter":
        return Filter(self.lists & other.lists, self.uris & other.uris)

    def __le__(self, other: "Filter") -> bool:
        return self.lists <= other.lists and self.uris <= other.uris

    @staticmethod
    def of_request(params: JsonObject) -> "Filter":
        """What a `subscriptions/listen` asks for; its parameters have been checked."""
        return Filter.of_notifications(params["notifications"])

    @staticmethod
    def of_notifications(asked: Json) -> "Filter":
        """Read a `notifications` member, of a request or of an acknowledgement."""
        if not isinstance(asked, dict):
            return Filter()
        uris = asked.get("resourceSubscriptions")
        texts = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        return Filter(frozenset(method for flag, method in _FLAGS.items() if asked.get(flag) is True), frozenset(texts))

    @staticmethod
    def of_changes(changes: Iterable[Change]) -> "Filter":
        """The kinds of these changes."""
        lists, uris = set[str](), set[str]()
        for method, uri in changes:
            if method == methods.RESOURCE_UPDATED:
                uris.add(uri)
            else:
                lists.add(method)
        return Filter(frozenset(lists), frozenset(uris))

    def to_notifications(self) -> JsonObject:
        """The `notifications` member that stands for this."""
        written: JsonObject = {flag: True for flag, method in _FLAGS.items() if method in self.lists}
        if self.uris:
            written["resourceSubscriptions"] = sorted(self.uris)
        return written

    def changes(self) -> Iterable[Change]:
        """Every change that this lets pass: what may have been missed in a gap."""
        yield from ((method, "") for method in sorted(self.lists))
        yield from ((methods.RESOURCE_UPDATED, uri) for uri in sorted(self.uris))

    def asked_as(self, change: Change) -> Change | None:
        """The change as it was asked for: an update may name a part of a resource; None if nobody asked for it."""
        method, uri = change
        if method != methods.RESOURCE_UPDATED:
            return change if method in self.lists else None
        if uri in self.uris:
            return change
        whole = next((whole for whole in wholes(uri) if whole in self.uris), None)
        return None if whole is None else (method, whole)


def wholes(uri: str) -> Iterable[str]:
    """Every resource that one with this URI may be a part of, the nearest first; with and without a final slash."""
    end = uri.rfind("/")
    while end > 0:
        yield uri[: end + 1]
        yield uri[:end]
        end = uri.rfind("/", 0, end)


def deliverable(asked: Filter, capabilities: JsonObject, *, is_heard: bool, is_watched: bool) -> Filter:
    """What of a request a legacy server's changes can honestly be promised for.

    Args:
        asked: what the client wants.
        capabilities: of the server.
        is_heard: whether the server has a stream on which it can tell.
        is_watched: whether the gateway looks for changes by itself.
    """
    lists = frozenset(
        method
        for method in asked.lists
        if (is_heard and is_told(capabilities, method)) or (is_watched and _has(capabilities, method))
    )
    can_subscribe = is_heard and _has(capabilities, methods.RESOURCES_CHANGED, "subscribe")
    return Filter(lists, asked.uris if can_subscribe else frozenset())


def is_told(capabilities: JsonObject, list_changed: str) -> bool:
    """Whether a server promises to tell when a list changes."""
    return _has(capabilities, list_changed, "listChanged")


def _has(capabilities: JsonObject, method: str, member: str | None = None) -> bool:
    capability = capabilities.get(_CAPABILITIES[method])
    if not isinstance(capability, dict):
        return False
    return member is None or capability.get(member) is True


def change_of(message: JsonObject) -> Change:
    """What a notification of the server says has changed."""
    params = message.get("params")
    uri = params.get("uri") if isinstance(params, dict) and message["method"] == methods.RESOURCE_UPDATED else None
    return message["method"], uri if isinstance(uri, str) else ""


@dataclass(slots=True)
class Subscription:
    """One `subscriptions/listen` and what waits to be told on its stream.

    What waits is a set, not a queue: a change that happens again before it was told is told once. So a client that
    reads slowly costs no more memory than what it asked for, and `MOST_PARTS`.

    Args:
        id: of the listen request, with its type.
        granted: what was acknowledged.
    """

    id: RequestId
    granted: Filter
    _waiting: dict[Change, JsonObject | None] = field(default_factory=dict)

    def offer(self, change: Change, params: JsonObject | None, *, may_know_parts: bool = True) -> bool:
        """Take a change in; says whether it counts here.

        Args:
            change: what has changed.
            params: what the server says of it, None for a bare notification.
            may_know_parts: whether the change may name a part of a resource that was asked for: its name may be
                somebody else's secret, while what was asked for is known here already.
        """
        asked = self.granted.asked_as(change)
        if asked is None or (asked != change and not may_know_parts):
            return False
        if asked != change and change not in self._waiting and len(self._waiting) >= MOST_PARTS:
            change, params = asked, None
        if params is not None or change not in self._waiting:
            self._waiting[change] = params
        return True

    def offer_all(self) -> None:
        """Something may have been missed: take it that everything has changed."""
        for change in self.granted.changes():
            self._waiting.setdefault(change, None)

    def take(self) -> list[JsonObject]:
        """The notifications that are due."""
        waiting, self._waiting = self._waiting, {}
        return [self._notification(change, params) for change, params in waiting.items()]

    def acknowledgement(self) -> JsonObject:
        """The first message of the stream."""
        params = {"notifications": self.granted.to_notifications()}
        return notification(methods.ACKNOWLEDGED, notifications.to_modern_change(params, self.id))

    def _notification(self, change: Change, params: JsonObject | None) -> JsonObject:
        method, uri = change
        said = {**(params or {}), "uri": uri} if uri else params
        return notification(method, notifications.to_modern_change(said, self.id))
