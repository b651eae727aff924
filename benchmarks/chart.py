"""Charts: lines over two logarithmic axes, as an SVG for light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

Line = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 78, 330, 56, 52
"""Margins; the names of the lines are on the right."""
COLOURS = (
    "#2563eb",
    "#d97706",
    "#059669",
    "#db2777",
    "#7c3aed",
    "#0891b2",
    "#65a30d",
    "#b91c1c",
    "#6b7280",
)
INK, PALE = "#111827", "#4b5563"
APART = 17
"""Smallest distance between two names, in pixels."""


def draw(title: str, lines: Mapping[str, Line], across: str, up: str) -> str:
    """Return the chart; the first line is the boldest."""
    points = [point for line in lines.values() for point in line]
    x = _Axis([x for x, _ in points], LEFT, WIDTH - RIGHT)
    y = _Axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    drawn = [
        _tag("rect", width=WIDTH, height=HEIGHT, rx=8, fill="#ffffff"),
        _text(title, LEFT, 28, INK, font_size=16, font_weight=600),
        *_grid(x, y, across, up),
    ]
    names = sorted(lines, key=lambda name: y.place(lines[name][-1][1]))
    heights = _spread([y.place(lines[name][-1][1]) for name in names])
    for name, height in zip(names, heights, strict=True):
        number = list(lines).index(name)
        drawn += _line(name, lines[name], number, (x, y), height)
    return _tag(
        "svg",
        "\n" + "\n".join(drawn) + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        font_family="system-ui, sans-serif",
        font_size=13,
        role="img",
        aria_label=title,
    )


def _tag(tag: str, inside: str = "", **attributes: object) -> str:
    """Return an element; numbers have one decimal, underscores in names become hyphens."""
    written = "".join(
        f' {name.replace("_", "-")}="{escape(_value(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def _value(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _text(text: str, x: float, y: float, fill: str, **attributes: object) -> str:
    return _tag("text", escape(text), x=x, y=y, fill=fill, **attributes)


class _Axis:
    """An axis with powers of ten."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low = floor(log10(min(values)))
        self.high = max(ceil(log10(max(values))), self.low + 1)
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        """Return the position of a value in pixels."""
        share = (log10(value) - self.low) / (self.high - self.low)
        return self._begin + share * (self._end - self._begin)

    def marks(self) -> list[float]:
        """Return the powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def _grid(x: _Axis, y: _Axis, across: str, up: str) -> list[str]:
    right, bottom, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT / 2
    levels = [(y.place(mark), f"{mark:,g}") for mark in y.marks()]
    return [
        *(_tag("line", x1=LEFT, x2=right, y1=at, y2=at, stroke="#e5e7eb") for at, _ in levels),
        *(_text(mark, LEFT - 8, at + 4, PALE, text_anchor="end") for at, mark in levels),
        *(
            _text(f"{mark:,.0f}", x.place(mark), bottom + 20, PALE, text_anchor="middle")
            for mark in x.marks()
        ),
        _text(across, (LEFT + right) / 2, HEIGHT - 12, INK, text_anchor="middle"),
        _text(up, 18, middle, INK, text_anchor="middle", transform=f"rotate(-90 18 {middle})"),
    ]


def _line(
    name: str, line: Line, number: int, axes: tuple[_Axis, _Axis], height: float
) -> list[str]:
    """Return a line with its points, and a connection to its name on the right."""
    colour = COLOURS[number % len(COLOURS)]
    width, weight = (3.5, 700) if number == 0 else (1.8, 400)
    places = [(axes[0].place(a), axes[1].place(b)) for a, b in line]
    end, level = places[-1]
    edge = WIDTH - RIGHT + 22
    thread = f"{end + 5:.1f},{level:.1f} {edge - 4},{height:.1f}"
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    stroke = {"fill": "none", "stroke": colour}
    return [
        _tag("polyline", points=path, stroke_width=width, **stroke),
        *(_tag("circle", cx=a, cy=b, r=width, fill=colour) for a, b in places),
        _tag("polyline", points=thread, stroke_width=0.8, stroke_dasharray="2 3", **stroke),
        _text(name, edge, height + 4, colour, font_weight=weight),
    ]


def _spread(heights: Sequence[float]) -> list[float]:
    """Return the heights, moved down where two would overlap."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + APART) if placed else height)
    over = placed[-1] - (HEIGHT - BOTTOM) if placed else 0.0
    return [height - max(0.0, over) for height in placed]
