"""The diagram in the documentation is the table in the code."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]


def _script() -> ModuleType:
    loader = SourceFileLoader("diagram", str(ROOT / "scripts" / "diagram"))
    spec = importlib.util.spec_from_loader("diagram", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_documented_diagram_is_up_to_date() -> None:
    page = (ROOT / "docs" / "rounds.md").read_text()
    assert page == _script().with_diagram(page), "run: .venv/bin/python scripts/diagram --write"
