"""Plots: what was measured as a picture, in SVG, with nothing but text and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from enfold.evaluation.summing import ALL, Summary

_WIDTH, _LEFT, _BAR, _GAP = 760, 190, 16, 26
_SCALE = 420
"""Pixels of a whole."""
_COLOURS = ("#8a94a6", "#2f6fde", "#1f9d6b", "#c9762b", "#8a4fc7", "#c2413f")
_MEASURES: Mapping[str, str] = {
    "in_view": "evidence in the view",
    "reachable": "in it or by one search",
    "items_kept": "exact items in the view",
}


def draw(summaries: Iterable[Summary]) -> str:
    """Bars for the shares of each way, and lines for what is left after each compression."""
    found = [each for each in summaries if each.half == ALL]
    pieces = [*_bars(found)]
    top = len(pieces) and _height(found)
    chained = [each for each in found if each.decay_reachable]
    lines = list(_decay(chained, top)) if chained else []
    height = top + (_CHART + 60 if chained else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join((*pieces, *lines))}</svg>\n'
    )


_CHART = 180


def _height(found: Sequence[Summary]) -> int:
    return 40 + sum(_GAP + _BAR * len(found) for _ in _MEASURES) + 20 * len(found) + 20


def _bars(found: Sequence[Summary]) -> Iterator[str]:
    top = 30
    for name, title in _MEASURES.items():
        yield _text(_LEFT - 10, top + 12, title, anchor="end")
        for place, each in enumerate(found):
            share = getattr(each, name)
            yield _bar(top + place * _BAR, share, _COLOURS[place % len(_COLOURS)])
        top += _BAR * len(found) + _GAP
    for place, each in enumerate(found):
        colour = _COLOURS[place % len(_COLOURS)]
        label = f"{each.way.strategy}, {each.ratio:.1f} : 1"
        yield f'<rect x="{_LEFT}" y="{top - 10}" width="10" height="10" fill="{colour}"/>'
        yield _text(_LEFT + 16, top, label)
        top += 20


def _bar(top: int, share: float | None, colour: str) -> str:
    if share is None:
        return _text(_LEFT, top + 12, "not measured")
    width = share * _SCALE
    shape = f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 3}" fill="{colour}"/>'
    return shape + _text(_LEFT + width + 6, top + 11, f"{share:.0%}")


def _decay(chained: Sequence[Summary], top: int) -> Iterator[str]:
    """Left to right the compressions, bottom to top the share that is left."""
    yield _text(_LEFT, top + 16, "items of the first fold: in the view (dashed), reachable (line)")
    base = top + 30
    for share in (0.0, 0.5, 1.0):
        y = base + _CHART * (1 - share)
        yield f'<path d="M{_LEFT} {y:.0f}h{_SCALE}" stroke="#ddd"/>'
        yield _text(_LEFT - 10, y + 4, f"{share:.0%}", anchor="end")
    for place, each in enumerate(chained):
        colour = _COLOURS[(place + 1) % len(_COLOURS)]
        yield _path(each.decay_reachable, base, colour, "")
        yield _path(each.decay_in_view, base, colour, ' stroke-dasharray="4 3"')


def _path(shares: Sequence[float], base: int, colour: str, style: str) -> str:
    step = _SCALE / max(1, len(shares) - 1)
    points = " ".join(
        f"{_LEFT + at * step:.1f},{base + _CHART * (1 - share):.1f}"
        for at, share in enumerate(shares)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{style}/>'


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{escape(words)}</text>'
    )
