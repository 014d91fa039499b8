"""Methods that 2026-07-28 does not have, and malformed parameters of those that it has: rung 13."""

from tests.support.malformed_case import CALL, METHOD, bad, bad_params

METHODS = tuple(
    bad(f"method {method}", METHOD, status=404, method=method, request_id="m", message={"id": "m"})
    for method in (
        *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
        *("tasks/list", "roots/list", "sampling/createMessage", "elicitation/create"),
        *("nope", "Tools/Call", "tools/call/", "notifications/initialized"),
    )
)

PARAMETERS = (
    *(bad_params("cursor a number", f"{kind}/list", {"cursor": 1}) for kind in ("tools", "prompts", "resources")),
    bad_params("cursor an object", "resources/templates/list", {"cursor": {}}),
    bad_params("no name", "tools/call", {"arguments": {}}),
    bad_params("empty name", "tools/call", {"name": ""}),
    bad_params("name a number", "tools/call", {"name": 7}),
    bad_params("arguments a list", "tools/call", {"name": "echo", "arguments": []}),
    bad_params("arguments null", "tools/call", {"name": "echo", "arguments": None}),
    bad_params("inputResponses a list", "tools/call", {**CALL, "inputResponses": []}),
    bad_params("inputResponses null", "tools/call", {**CALL, "inputResponses": None}),
    bad_params("an answer not an object", "tools/call", {**CALL, "inputResponses": {"q": "yes"}}),
    bad_params("requestState a number", "tools/call", {**CALL, "requestState": 1}),
    bad_params("requestState null", "tools/call", {**CALL, "requestState": None}),
    bad_params("no name", "prompts/get", {}),
    bad_params("argument not a string", "prompts/get", {"name": "p", "arguments": {"a": 1}}),
    bad_params("arguments a list", "prompts/get", {"name": "p", "arguments": ["a"]}),
    bad_params("an answer not an object", "prompts/get", {"name": "p", "inputResponses": {"q": None}}),
    bad_params("no uri", "resources/read", {}),
    bad_params("uri empty", "resources/read", {"uri": ""}),
    bad_params("uri relative", "resources/read", {"uri": "/etc/passwd"}),
    bad_params("uri without a scheme", "resources/read", {"uri": "://x"}),
    bad_params("uri a list", "resources/read", {"uri": ["file:///a"]}),
    bad_params("requestState an object", "resources/read", {"uri": "file:///a", "requestState": {}}),
    bad_params("no ref", "completion/complete", {"argument": {"name": "a", "value": ""}}),
    bad_params("unknown ref", "completion/complete", {"ref": {"type": "ref/tool", "name": "x"}}),
    bad_params("ref without a name", "completion/complete", {"ref": {"type": "ref/prompt"}}),
    bad_params("ref without a uri", "completion/complete", {"ref": {"type": "ref/resource", "name": "x"}}),
    bad_params("no argument", "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}),
    bad_params(
        "argument value a number",
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": 1}},
    ),
    bad_params(
        "context argument not a string",
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "p"},
            "argument": {"name": "a", "value": ""},
            "context": {"arguments": {"b": 1}},
        },
    ),
    bad_params(
        "context a list",
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}, "context": []},
    ),
    bad_params("no notifications", "subscriptions/listen", {}),
    bad_params("notifications a list", "subscriptions/listen", {"notifications": ["tools"]}),
    bad_params("a flag not a boolean", "subscriptions/listen", {"notifications": {"toolsListChanged": 1}}),
    bad_params("a flag null", "subscriptions/listen", {"notifications": {"promptsListChanged": None}}),
    bad_params("resources a string", "subscriptions/listen", {"notifications": {"resourceSubscriptions": "file:///a"}}),
    bad_params("a relative URI", "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a"]}}),
    bad_params(
        "too many resources",
        "subscriptions/listen",
        {"notifications": {"resourceSubscriptions": [f"test://{n}" for n in range(1001)]}},
    ),
)
