"""The example file, the reference and the model name the same keys with the same defaults."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from gateway.config.document import parse_document
from gateway.config.load import load, settle
from gateway.config.model import ApiKey, Settings, Upstream
from gateway.config.problems import ConfigError

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "config" / "gateway.yaml"
REFERENCE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)


class Environment(dict[str, str]):
    """An environment in which every variable that the reference mentions is set."""

    def __missing__(self, name: str) -> str:
        return "0" * 64 if name.endswith("SHA256") else "A" * 43 + "="

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return self[name]


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name
        if isinstance(field.default, BaseModel):
            yield from keys_of(type(field.default))


ALL_KEYS = sorted({*keys_of(Settings), *keys_of(Upstream), *keys_of(ApiKey)})


def test_example_is_clean_without_any_environment() -> None:
    assert list(load(EXAMPLE, {}).upstreams) == ["docs"]


def test_example_shows_the_defaults() -> None:
    settings = load(EXAMPLE, {})
    url = settings.upstreams["docs"].url
    assert settings == Settings.model_validate({"upstreams": {"docs": {"url": url}}})


def test_example_shows_every_key_of_every_section() -> None:
    document, problems = parse_document("example", EXAMPLE.read_text(encoding="utf-8"))
    shown = {str(path[-1]) for path in document.lines}
    assert problems == []
    assert shown >= {*keys_of(Settings), *keys_of(Upstream)} - {"type"}
    assert document.tree["upstreams"]["docs"].keys() == {f.alias or n for n, f in Upstream.model_fields.items()} - {
        "type"
    }


@pytest.mark.parametrize("key", ALL_KEYS)
def test_reference_explains_every_key(key: str) -> None:
    assert re.search(rf"`(?:[a-z]+(?:\[\])?\.)?{key}[`.]|## .*{key}", REFERENCE)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_of_the_reference_is_a_configuration(block: str) -> None:
    document, problems = parse_document("block", block)
    document.tree.setdefault("upstreams", {"docs": {"url": "https://docs.example.com/mcp"}})
    try:
        settle(document, Environment(), problems)
    except ConfigError as error:
        pytest.fail(str(error))
