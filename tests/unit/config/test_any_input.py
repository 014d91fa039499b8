"""Invariant: whatever stands in a file or a variable, the answer is settings or problems, never another exception."""

import contextlib
import copy
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.document import KeyPath, parse_document
from gateway.config.environment import VARIABLES, from_environment
from gateway.config.load import from_mapping, settle
from gateway.config.problems import ConfigError
from gateway.config.review import summary, warnings
from gateway.wire.jsonrpc import Json

EXAMPLE, _ = parse_document("f", (Path(__file__).parents[3] / "config" / "gateway.yaml").read_text(encoding="utf-8"))
WORDS = [
    *("60s", "4MiB", "false", "off", "none", "api_key", "jwt", "sse", "stdio", "redis://x", "::", "*", "${X}", "${"),
    *("https://a.test/mcp", "http://[", "//@:", "A" * 43),
]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=20)
names = st.sampled_from(sorted({str(path[-1]) for path in EXAMPLE.lines} | {"command", "name", "sha256", "scopes"}))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=5), inner, max_size=4)
)


@given(st.lists(st.tuples(st.sampled_from(sorted(EXAMPLE.lines)), values), min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_any_value_of_any_key_makes_settings_or_problems(changes: list[tuple[KeyPath, Json]]) -> None:
    tree = copy.deepcopy(EXAMPLE.tree)
    for (*parents, key), value in changes:
        holder: Json = tree
        for parent in parents:
            holder = holder.get(parent) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder[key] = value
    with contextlib.suppress(ConfigError):
        understood = from_mapping(tree, {"X": "y"})
        warnings(understood)
        summary(understood)


@given(st.text(alphabet=st.sampled_from("ab:-?[]{}#&*!|>'\"%@,~ \n\t<=${}é\x00")))
@settings(max_examples=100, deadline=None)
def test_any_text_makes_settings_or_problems(text: str) -> None:
    with contextlib.suppress(ConfigError):
        document, problems = parse_document("f", text)
        settle(document, {}, problems)


@given(st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.text(max_size=30)))
@settings(max_examples=60, deadline=None)
def test_any_environment_makes_settings_or_problems(environ: dict[str, str]) -> None:
    with contextlib.suppress(ConfigError):
        from_environment({"ERA_GATEWAY_UPSTREAM_URL": "https://docs.example.com/mcp"} | environ)
