"""Results, from legacy servers to modern clients."""

import pytest

from gateway.translate.results import empty_list, to_modern_result
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

INFO: JsonObject = {"name": "u", "version": "1"}
INFO_KEY = "io.modelcontextprotocol/serverInfo"


def fail(text: str) -> None:
    raise AssertionError(f"unexpected warning: {text}")


def translate(method: str, result: Json, **options: Json) -> JsonObject:
    return to_modern_result(method, result, server_info=INFO, on_warning=fail, **options)


def call(**result: Json) -> JsonObject:
    return translate(methods.TOOLS_CALL, result)


def test_a_result_is_complete_and_names_its_server() -> None:
    assert call(content=[]) == {"content": [], "resultType": "complete", "_meta": {INFO_KEY: INFO}}


def test_server_info_stands_beside_what_was_in_meta() -> None:
    assert call(content=[], _meta={"com.ex/k": [1]})["_meta"] == {"com.ex/k": [1], INFO_KEY: INFO}


@pytest.mark.parametrize("meta", [None, [], "text"])
def test_a_meta_that_is_no_object_is_replaced(meta: Json) -> None:
    assert call(content=[], _meta=meta)["_meta"] == {INFO_KEY: INFO}


def test_without_server_info_meta_is_not_touched() -> None:
    result = to_modern_result(methods.TOOLS_CALL, {"content": []}, server_info=None, on_warning=fail)
    assert "_meta" not in result


@pytest.mark.parametrize("own", ["complete", "weird", "input_required", None])
def test_a_legacy_server_does_not_choose_the_result_type(own: Json) -> None:
    assert call(content=[], resultType=own)["resultType"] == "complete"


def test_content_is_passed_on_and_not_copied() -> None:
    content = [{"type": "x-card", "n": 12345678901234567890}]
    assert call(content=content)["content"] is content


def test_missing_content_is_the_text_of_structured_content() -> None:
    assert call(structuredContent={"n": 1, "s": "ż"})["content"] == [{"type": "text", "text": '{"n":1,"s":"ż"}'}]


@pytest.mark.parametrize("structured", [[], 0, False])
def test_any_value_is_structured_content(structured: Json) -> None:
    assert call(content=[], structuredContent=structured)["structuredContent"] == structured


def test_empty_content_beside_structured_content_stays_empty() -> None:
    assert call(content=[], structuredContent={"n": 1})["content"] == []


@pytest.mark.parametrize("result", [{}, {"content": None}, {"structuredContent": None}])
def test_a_call_without_any_content_has_an_empty_list_of_it(result: JsonObject) -> None:
    assert call(**result)["content"] == []


def test_a_task_is_not_mistaken_for_an_empty_result() -> None:
    with pytest.raises(ValueError, match="task"):
        call(task={"taskId": "t-1"})


def test_a_failed_tool_is_a_result() -> None:
    assert call(content=[], isError=True)["isError"] is True


def test_a_null_is_error_is_left_out() -> None:
    assert "isError" not in call(content=[], isError=None)


@pytest.mark.parametrize("method", sorted(methods.CACHEABLE - {methods.DISCOVER}))
def test_a_cacheable_result_says_that_nobody_may_keep_it(method: str) -> None:
    modern = translate(method, {methods.LIST_KEYS.get(method, "contents"): []})
    assert (modern["ttlMs"], modern["cacheScope"]) == (0, "private")


def test_the_operator_may_raise_the_cache_hints() -> None:
    modern = translate(methods.RESOURCES_READ, {"contents": []}, ttl_ms=5000, cache_scope="public")
    assert (modern["ttlMs"], modern["cacheScope"]) == (5000, "public")


def test_a_server_s_own_valid_cache_hints_win() -> None:
    own = {"tools": [], "ttlMs": 9, "cacheScope": "public"}
    modern = translate(methods.TOOLS_LIST, own, ttl_ms=5000)
    assert (modern["ttlMs"], modern["cacheScope"]) == (9, "public")


@pytest.mark.parametrize("ttl", [-1, 1.5, True, "9", None])
def test_a_server_s_invalid_ttl_is_replaced(ttl: Json) -> None:
    assert translate(methods.TOOLS_LIST, {"tools": [], "ttlMs": ttl}, ttl_ms=5000)["ttlMs"] == 5000


def test_a_server_s_unknown_scope_is_replaced() -> None:
    assert translate(methods.TOOLS_LIST, {"tools": [], "cacheScope": "shared"})["cacheScope"] == "private"


def test_after_a_round_nothing_may_be_kept_whatever_the_server_says() -> None:
    own = {"contents": [], "ttlMs": 9, "cacheScope": "public"}
    modern = translate(methods.RESOURCES_READ, own, ttl_ms=5000, cache_scope="public", after_round=True)
    assert (modern["ttlMs"], modern["cacheScope"]) == (0, "private")


def test_a_result_that_is_not_cacheable_has_no_hints() -> None:
    assert not {"ttlMs", "cacheScope"} & call(content=[]).keys()


def test_a_null_cursor_is_left_out() -> None:
    assert "nextCursor" not in translate(methods.PROMPTS_LIST, {"prompts": [], "nextCursor": None})


@pytest.mark.parametrize("cursor", ["", "p2"])
def test_a_cursor_passes_even_if_it_is_empty(cursor: str) -> None:
    assert translate(methods.PROMPTS_LIST, {"prompts": [], "nextCursor": cursor})["nextCursor"] == cursor


def test_a_list_is_never_cut_short_by_a_cursor_that_cannot_go_out() -> None:
    with pytest.raises(ValueError, match="nextCursor"):
        translate(methods.PROMPTS_LIST, {"prompts": [], "nextCursor": 2})


@pytest.mark.parametrize(
    ("method", "member"),
    [*methods.LIST_KEYS.items(), (methods.PROMPTS_GET, "messages"), (methods.RESOURCES_READ, "contents")],
)
def test_a_null_array_is_an_empty_one(method: str, member: str) -> None:
    assert translate(method, {member: None})[member] == []


@pytest.mark.parametrize("method", [*methods.LIST_KEYS, methods.PROMPTS_GET, methods.RESOURCES_READ, methods.COMPLETE])
def test_a_result_without_its_array_is_not_usable(method: str) -> None:
    with pytest.raises(ValueError, match="missing or not an"):
        translate(method, {"other": []})


@pytest.mark.parametrize(
    ("method", "result"),
    [
        (methods.TOOLS_LIST, {"tools": {}}),
        (methods.TOOLS_CALL, {"content": "text"}),
        (methods.COMPLETE, {"completion": {"values": "a"}}),
        (methods.TOOLS_CALL, []),
        (methods.TOOLS_CALL, None),
    ],
)
def test_a_result_of_the_wrong_shape_is_not_usable(method: str, result: Json) -> None:
    with pytest.raises(ValueError, match="not an"):
        translate(method, result)


def test_completion_values_that_are_null_are_none() -> None:
    modern = translate(methods.COMPLETE, {"completion": {"values": None, "total": 0}})
    assert modern["completion"] == {"values": [], "total": 0}


def test_a_prompt_s_null_description_is_left_out() -> None:
    assert "description" not in translate(methods.PROMPTS_GET, {"messages": [], "description": None})


def test_a_list_that_a_server_lacks_is_empty() -> None:
    assert empty_list(methods.RESOURCE_TEMPLATES_LIST, server_info=INFO) == {
        "resultType": "complete",
        "resourceTemplates": [],
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {INFO_KEY: INFO},
    }
