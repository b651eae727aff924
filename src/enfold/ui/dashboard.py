"""The dashboard: savings, costs and failures of compressions over time, and recommendations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from nicegui import ui

from enfold.engine.activity import Activity, read_activity
from enfold.engine.inspection import read_threshold
from enfold.engine.state import EffectiveThreshold
from enfold.errors import EnfoldError, NotFoundError
from enfold.llm.costs import Figures, Recommendation, recommend
from enfold.ui import figures
from enfold.ui.frame import frame
from enfold.ui.settings.profiles import candidates_of
from enfold.ui.widgets import table
from enfold.ui.window import Window, path_of

Kind: TypeAlias = Literal["bar", "line"]

FIRST, SECOND, BAD = "#5b6ce0", "#2a93a8", "#cf5a4e"
"""Readable on white and on near black."""
_GRID = "rgba(128, 136, 152, 0.25)"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
_LABELS = {"%": "{value} %", "$": "${value}"}
_MANY = 14
"""Days above which points have no symbols."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one kind, one for each place on the axis."""

    name: str
    values: Sequence[float | None]
    kind: Kind = "bar"
    colour: str = FIRST
    stack: str = ""
    second_axis: bool = False
    """True: on the right-hand axis, for another unit."""


def chart(title: str, places: Sequence[str], series: Sequence[Series], unit: str = "") -> None:
    """Show series over the same places, with a table of the same values below."""
    with ui.element("figure").classes("db-figure").props("role=group") as figure:
        figure.props["aria-label"] = title
        ui.label(title).classes("db-title")
        drawn = ui.echart(options(places, series, unit), renderer="svg").classes("db-chart")
        drawn.props["aria-label"] = f"Chart: {title}. The table below has the same values"
        drawn.props("role=img")
        with ui.expansion("Show as table").classes("db-table").props("dense"):
            rows = [
                (place, *(_figure(each.values[at]) for each in series))
                for at, place in enumerate(places)
                if any(each.values[at] for each in series)
            ]
            table(title, ("", *(each.name for each in series)), rows)


def options(places: Sequence[str], series: Sequence[Series], unit: str = "") -> dict[str, Any]:
    """Return the options of the chart library."""
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
    """Show a bar for each name, with its value."""
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


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if value % 1 else f"{value:,.0f}"


Tone: TypeAlias = Literal["good", "warm", "bad"]

NEAR = 0.8
"""Of its limit: a session that has reached it is near."""
_LOW_THRESHOLD = 0.5
_FAILURES = 3
_LITTLE = 0.2
"""A compression that takes less than this share away is not worth much."""
_ENOUGH = 3
"""Compressions from which on something can be said of them."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommendation with a link to the page where it can be followed."""

    title: str
    words: str
    path: str
    action: str
    tone: Tone = "warm"


@dataclass(frozen=True, slots=True)
class SessionAlert:
    """A session that is nearly full, paused, or cannot be counted."""

    id: str
    title: str
    utilization: float
    blocked: str | None = None
    fault: str | None = None
    """The reason why it cannot be counted."""


@dataclass(frozen=True, slots=True)
class AdviceFacts:
    """The data from which recommendations are made."""

    activity: Activity
    threshold: EffectiveThreshold
    sessions: Sequence[SessionAlert] = ()
    cheaper: Recommendation | None = None
    """A cheaper author of summaries, if there is one."""


def advise(facts: AdviceFacts) -> tuple[Advice, ...]:
    """Return the recommendations, most urgent first."""
    return (
        *_blocked(facts),
        *_faulty(facts),
        *_failures(facts),
        *_near(facts),
        *_threshold(facts),
        *_advice_cheaper(facts),
        *_unknown(facts),
    )


def _blocked(facts: AdviceFacts) -> Iterator[Advice]:
    for each in facts.sessions:
        if each.blocked is not None:
            yield Advice(
                f"“{each.title}” is paused",
                f"The summary failed: {each.blocked}",
                path_of(each.id),
                "Retry or continue",
                "bad",
            )


def _faulty(facts: AdviceFacts) -> Iterator[Advice]:
    for each in facts.sessions:
        if each.fault is not None:
            yield Advice(
                f"“{each.title}” cannot be counted",
                each.fault,
                "/settings/models",
                "Check its model",
                "bad",
            )


def _failures(facts: AdviceFacts) -> Iterator[Advice]:
    failed, done = facts.activity.failed, facts.activity.total.compressions
    if failed >= _FAILURES:
        reasons = sorted({each.code for each in facts.activity.failures})
        yield Advice(
            "Many compressions fail",
            f"{failed:,} failed and {done:,} succeeded. Reasons: {', '.join(reasons)}. Test the "
            "profile that writes summaries, or use the built-in summarizer.",
            "/settings/profiles",
            "Test profiles",
            "bad",
        )


def _near(facts: AdviceFacts) -> Iterator[Advice]:
    near = [each for each in facts.sessions if each.utilization >= NEAR and not each.blocked]
    for each in near:
        yield Advice(
            f"“{each.title}” is nearly full",
            f"It uses {each.utilization:.0%} of its limit.",
            path_of(each.id),
            "Summarize conversation",
        )


def _threshold(facts: AdviceFacts) -> Iterator[Advice]:
    found, total = facts.threshold, facts.activity.total
    if found.share is not None and found.share < _LOW_THRESHOLD:
        yield Advice(
            "The threshold is low",
            f"Compressions run at {found.share:.0%} of the limit, {found.tokens:,} tokens: "
            "more often than needed, and each one invalidates the provider's cache.",
            "/settings",
            "Check threshold",
        )
    if not found.is_automatic:
        yield Advice(
            "Automatic compression is off",
            "Conversations grow up to the hard limit; then a message waits for the compression.",
            "/settings",
            "Check settings",
        )
    sizes = [each for each in facts.activity.savings if each.tokens]
    if total.compressions >= _ENOUGH and len(sizes) < total.compressions * _LITTLE:
        yield Advice(
            "Compressions save little",
            "Most of them saved no tokens. Another strategy saves more.",
            "/settings/strategy",
            "Compare strategies",
        )


def _advice_cheaper(facts: AdviceFacts) -> Iterator[Advice]:
    cheaper = facts.cheaper
    if cheaper is not None and cheaper.saved is not None and cheaper.saved > 0:
        yield Advice(
            "Summaries could cost less",
            f"For the summaries of this period: {cheaper.reason}.",
            "/settings/profiles",
            "Compare costs",
        )


def _unknown(facts: AdviceFacts) -> Iterator[Advice]:
    if facts.activity.total.unknown:
        yield Advice(
            "A price is unknown",
            f"The savings of {facts.activity.total.unknown:,} compressions are unknown: their "
            "model has no price. You can set one in a profile.",
            "/settings/profiles",
            "Set price",
        )


SPANS = {7: "7 days", 30: "30 days", 90: "90 days"}
_USUAL = 30
_LOOKED_AT = 12
"""The most recent sessions, which are counted."""
_MONEY = (
    "An estimate: the tokens that each compression saved, at the model's input price, for every "
    "reply since. Caches are not considered."
)


async def dashboard(window: Window) -> None:
    """Build the page."""
    ui.add_css(files(__package__).joinpath("dashboard.css").read_text("utf-8"))
    span = _requested_days()
    days = _days(span)
    since = int(datetime.combine(days[0], datetime.min.time(), UTC).timestamp() * 1000)
    async with frame(window, "Dashboard", at="/dashboard"):
        # A new page for another period: removing a chart before it is drawn is an error.
        choice = ui.toggle(SPANS, value=span).props("no-caps unelevated")
        choice.props["aria-label"] = "Period"
        choice.on_value_change(lambda: ui.navigate.to(f"/dashboard?days={choice.value}"))
        activity = await read_activity(window.engine, window.namespace, since=since)
        facts = await _facts(window, activity)
        _show(activity, days, facts)


def _requested_days() -> int:
    """Return the number of days in the address."""
    given = ui.context.client.request.query_params.get("days", "")
    return next((days for days in SPANS if str(days) == given), _USUAL)


def _show(activity: Activity, days: Sequence[date], facts: AdviceFacts) -> None:
    _advice(advise(facts))
    if activity.is_empty:
        _no_activity()
        return
    _tiles(activity)
    _charts(activity, days)


def _no_activity() -> None:
    with ui.element("div").classes("ef-empty"):
        ui.icon("insights").classes("ef-empty-icon").props("aria-hidden=true")
        ui.label("No compressions and no model calls in this period.")
        ui.label("After a compression, its savings are shown here.")
        ui.link("Open conversations", "/")


def _tiles(activity: Activity) -> None:
    total = activity.total
    with ui.element("section").classes("db-tiles").props('aria-label="Totals"'):
        _tile("Tokens saved", lambda: figures.count(total.tokens))
        _tile("Money saved", lambda: _saved(activity))
        _tile("Spent on summaries", lambda: _spent(activity))
        _tile("Compressions", lambda: figures.count(total.compressions))
        _tile("Failures", lambda: figures.count(activity.failed))
        _tile("Read from cache", lambda: _cached(activity))


def _tile(title: str, value: Callable[[], ui.label]) -> None:
    with ui.element("div").classes("db-tile").props("role=group") as tile:
        tile.props["aria-label"] = title
        ui.label(title).classes("ef-soft ef-small")
        value().classes("db-value")


def _saved(activity: Activity) -> ui.label:
    total = activity.total
    if total.unknown and total.unknown == total.compressions:
        return figures.unknown("No price is known for these models.")
    why = _MONEY
    if total.unknown:
        why += f" {total.unknown:,} compressions are not included: their model's price is unknown."
    return figures.money(total.dollars, is_estimate=True, why=why)


def _spent(activity: Activity) -> ui.label:
    if activity.unknown_costs:
        why = f"{activity.unknown_costs:,} calls have an unknown cost and are not included."
        return figures.money(activity.spent, is_estimate=True, why=why)
    return figures.money(activity.spent)


def _cached(activity: Activity) -> ui.label:
    if activity.cached_share is None:
        return figures.unknown("No model calls in this period.")
    return figures.share(activity.cached_share)


def _charts(activity: Activity, days: Sequence[date]) -> None:
    places = [f"{day:%d %b}".removeprefix("0") for day in days]
    by_day, failed = activity.by_day(), activity.failures_by_day()
    cached = activity.cached_by_day()
    saved = [by_day.get(day) for day in days]
    so_far = [round(sum_, 6) for sum_ in accumulate(each.dollars if each else 0 for each in saved)]
    with ui.element("section").classes("db-charts").props("aria-label=Charts"):
        chart(
            "Tokens and money saved",
            places,
            (
                Series("tokens saved", [each.tokens if each else 0 for each in saved]),
                Series("≈ dollars saved, total", so_far, "line", SECOND, second_axis=True),
            ),
        )
        chart(
            "Compressions and failures",
            places,
            (
                Series("done", [each.compressions if each else 0 for each in saved], stack="all"),
                Series("failed", [failed.get(day, 0) for day in days], "bar", BAD, stack="all"),
            ),
        )
        if cached:
            shares = [round(cached[day] * 100, 1) if day in cached else None for day in days]
            chart("Read from the provider's cache", places, (Series("share", shares, "line"),), "%")
        if activity.savings:
            freed = {name: each.tokens for name, each in activity.by_strategy.items()}
            totals("Tokens saved by strategy", freed, "tokens")
            freed = {name: each.tokens for name, each in activity.by_model.items()}
            totals("Tokens saved by model", freed, "tokens")


def _advice(found: Sequence[Advice]) -> None:
    if not found:
        return
    with ui.element("section").classes("db-advice").props("aria-label=Recommendations"):
        for each in found:
            with ui.element("article").classes(f"db-card db-{each.tone}") as card:
                card.props["aria-label"] = each.title
                ui.label(each.title).classes("db-title").props("dir=auto")
                ui.label(each.words).classes("ef-small")
                ui.link(each.action, each.path).classes("ef-small")


async def _facts(window: Window, activity: Activity) -> AdviceFacts:
    engine = window.engine
    return AdviceFacts(
        activity,
        await read_threshold(engine),
        await _nearing(window),
        await _cheaper(window, activity),
    )


async def _nearing(window: Window) -> list[SessionAlert]:
    """Return the recent sessions that are nearly full, paused, or cannot be counted."""
    newest = await window.engine.sessions(namespace=window.namespace, limit=_LOOKED_AT)
    found: list[SessionAlert] = []
    for each in newest:
        title = each.title or each.id
        try:
            status = await (await window.session(each.id)).status()
        except NotFoundError:
            continue  # it was deleted meanwhile
        except EnfoldError as error:
            found.append(SessionAlert(each.id, title, 0.0, fault=str(error)))
            continue
        if status.blocked is not None or status.utilization >= NEAR:
            found.append(SessionAlert(each.id, title, status.utilization, status.blocked))
    return found


async def _cheaper(window: Window, activity: Activity) -> Recommendation | None:
    """Return a cheaper author for the summaries of this period."""
    used = [each for each in activity.usage if each.kind == "summary"]
    run = Figures(
        sum(each.input_tokens for each in used),
        sum(each.output_tokens for each in used),
        max(1, sum(each.calls for each in used)),
    )
    candidates, models = candidates_of(await window.engine.profiles.all())
    called = {each.model for each in used}
    current = next((name for name, model in models.items() if model in called), None)
    if not used or current is None:
        return None
    return recommend(run, candidates, current)


def _days(count: int) -> list[date]:
    """Return the days up to today, in UTC."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=ago) for ago in reversed(range(count))]
