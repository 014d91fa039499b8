import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog.testing

from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.fan_out import Answer, FanOut
from tests.support.fake_upstream import NOBODY, Clock, FakeUpstream, listing, request

TOOLS = "tools/list"
DOWN = UpstreamError("a", "unreachable", "Upstream 'a' is down")
DEADLINE_S = 0.02


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def fan_out(clock: Clock) -> AsyncIterator[FanOut]:
    fan_out = FanOut(DEADLINE_S, clock)
    yield fan_out
    await fan_out.close()


async def ask(fan_out: FanOut, upstream: FakeUpstream, caller: Caller = NOBODY, **more: Any) -> Answer:
    max_age_s = more.pop("max_age_s", 0.0)
    asked = request(more.pop("method", TOOLS), **more)
    return (await fan_out.ask([(upstream, asked)], caller, max_age_s=max_age_s))[upstream.name]


def names(answer: Answer) -> list[str]:
    assert answer.result is not None
    return [tool["name"] for tool in answer.result["tools"]]


# --- several at once ---


async def test_all_are_asked_at_once_and_answer_in_the_order_asked() -> None:
    fan_out = FanOut(60.0)
    upstreams = [FakeUpstream(name, tools=[name]) for name in "abc"]
    upstreams[0].hold()
    asking = asyncio.ensure_future(fan_out.ask([(one, request(TOOLS)) for one in upstreams], NOBODY))
    for upstream in upstreams:
        await upstream.seen(1)
    upstreams[0].let_go()
    answers = await asking
    assert list(answers) == ["a", "b", "c"]
    assert [names(answer) for answer in answers.values()] == [["a"], ["b"], ["c"]]
    assert not any(answer.is_missing for answer in answers.values())


async def test_one_that_is_silent_is_missing_and_the_others_are_not(fan_out: FanOut) -> None:
    silent, other = FakeUpstream("a"), FakeUpstream("b", tools=["x"])
    silent.hold()
    answers = await fan_out.ask([(silent, request(TOOLS)), (other, request(TOOLS))], NOBODY)
    assert names(answers["b"]) == ["x"]
    assert answers["a"].is_missing
    assert answers["a"].result is None
    failure = answers["a"].failure
    assert failure is not None
    assert failure.status == 504
    assert failure.body["error"]["data"] == {"upstream": "a", "reason": "timeout", "retryable": True}


async def test_what_one_of_them_breaks_at_is_logged_and_no_concern_of_the_others(fan_out: FanOut) -> None:
    broken, other = FakeUpstream("a"), FakeUpstream("b", tools=["x"])
    broken.failure = KeyError("bug")
    with structlog.testing.capture_logs() as log:
        answers = await fan_out.ask([(broken, request(TOOLS)), (other, request(TOOLS))], NOBODY)
    assert names(answers["b"]) == ["x"]
    assert answers["a"].is_missing
    assert log[0]["event"] == "unforeseen failure"


# --- what was said before ---


async def test_what_was_said_last_stands_in_for_one_that_fails(fan_out: FanOut, clock: Clock) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    await ask(fan_out, upstream)
    upstream.failure = DOWN
    clock.now_s += 100_000
    answer = await ask(fan_out, upstream)
    assert (names(answer), answer.is_stale, answer.is_missing) == (["x"], True, True)
    assert answer.failure == Outcome(
        {
            "error": {
                "code": -32603,
                "message": "Upstream 'a' is down",
                "data": {"upstream": "a", "reason": "unreachable", "retryable": False},
            }
        },
        502,
    )
    upstream.failure = None
    assert not (await ask(fan_out, upstream)).is_missing


@pytest.mark.parametrize(
    "other",
    [
        {"caller": Caller(Principal("bob", "bob"))},
        {"caller": Caller(NOBODY.principal, "Bearer other")},
        {"capabilities": {"elicitation": {"form": {}}}},
        {"capabilities": {"roots": {}}},
        {"params": {"cursor": "p2"}},
        {"params": {"cursor": ""}},
        {"params": {"cursor": "x" * 1000}},
    ],
)
async def test_what_one_was_told_is_for_nobody_else(fan_out: FanOut, other: dict[str, Any]) -> None:
    upstream = FakeUpstream("a")
    upstream.passes_authorization = True
    upstream.answers[TOOLS] = lambda _request: Outcome.of_result(listing(TOOLS, "x"))
    caller = Caller(NOBODY.principal, "Bearer one")
    await ask(fan_out, upstream, caller, capabilities={"elicitation": {}})
    upstream.failure = DOWN
    theirs = {"caller": caller, "capabilities": {"elicitation": {}}, **other}
    assert (await ask(fan_out, upstream, **theirs)).result is None
    assert (await ask(fan_out, upstream, caller, capabilities={"elicitation": {}})).is_stale


@pytest.mark.parametrize(
    "refusal",
    [
        ProtocolError(-32602, "bad cursor"),
        Outcome({"error": {"code": -32602, "message": "bad cursor"}}),
        Outcome({"error": {"code": -32603, "message": "who are you"}}, 401),
        Outcome({"error": {"code": -32603, "message": "not you"}}, 403),
    ],
)
async def test_a_refusal_is_no_outage(fan_out: FanOut, refusal: ProtocolError | Outcome) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    await ask(fan_out, upstream)
    if isinstance(refusal, Outcome):
        upstream.answers[TOOLS] = lambda _request: refusal
    else:
        upstream.failure = refusal
    answer = await ask(fan_out, upstream)
    assert (answer.result, answer.is_missing) == (None, True)


async def test_one_that_does_not_offer_the_list_lacks_nothing(fan_out: FanOut) -> None:
    upstream = FakeUpstream("a")
    upstream.failure = ProtocolError(-32601, "Upstream 'a' does not offer tools/list")
    answer = await ask(fan_out, upstream)
    assert (answer.is_refused, answer.is_missing, answer.result) == (True, False, None)


async def test_what_is_young_enough_is_given_without_asking(fan_out: FanOut, clock: Clock) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    first = await ask(fan_out, upstream)
    clock.now_s += 59
    again = await ask(fan_out, upstream, max_age_s=60)
    assert (again.result, again.asked_at_s, len(upstream.asked)) == (first.result, 1000.0, 1)
    await ask(fan_out, upstream, max_age_s=59)
    assert len(upstream.asked) == 2


async def test_after_a_change_nothing_is_young_enough(fan_out: FanOut, clock: Clock) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    await ask(fan_out, upstream)
    fan_out.forget("b", TOOLS)
    fan_out.forget("a", "prompts/list")
    await ask(fan_out, upstream, max_age_s=60)
    assert len(upstream.asked) == 1
    fan_out.forget("a", TOOLS)
    await ask(fan_out, upstream, max_age_s=60)
    assert len(upstream.asked) == 2
    upstream.failure = DOWN
    assert (await ask(fan_out, upstream)).is_stale


async def test_an_answer_to_a_question_from_before_a_change_is_old(clock: Clock) -> None:
    fan_out, upstream = FanOut(60.0, clock), FakeUpstream("a", tools=["x"])
    upstream.hold()
    asking = asyncio.ensure_future(ask(fan_out, upstream))
    await upstream.seen(1)
    clock.now_s += 1
    fan_out.forget("a", TOOLS)
    upstream.let_go()
    await asking
    await ask(fan_out, upstream, max_age_s=60)
    assert len(upstream.asked) == 2


# --- those that are late ---


async def test_one_that_was_late_is_waited_for_only_briefly_and_not_asked_the_same_again() -> None:
    fan_out, upstream = FanOut(0.3), FakeUpstream("a", tools=["x"])
    assert fan_out.patience_s("a") == 0.3
    upstream.hold()
    for _ in range(2):
        assert (await ask(fan_out, upstream)).is_missing
    assert fan_out.patience_s("a") == 0.25
    assert fan_out.patience_s("b") == 0.3
    assert len(upstream.asked) == 1
    await fan_out.close()
    assert upstream.cancelled == 1


async def test_an_answer_that_came_too_late_is_kept_for_the_next_time(fan_out: FanOut) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    upstream.hold()
    assert (await ask(fan_out, upstream)).result is None
    upstream.let_go()
    assert names(await ask(fan_out, upstream)) == ["x"]
    assert len(upstream.asked) == 1
    upstream.failure = DOWN
    assert (await ask(fan_out, upstream)).is_stale


async def test_an_answer_in_time_makes_up_for_one_that_was_late(fan_out: FanOut) -> None:
    fan_out, upstream = FanOut(60.0), FakeUpstream("a")
    fan_out._late.add("a")
    await ask(fan_out, upstream)
    assert fan_out.patience_s("a") == 60.0


async def test_an_answer_after_the_deadline_does_not(clock: Clock) -> None:
    fan_out, upstream = FanOut(60.0, clock), FakeUpstream("a")
    fan_out._late.add("a")
    upstream.hold()
    asking = asyncio.ensure_future(ask(fan_out, upstream))
    await upstream.seen(1)
    clock.now_s += 61
    upstream.let_go()
    assert not (await asking).is_missing
    assert fan_out.patience_s("a") == 0.25


# --- those who leave ---


async def test_a_client_that_leaves_takes_its_question_along() -> None:
    fan_out, upstream = FanOut(60.0), FakeUpstream("a")
    upstream.hold()
    asking = asyncio.ensure_future(ask(fan_out, upstream))
    await upstream.seen(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.sleep(0)
    assert upstream.cancelled == 1


async def test_a_client_that_leaves_does_not_take_along_what_is_asked_for_others_too(fan_out: FanOut) -> None:
    upstream = FakeUpstream("a", tools=["x"])
    upstream.hold()
    await ask(fan_out, upstream)
    asking = asyncio.ensure_future(ask(fan_out, upstream))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    upstream.let_go()
    assert names(await ask(fan_out, upstream)) == ["x"]
    assert (upstream.cancelled, len(upstream.asked)) == (0, 1)
