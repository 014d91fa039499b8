"""Puts results into docs/performance.md or docs/sizing.md: each part between two comments that name it."""

from typing import Final

from tests.bench.processes import ROOT

_DOCS: Final = ROOT / "docs"
_PAGES: Final = (_DOCS / "performance.md", _DOCS / "sizing.md")


def put(part: str, text: str) -> None:
    """Replaces what stands between the comments of a part.

    Raises:
        ValueError: no page has the part.
    """
    begin, end = f"<!-- bench:{part} -->\n", f"<!-- /bench:{part} -->"
    for page in _PAGES:
        before, found, rest = page.read_text().partition(begin)
        _, closed, after = rest.partition(end)
        if found and closed:
            page.write_text(f"{before}{begin}{text.strip()}\n{end}{after}")
            return
    raise ValueError(f"no page has the part {part}")


def put_figure(name: str, svg: str) -> None:
    """Writes a drawing beside the page."""
    (_DOCS / name).write_text(svg)
