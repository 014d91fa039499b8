"""What a listener asks for, what it can be promised, and what waits for it."""

from typing import Any

import pytest

from gateway.core.subscriptions import MOST_PARTS, Change, Filter, Subscription, change_of, deliverable, is_told
from gateway.wire import methods

TOOLS = (methods.TOOLS_CHANGED, "")
PROMPTS = (methods.PROMPTS_CHANGED, "")
UPDATED = methods.RESOURCE_UPDATED
EVERYTHING = Filter(
    frozenset({methods.TOOLS_CHANGED, methods.PROMPTS_CHANGED, methods.RESOURCES_CHANGED}), frozenset({"note://1"})
)


# --- filters ---


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"toolsListChanged": True}, Filter(frozenset({methods.TOOLS_CHANGED}))),
        ({"toolsListChanged": False, "promptsListChanged": None}, Filter()),
        ({"resourceSubscriptions": ["a:1", "a:1"]}, Filter(uris=frozenset({"a:1"}))),
        ({"resourceSubscriptions": ["a:1", 7]}, Filter(uris=frozenset({"a:1"}))),
        ({"resourceSubscriptions": "a:1"}, Filter()),
        ({"vendorChanged": True}, Filter()),
        ([], Filter()),
        (None, Filter()),
    ],
)
def test_what_is_asked_for_is_read_leniently(asked: Any, expected: Filter) -> None:
    assert Filter.of_notifications(asked) == expected


def test_a_filter_is_written_as_it_was_read() -> None:
    written = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["note://1"],
    }
    assert EVERYTHING.to_notifications() == written
    assert Filter.of_notifications(written) == EVERYTHING
    assert Filter().to_notifications() == {}


def test_filters_are_sets() -> None:
    tools, prompts = Filter(frozenset({methods.TOOLS_CHANGED})), Filter(frozenset({methods.PROMPTS_CHANGED}))
    both = tools | prompts
    assert both & tools == tools
    assert tools <= both
    assert not both <= tools
    assert not Filter()
    assert Filter(uris=frozenset({"a:1"}))
    assert Filter.of_changes(EVERYTHING.changes()) == EVERYTHING


@pytest.mark.parametrize(
    ("changed", "asked_as"),
    [
        ("file:///dir", "file:///dir"),
        ("file:///dir/", "file:///dir"),
        ("file:///dir/a", "file:///dir"),
        ("file:///dir/a/b/c", "file:///dir"),
        ("file:///directory", None),
        ("file:///di", None),
        ("file:///slash/a", "file:///slash/"),
        ("file:///slash/", "file:///slash/"),
        ("file:///slash", None),
        ("note://1", "note://1"),
        ("note://1?part=2", None),
        ("note://", None),
        ("", None),
    ],
)
def test_an_update_counts_for_a_resource_and_its_parts(changed: str, asked_as: str | None) -> None:
    filter_ = Filter(uris=frozenset({"file:///dir", "file:///slash/", "note://1"}))
    expected = None if asked_as is None else (UPDATED, asked_as)
    assert filter_.asked_as((UPDATED, changed)) == expected


def test_a_list_change_counts_where_it_was_asked_for() -> None:
    filter_ = Filter(frozenset({methods.TOOLS_CHANGED}))
    assert filter_.asked_as(TOOLS) == TOOLS
    assert filter_.asked_as(PROMPTS) is None


# --- promises ---


@pytest.mark.parametrize(
    ("capabilities", "is_heard", "is_watched", "expected"),
    [
        ({"tools": {"listChanged": True}}, True, False, {"toolsListChanged": True}),
        ({"tools": {"listChanged": True}}, False, False, {}),
        ({"tools": {}}, True, False, {}),
        ({"tools": {}}, False, True, {"toolsListChanged": True}),
        ({"prompts": None}, True, True, {}),
        ({"resources": {"subscribe": True}}, True, False, {"resourceSubscriptions": ["note://1"]}),
        ({"resources": {"subscribe": True}}, False, True, {"resourcesListChanged": True}),
        ({}, True, True, {}),
    ],
)
def test_no_more_is_promised_than_can_be_delivered(
    capabilities: dict[str, Any], is_heard: bool, is_watched: bool, expected: dict[str, Any]
) -> None:
    granted = deliverable(EVERYTHING, capabilities, is_heard=is_heard, is_watched=is_watched)
    assert granted.to_notifications() == expected
    assert granted <= EVERYTHING


def test_only_a_true_promise_of_the_server_counts() -> None:
    assert is_told({"tools": {"listChanged": True}}, methods.TOOLS_CHANGED)
    assert not is_told({"tools": {"listChanged": "true"}}, methods.TOOLS_CHANGED)
    assert not is_told({"tools": True}, methods.TOOLS_CHANGED)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ({"method": UPDATED, "params": {"uri": "note://1"}}, (UPDATED, "note://1")),
        ({"method": UPDATED, "params": {"uri": 7}}, (UPDATED, "")),
        ({"method": UPDATED}, (UPDATED, "")),
        ({"method": methods.TOOLS_CHANGED, "params": {"uri": "note://1"}}, TOOLS),
        ({"method": methods.TOOLS_CHANGED, "params": []}, TOOLS),
    ],
)
def test_a_change_is_read_from_a_notification(message: dict[str, Any], change: Change) -> None:
    assert change_of(message) == change


# --- what waits ---


def names(subscription: Subscription) -> list[str]:
    """What is due: URIs, or methods where there is none."""
    return [message["params"].get("uri", message["method"]) for message in subscription.take()]


def test_a_change_that_happens_again_before_it_was_told_is_told_once() -> None:
    subscription = Subscription(1, EVERYTHING)
    for _ in range(1000):
        assert subscription.offer(TOOLS, None)
        assert subscription.offer((UPDATED, "note://1"), None)
    assert names(subscription) == [methods.TOOLS_CHANGED, "note://1"]
    assert names(subscription) == []


def test_what_was_not_granted_does_not_wait() -> None:
    subscription = Subscription(1, Filter(frozenset({methods.TOOLS_CHANGED})))
    assert not subscription.offer(PROMPTS, None)
    assert not subscription.offer((UPDATED, "note://1"), None)
    assert names(subscription) == []


def test_parts_beyond_a_bound_become_the_whole() -> None:
    subscription = Subscription(1, Filter(uris=frozenset({"file:///dir"})))
    for number in range(10 * MOST_PARTS):
        assert subscription.offer((UPDATED, f"file:///dir/{number}"), None)
    due = names(subscription)
    assert len(due) == MOST_PARTS + 1
    assert due[-1] == "file:///dir"
    assert subscription.offer((UPDATED, "file:///dir/again"), None)
    assert names(subscription) == ["file:///dir/again"]


def test_what_a_server_says_beside_is_kept_whoever_repeats_the_change_without_it() -> None:
    subscription = Subscription(1, EVERYTHING)
    subscription.offer((UPDATED, "note://1"), {"uri": "note://1", "title": "One"})
    subscription.offer((UPDATED, "note://1"), None)
    (due,) = subscription.take()
    assert due["params"]["title"] == "One"


def test_parts_can_be_kept_from_who_must_not_know_their_names() -> None:
    subscription = Subscription(1, Filter(uris=frozenset({"file:///dir"})))
    assert not subscription.offer((UPDATED, "file:///dir/secret"), None, may_know_parts=False)
    assert subscription.offer((UPDATED, "file:///dir"), None, may_know_parts=False)
    assert names(subscription) == ["file:///dir"]


def test_after_a_gap_everything_counts_as_changed() -> None:
    subscription = Subscription(1, EVERYTHING)
    subscription.offer(TOOLS, {"note": "kept"})
    subscription.offer_all()
    due = subscription.take()
    assert len(due) == 4
    assert due[0]["params"]["note"] == "kept"


@pytest.mark.parametrize("id", [1, "1"])
def test_every_message_names_the_subscription_with_its_type(id: str | int) -> None:
    subscription = Subscription(id, EVERYTHING)
    subscription.offer(TOOLS, {"_meta": {"io.modelcontextprotocol/subscriptionId": "forged", "vendor/x": 1}})
    for message in [subscription.acknowledgement(), *subscription.take()]:
        named = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
        assert (type(named), named) == (type(id), id)
