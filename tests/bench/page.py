"""Puts results into docs/performance.md: each part between two comments that name it."""

from typing import Final

from tests.bench.processes import ROOT

_DOCS: Final = ROOT / "docs"
_PAGE: Final = _DOCS / "performance.md"


def put(part: str, text: str) -> None:
    """Replaces what stands between the comments of a part.

    Raises:
        ValueError: the page does not have the part.
    """
    begin, end = f"<!-- bench:{part} -->\n", f"<!-- /bench:{part} -->"
    before, found, rest = _PAGE.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{_PAGE} has no part {part}")
    _PAGE.write_text(f"{before}{begin}{text.strip()}\n{end}{after}")


def put_figure(name: str, svg: str) -> None:
    """Writes a drawing beside the page."""
    (_DOCS / name).write_text(svg)
