"""Large results go out in the server's own bytes, with what is added before them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.translate.splicing import splice
from gateway.wire.jsonrpc import Sourced, Spliced, decode_message, encode_response

ADDED = {"resultType": "complete", "_meta": {"who": "u"}}


def message(text: str) -> Sourced:
    return Sourced(json.loads(text), text.encode())


def written(result: dict[str, Any]) -> Any:
    return json.loads(b"".join(encode_response(7, {"result": result})))["result"]


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":"a-1","result":{"content":[]}}',
        '{"result":{"content":[]},"jsonrpc":"2.0","id":"a-1"}',
        ' { "jsonrpc" : "2.0" , "id" : "a-1" , "result" : { "content" : [ ] } } \n',
        '{ "result" : { "content" : [ ] } , "jsonrpc" : "2.0", "id": "a-1" }',
        '{"jsonrpc":"2.0","id":"a-1","result":{}}',
        '{"jsonrpc":"2.0","id":"a-1","result":{ }}',
        '{"result":{"text":"}\\",\\"jsonrpc\\":\\"2.0\\",\\"id\\":\\"a\\"}"},"jsonrpc":"2.0","id":"a-1"}',
    ],
)
def test_added_members_and_the_servers_bytes_make_the_result(text: str) -> None:
    received = message(text)
    modern = {**received["result"], **ADDED}
    spliced = splice(received, modern)
    assert type(spliced) is Spliced
    assert written(spliced) == spliced == modern


@pytest.mark.parametrize(
    "text",
    [
        '{"id":"a-1","jsonrpc":"2.0","result":{"content":[]}}',
        '{"jsonrpc":"2.0","id":"a-1","result":{"content":[]},"more":1}',
        '{"jsonrpc":"2.0","id":7,"result":{"content":[]}}',
        '{"jsonrpc":"2.0","id":"a\\"b","result":{"content":[]}}',
    ],
)
def test_an_unusual_message_is_written_anew(text: str) -> None:
    received = message(text)
    modern = {**received["result"], **ADDED}
    assert type(splice(received, modern)) is dict


@pytest.mark.parametrize(
    "modern",
    [
        {"resultType": "complete", "content": [1]},
        {"resultType": "complete"},
        {"content": [], "resultType": "complete", "_meta": {}},
    ],
)
def test_a_result_that_was_changed_within_is_written_anew(modern: dict[str, Any]) -> None:
    received = message('{"jsonrpc":"2.0","id":"a-1","result":{"content":[],"_meta":{"x":1}}}')
    assert splice(received, modern) is modern


def test_what_came_without_its_text_is_written_anew() -> None:
    modern = {"content": [], **ADDED}
    assert splice({"jsonrpc": "2.0", "id": "a", "result": {"content": []}}, modern) is modern


def test_a_copy_is_a_plain_object() -> None:
    received = message('{"jsonrpc":"2.0","id":"a-1","result":{"content":[]}}')
    spliced = splice(received, {**received["result"], **ADDED})
    assert written({**spliced, "resultType": "changed"})["resultType"] == "changed"


def test_only_large_messages_keep_their_text() -> None:
    assert type(decode_message(b'{"a":1}')) is dict
    assert type(decode_message(b'{"a":"' + b"x" * 20_000 + b'"}')) is Sourced
    assert type(decode_message(b'["' + b"x" * 20_000 + b'"]')) is list


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.sampled_from([None, 2]))
def test_whatever_the_result_it_is_written_as_it_is(result: Any, is_result_first: bool, indent: int | None) -> None:
    envelope = {"jsonrpc": "2.0", "id": "a-1"}
    sent = {"result": result, **envelope} if is_result_first else {**envelope, "result": result}
    received = message(json.dumps(sent, indent=indent))
    modern = {**received["result"], **{key: value for key, value in ADDED.items() if key not in result}}
    assert written(splice(received, modern)) == modern
