"""Two thousand calls, sixty-four at a time, of users who answer late, in reverse, in part, twice, wrongly, or never.

Four legacy servers ask with the same ids in every session: on the call's stream, on the GET stream, in JSON mode, and
with event ids. Each call carries a key of its own, and each answer the key of its call: a server notices an answer
that is not its caller's, and the caller a result that is not its own.
"""

import asyncio
import hashlib
import random
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, FOLDERS, FORM, PROMPT, ROOTS, SAID, SAMPLE, filled
from tests.support.round_client import Reply, RoundClient
from tests.support.round_damage import damages
from tests.support.running_gateway import running_gateway

CALLS: Final = 2000
IN_FLIGHT: Final = 64
SEED: Final = "rounds"
STATE_KEY: Final = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
USERS: Final = ("ada", "bob", "cyd", "dee", "eve", "fay")
SERVERS: Final[dict[str, JsonObject]] = {
    "correlated": {},
    "aside": {"correlated": False},
    "json": {"json_replies": True},
    "resumable": {"event_ids": True},
}
TOOLS: Final = ("quiet", "once", "in-turn", "at-once", "mixed")
DAMAGES: Final = damages(STATE_KEY)
TRICKS: Final = {
    *("wrong user", "other tool", "other arguments", "other server", "wrong answer"),
    *("answered ahead", "answered in part", "answered twice", "never came back", "hung up"),
}
FROZEN: Final = {"code": -32602, "message": "Invalid or expired request state"}


# --- the servers' tools ---


async def _quiet(call: Call) -> str:
    return f"{call.arguments['key']}:"


async def _in_turn(call: Call) -> str:
    return _told(call, [await call.ask(ELICIT, FORM) for _ in range(call.arguments["count"])])


async def _at_once(call: Call) -> str:
    questions = [call.put(ELICIT, FORM) for _ in range(call.arguments["count"])]
    return _told(call, await asyncio.gather(*map(call.answer_to, questions)))


async def _mixed(call: Call) -> str:
    form, sample, roots = [call.put(ELICIT, FORM), call.put(SAMPLE, PROMPT), call.put(ROOTS)]
    await asyncio.gather(call.answer_to(sample), call.answer_to(roots))
    return _told(call, [await call.answer_to(form)])


def _told(call: Call, answers: list[JsonObject]) -> str:
    if any(answer["action"] == "cancel" for answer in answers):
        raise RpcError(-32000, "nobody answered")
    names = [answer["content"]["name"] for answer in answers]
    assert all(name.startswith(f"{call.arguments['key']}/") for name in names), (call.arguments, names)
    return f"{call.arguments['key']}:{','.join(names)}"


# --- the users ---


class Queue:
    """Where users dawdle: they go on in the reverse of the order in which they came."""

    def __init__(self) -> None:
        self.present = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def dawdle(self) -> None:
        """Wait for others to come."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.release()
        await turn

    def release(self) -> None:
        """Let everybody go on, last come first, once half of all who are there dawdle."""
        if 2 * len(self._waiting) >= self.present:
            while self._waiting:
                self._waiting.pop().set_result(None)


class Errand:
    """One call of one user, from the first request to its result."""

    def __init__(self, number: int, client: RoundClient, queue: Queue, log: Counter[str]) -> None:
        self.dice = random.Random(f"{SEED}-{number}")  # noqa: S311 -- the same at every run
        self.key = f"k{number}"
        self.user = self.dice.choice(USERS)
        self.server = self.dice.choice(list(SERVERS))
        self.tool = self.dice.choice(TOOLS)
        self.arguments: JsonObject = {"key": self.key, "count": 1 if self.tool == "once" else self.dice.randint(2, 4)}
        self.is_abandoned = False
        self._client = client
        self._queue = queue
        self._log = log

    async def run(self) -> None:
        """Make the call, and answer until there is a result."""
        reply = await self._request(answers=self._ahead())
        while reply.asks:
            await self._misbehave(reply)
            if self.dice.random() < 0.03:
                self.is_abandoned = True
                await self._leave(reply)
                return
            if self.dice.random() < 0.3:
                await self._queue.dawdle()
            reply = await self._answer(reply)
        assert reply.text == f"{self.key}:{','.join(self._names())}"
        self._log["completed"] += 1

    def _names(self) -> list[str]:
        fixed: dict[str, int] = {"quiet": 0, "mixed": 1}
        forms: int = fixed.get(self.tool, self.arguments["count"])
        return [self._name(f"elicitation_{number}") for number in range(1, forms + 1)]

    def _name(self, question: str) -> str:
        return f"{self.key}/{question}"

    def _answers(self, names: Any) -> JsonObject:
        fixed = {"sampling_1": SAID, "roots_1": FOLDERS}
        return {name: fixed.get(name) or filled(self._name(name)) for name in names}

    def _ahead(self) -> JsonObject | None:
        if self.dice.random() < 0.9:
            return None
        self._log["answered ahead"] += 1
        return self._answers(["elicitation_2", "roots_1", "unknown"])

    async def _request(self, **change: Any) -> Reply:
        arguments = change.pop("arguments", self.arguments)
        tool = change.pop("tool", self.tool)
        server = change.pop("server", self.server)
        url = f"{self._client.url}/{server}"
        return await self._client.call(tool, arguments, **{"key": self.user, "url": url, **change})

    async def _answer(self, reply: Reply) -> Reply:
        """Answer all or some of the questions, once or twice at the same time."""
        names = list(reply.questions)
        if self.dice.random() < 0.25:
            names = self.dice.sample(names, self.dice.randrange(len(names)))
            self._log["answered in part"] += 1
        answers = {**self._answers(names), "unknown": {"action": "accept"}}
        if self.dice.random() < 0.8:
            return await self._request(answers=answers, state=reply.state)
        self._log["answered twice"] += 1
        both = await asyncio.gather(*(self._request(answers=answers, state=reply.state) for _ in range(2)))
        served = [one for one in both if "result" in one.message]
        refused = [one.error for one in both if "error" in one.message]
        assert (len(served), refused) == (1, [FROZEN])
        return served[0]

    async def _leave(self, reply: Reply) -> None:
        """Never come back; or come back, and hang up at whatever moment."""
        if self.dice.random() < 0.5:
            self._log["never came back"] += 1
            return
        self._log["hung up"] += 1
        answers = self._answers(reply.questions)
        retry = asyncio.create_task(self._request(answers=answers, state=reply.state))
        for _ in range(self.dice.randrange(400)):
            await asyncio.sleep(0)
        retry.cancel()
        await asyncio.wait([retry])

    async def _misbehave(self, reply: Reply) -> None:
        """Try what must not work; the round must not notice."""
        stolen: JsonObject = {"answers": self._answers(reply.questions), "state": reply.state}
        tricks: dict[str, JsonObject] = {
            "wrong user": {"key": self.dice.choice([user for user in USERS if user != self.user])},
            "other tool": {"tool": self.dice.choice([tool for tool in TOOLS if tool != self.tool])},
            "other arguments": {"arguments": {**self.arguments, "count": 9}},
            "other server": {"server": self.dice.choice([server for server in SERVERS if server != self.server])},
        }
        roll = self.dice.random()
        if roll < 0.2:
            trick = self.dice.choice(list(tricks))
            refused = await self._request(**{**stolen, **tricks[trick]})
        elif roll < 0.5:
            trick = self.dice.choice(list(DAMAGES))
            refused = await self._request(**{**stolen, "state": DAMAGES[trick](reply.state, self.dice)})
        elif roll < 0.55 and (forms := [name for name in reply.questions if name.startswith("elicitation")]):
            self._log["wrong answer"] += 1
            wrong = {**stolen["answers"], forms[0]: {"action": "accept", "content": {"name": ["secret"]}}}
            refused = await self._request(answers=wrong, state=reply.state)
            assert refused.error["message"] == f"inputResponses.{forms[0]}: content.name must be a string"
            return
        else:
            return
        self._log[trick] += 1
        assert (refused.status, refused.error) == (400, FROZEN), trick


async def test_two_thousand_calls_are_each_made_once_and_answered_by_their_own_user_alone() -> None:
    log: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(AskingServer(**kind)) for name, kind in SERVERS.items()}
        for server in servers.values():
            server.tools = dict(zip(TOOLS, (_quiet, _in_turn, _in_turn, _at_once, _mixed), strict=True))
        gateway = await stack.enter_async_context(running_gateway(**_settings(servers)))
        client = await stack.enter_async_context(RoundClient(gateway.url))

        errands = await _run_errands(client, log)
        abandoned = {errand.key for errand in errands if errand.is_abandoned}
        await gateway.until_at_rest()
        assert log["never came back"] <= gateway.suspended <= len(abandoned)

        await gateway.gateway.rounds.close()
        await gateway.until_idle()
        gateway.sweep()
        await gateway.until(lambda: gateway.background == 0)
        assert gateway.sessions == 0
        for server in servers.values():
            assert not server.sessions
            assert not server.running
            assert not server.unheard
            assert all(answer.was_awaited for answer in server.answers)

        executions = sum((server.executions for server in servers.values()), Counter[str]())
        assert executions == {errand.key: 1 for errand in errands}
        assert log["completed"] == CALLS - len(abandoned)
        assert log.keys() >= DAMAGES.keys() | TRICKS


async def _run_errands(client: RoundClient, log: Counter[str]) -> list[Errand]:
    queue = Queue()
    errands = [Errand(number, client, queue, log) for number in range(CALLS)]
    todo = iter(errands)

    async def work() -> None:
        queue.present += 1
        for errand in todo:
            await errand.run()
        queue.present -= 1
        queue.release()

    async with asyncio.TaskGroup() as workers:
        for _ in range(IN_FLIGHT):
            workers.create_task(work())
    return errands


def _settings(servers: dict[str, AskingServer]) -> dict[str, Any]:
    keys = [{"name": user, "sha256": hashlib.sha256(user.encode()).hexdigest()} for user in USERS]
    return {
        "upstreams": {name: {"url": server.url, "era": "legacy"} for name, server in servers.items()},
        "auth": {"type": "api_key", "keys": keys},
        "rounds": {"ttl": "1h", "max_per_principal": 1000},
        "state": {"keys": STATE_KEY},
    }
