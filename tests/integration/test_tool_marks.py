"""What the gateway learns of a server's tools before the first call of one."""

from tests.support.gateway_app import gateway_for
from tests.support.scripted import ScriptedUpstream


async def test_the_first_calls_share_one_look_at_the_tools() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        texts = [str(number) for number in range(20)]
        answers = await front.calls(texts)
        assert [answer.text for answer in answers] == texts
        assert len(upstream.received("tools/list")) == 1
        await front.calls(texts)
        assert len(upstream.received("tools/list")) == 1
