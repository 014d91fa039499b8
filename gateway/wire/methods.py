"""Method names, and what is true of each method."""

from typing import Final

DISCOVER: Final = "server/discover"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
PROMPTS_LIST: Final = "prompts/list"
PROMPTS_GET: Final = "prompts/get"
RESOURCES_LIST: Final = "resources/list"
RESOURCE_TEMPLATES_LIST: Final = "resources/templates/list"
RESOURCES_READ: Final = "resources/read"
COMPLETE: Final = "completion/complete"
LISTEN: Final = "subscriptions/listen"

INITIALIZE: Final = "initialize"
PING: Final = "ping"
SET_LEVEL: Final = "logging/setLevel"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"

INITIALIZED: Final = "notifications/initialized"
CANCELLED: Final = "notifications/cancelled"
PROGRESS: Final = "notifications/progress"
MESSAGE: Final = "notifications/message"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
RESOURCE_UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

MODERN_REQUESTS: Final = frozenset(
    {
        DISCOVER,
        TOOLS_LIST,
        TOOLS_CALL,
        PROMPTS_LIST,
        PROMPTS_GET,
        RESOURCES_LIST,
        RESOURCE_TEMPLATES_LIST,
        RESOURCES_READ,
        COMPLETE,
        LISTEN,
    }
)
"""Every request of revision 2026-07-28."""

LIST_KEYS: Final = {
    TOOLS_LIST: "tools",
    PROMPTS_LIST: "prompts",
    RESOURCES_LIST: "resources",
    RESOURCE_TEMPLATES_LIST: "resourceTemplates",
}
"""The paginated lists, each with the member of its result that holds the entries."""

CACHEABLE: Final = frozenset({DISCOVER, RESOURCES_READ, *LIST_KEYS})
"""The six results that carry `ttlMs` and `cacheScope` (2026-07-28, server/utilities/caching)."""

ASKING: Final = frozenset({TOOLS_CALL, PROMPTS_GET, RESOURCES_READ})
"""The requests that may be answered `input_required` (2026-07-28, basic/patterns/mrtr)."""

QUESTIONS: Final = frozenset({ELICIT, SAMPLE, LIST_ROOTS})
"""What a legacy server may ask of a client in mid-call."""

TARGET_PARAM: Final = {TOOLS_CALL: "name", PROMPTS_GET: "name", RESOURCES_READ: "uri"}
"""The parameter that the `Mcp-Name` header mirrors (2026-07-28, basic/transports/streamable-http)."""

CAPABILITY: Final = {
    TOOLS_LIST: "tools",
    TOOLS_CALL: "tools",
    PROMPTS_LIST: "prompts",
    PROMPTS_GET: "prompts",
    RESOURCES_LIST: "resources",
    RESOURCE_TEMPLATES_LIST: "resources",
    RESOURCES_READ: "resources",
    COMPLETE: "completions",
}
"""The server capability without which a method is not offered."""
