"""Drawings of results, as SVG that is written by hand: bars with their numbers, no library needed."""

import math
from collections.abc import Mapping
from html import escape
from typing import Final

_WIDTH: Final = 760
_LABEL: Final = 190
_NUMBER: Final = 80
_ROW: Final = 22
_TOP: Final = 40
_COLOURS: Final = ("#2b6cb0", "#a0aec0")


def bars(title: str, values: Mapping[str, float], *, logarithmic: bool = False, mark: float | None = None) -> str:
    """One bar for each value; the first is drawn in the gateway's colour, the others in grey.

    Args:
        title: what the numbers are.
        values: by name.
        logarithmic: whether a bar's length is the logarithm of its value, from 1 on.
        mark: where to draw a line across all bars.
    """
    colours = [_COLOURS[0], *[_COLOURS[1]] * (len(values) - 1)]
    return _drawing(
        title,
        [(name, value, colour) for (name, value), colour in zip(values.items(), colours, strict=True)],
        logarithmic=logarithmic,
        mark=mark,
    )


def ratios(title: str, values: Mapping[str, float]) -> str:
    """One bar for each ratio, all in the gateway's colour, with a line at 1."""
    return _drawing(title, [(name, value, _COLOURS[0]) for name, value in values.items()], logarithmic=False, mark=1.0)


def _drawing(title: str, rows: list[tuple[str, float, str]], *, logarithmic: bool, mark: float | None) -> str:
    most = max([value for _, value, _ in rows] + ([mark] if mark else []), default=1.0)

    def length(value: float) -> float:
        share = math.log10(max(value, 1.0)) / math.log10(max(most, 10.0)) if logarithmic else value / most
        return share * (_WIDTH - _LABEL - _NUMBER)

    height = _TOP + _ROW * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="22" font-size="14" fill="#1a202c">{escape(title)}</text>',
    ]
    for number, (name, value, colour) in enumerate(rows):
        y = _TOP + number * _ROW
        end = _LABEL + length(value)
        parts.append(f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end" fill="#1a202c">{escape(name)}</text>')
        parts.append(f'<rect x="{_LABEL}" y="{y}" width="{length(value):.1f}" height="16" fill="{colour}"/>')
        parts.append(f'<text x="{end + 6:.1f}" y="{y + 13}" fill="#1a202c">{_written(value)}</text>')
    if mark is not None:
        x = _LABEL + length(mark)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - 6}" stroke="#c53030"/>')
    return "\n".join([*parts, "</svg>", ""])


def _written(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
