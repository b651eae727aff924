"""Charts: figures over days and side by side, readable in light and dark and without eyes.

Drawn as SVG, so that the style sheet colours their text. Each has a name that says what it shows,
and a table of the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from nicegui import ui

Kind: TypeAlias = Literal["bar", "line"]

FIRST, SECOND, BAD = "#5b6ce0", "#2a93a8", "#cf5a4e"
"""Seen well on white and on near black."""
_GRID = "rgba(128, 136, 152, 0.25)"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
_LABELS = {"%": "{value} %", "$": "${value}"}
_MANY = 14
"""Days from which on not each has room for its name."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures of one kind, one for each place on the axis."""

    name: str
    values: Sequence[float | None]
    kind: Kind = "bar"
    colour: str = FIRST
    stack: str = ""
    second_axis: bool = False
    """On the right-hand axis, for what has another unit."""


def chart(title: str, places: Sequence[str], series: Sequence[Series], unit: str = "") -> None:
    """Series over the same places, with a table of the same figures below."""
    with ui.element("figure").classes("db-figure").props("role=group") as figure:
        figure.props["aria-label"] = title
        ui.label(title).classes("db-title")
        drawn = ui.echart(options(places, series, unit), renderer="svg").classes("db-chart")
        drawn.props["aria-label"] = f"{title}, drawn; the same figures are in the table below"
        drawn.props("role=img")
        with ui.expansion("As a table").classes("db-table").props("dense"):
            _table(places, series)


def options(places: Sequence[str], series: Sequence[Series], unit: str = "") -> dict[str, Any]:
    """What the chart library is told."""
    has_second = any(each.second_axis for each in series)
    axes = [_axis(unit)] + ([{**_axis("$"), "splitLine": {"show": False}}] if has_second else [])
    has_legend = len(series) > 1
    return {
        "color": [each.colour for each in series],
        "textStyle": {"fontFamily": _FONT, "fontSize": 12},
        "animation": False,
        "grid": {
            "left": 8,
            "right": 8,
            "top": 36 if has_legend else 12,
            "bottom": 8,
            "containLabel": True,
        },
        "legend": {"show": has_legend, "top": 0, "left": 0, "itemWidth": 14, "icon": "circle"},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {
            "type": "category",
            "data": list(places),
            "axisLine": {"lineStyle": {"color": _GRID}},
            "axisTick": {"show": False},
            "axisLabel": {"hideOverlap": True},
        },
        "yAxis": axes,
        "series": [_series(each, len(places)) for each in series],
    }


def totals(title: str, by_name: Mapping[str, float], unit: str) -> None:
    """Names side by side, longest bar first, with the figures beside them."""
    with ui.element("figure").classes("db-figure").props("role=group") as figure:
        figure.props["aria-label"] = title
        ui.label(title).classes("db-title")
        most = max(by_name.values(), default=0.0)
        for name, value in by_name.items():
            with ui.element("div").classes("db-bar"):
                ui.label(name).classes("ef-small ef-wrap").props("dir=auto")
                ui.label(f"{value:,.0f} {unit}").classes("ef-small ef-figure")
                share = value / most if most else 0.0
                bar = ui.element("div").classes("db-length").props("aria-hidden=true")
                bar.style(f"width: {max(share, 0.005):.1%}; background: {FIRST}")


def _axis(unit: str) -> dict[str, Any]:
    return {
        "type": "value",
        "axisLabel": {"formatter": _LABELS.get(unit, "{value}")},
        "minInterval": 1 if unit != "$" else 0,
        "splitLine": {"lineStyle": {"color": _GRID}},
    }


def _series(series: Series, places: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": series.name,
        "type": series.kind,
        "data": list(series.values),
        "yAxisIndex": int(series.second_axis),
    }
    if series.stack:
        found["stack"] = series.stack
    if series.kind == "line":
        found |= {"connectNulls": True, "symbolSize": 6, "showSymbol": places <= _MANY}
    else:
        found["barMaxWidth"] = 28
    return found


def _table(places: Sequence[str], series: Sequence[Series]) -> None:
    rows = [(place, [each.values[at] for each in series]) for at, place in enumerate(places)]
    with ui.element("div").classes("db-scroll"), ui.element("table").classes("db-figures"):
        with ui.element("tr"):
            for title in ("", *(each.name for each in series)):
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        for place, values in rows:
            if not any(values):
                continue
            with ui.element("tr"):
                with ui.element("th").props("scope=row"):
                    ui.label(place)
                for value in values:
                    with ui.element("td"):
                        ui.label(_figure(value))


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if value % 1 else f"{value:,.0f}"
