"""The dashboard: savings, costs and failures of compressions over time, and recommendations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from nicegui import ui

from enfold.amounts import number
from enfold.engine.activity import (
    Activity,
    KeptText,
    Saving,
    Verdict,
    measure_summaries,
    measured_effect,
    read_activity,
)
from enfold.engine.inspection import read_threshold
from enfold.engine.state import EffectiveThreshold
from enfold.errors import EnfoldError, NotFoundError
from enfold.llm.costs import Figures, Recommendation, recommend
from enfold.ui import figures
from enfold.ui.frame import frame
from enfold.ui.settings.profiles import candidates_of
from enfold.ui.widgets import empty_state, labelled, table
from enfold.ui.window import Window, path_of

Kind: TypeAlias = Literal["bar", "line"]

FIRST, SECOND, BAD = "#5b6ce0", "#2a93a8", "#cf5a4e"
"""Readable on white and on near black."""
_GRID = "rgba(128, 136, 152, 0.25)"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
_LABELS = {"%": "{value} %", "$": "${value}"}
_MANY = 14
"""Points above which a line has no symbols."""


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


@contextmanager
def _figure_frame(title: str) -> Iterator[None]:
    with labelled(ui.element("figure").classes("db-figure").props("role=group"), title):
        ui.label(title).classes("db-title")
        yield


def chart(title: str, places: Sequence[str], series: Sequence[Series], unit: str = "") -> None:
    """Show series over the same places, with a table of the same values below."""
    with _figure_frame(title):
        drawn = ui.echart(options(places, series, unit), renderer="svg").classes("db-chart")
        labelled(drawn.props("role=img"), f"Chart: {title}. The table below has the same values")
        with ui.expansion("Show as table").classes("db-table").props("dense"):
            rows = [
                (place, *(_number(each.values[at]) for each in series))
                for at, place in enumerate(places)
                if any(each.values[at] for each in series)
            ]
            table(title, ("", *(each.name for each in series)), rows)


def options(places: Sequence[str], series: Sequence[Series], unit: str = "") -> dict[str, Any]:
    """Return the options of the chart library."""
    has_second = any(each.second_axis for each in series)
    axes = [_axis(unit)] + ([{**_axis("$"), "splitLine": {"show": False}}] if has_second else [])
    has_legend = len(series) > 1
    # On the right is room for half of the last date.
    margins = {"left": 8, "right": 20, "top": 36 if has_legend else 12, "bottom": 8}
    return {
        "color": [each.colour for each in series],
        "textStyle": {"fontFamily": _FONT, "fontSize": 12},
        "animation": False,
        "grid": {**margins, "containLabel": True},
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
        "series": [_series(each) for each in series],
    }


def totals(title: str, by_name: Mapping[str, float], unit: str) -> None:
    """Show a bar for each name, with its value."""
    with _figure_frame(title):
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


def _series(series: Series) -> dict[str, Any]:
    points = sum(value is not None for value in series.values)
    symbols = {"symbolSize": 6, "showSymbol": points <= _MANY, "showAllSymbol": True}
    return {
        "name": series.name,
        "type": series.kind,
        "data": list(series.values),
        "yAxisIndex": int(series.second_axis),
        **({"stack": series.stack} if series.stack else {}),
        **({"connectNulls": True, **symbols} if series.kind == "line" else {"barMaxWidth": 28}),
    }


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.4g}" if value % 1 else f"{value:,.0f}"


Tone: TypeAlias = Literal["good", "warm", "bad"]

NEAR = 0.8
"""The share of its limit from which on a session is nearly full."""
_LOW_THRESHOLD = 0.5
_FAILURES = 3
_LITTLE = 0.2
"""If a smaller share of the compressions saved tokens, compressions save little."""
_ENOUGH = 3
"""Compressions that a judgement needs."""


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
    found = (*_advise_sessions(facts), *_advise_settings(facts), *_advise_costs(facts))
    return tuple(sorted(found, key=lambda each: each.tone != "bad"))


def _advise_sessions(facts: AdviceFacts) -> Iterator[Advice]:
    for each in facts.sessions:
        name, path = f"“{each.title}”", path_of(each.id)
        if each.fault is not None:
            title, models = f"{name} cannot be counted", "/settings/models"
            yield Advice(title, each.fault, models, "Check its model", "bad")
        elif each.blocked is not None:
            words = f"The summary failed: {each.blocked}"
            yield Advice(f"{name} is paused", words, path, "Retry or continue", "bad")
        elif each.utilization > 1:
            words = "The next request is compressed first. You can also do it now."
            yield Advice(f"{name} is over its limit", words, path, "Summarize conversation")
        elif each.utilization >= NEAR:
            words = f"It uses {figures.share_text(each.utilization)} of its limit."
            yield Advice(f"{name} is nearly full", words, path, "Summarize conversation")


def _advise_settings(facts: AdviceFacts) -> Iterator[Advice]:
    found, activity = facts.threshold, facts.activity
    done = activity.total.compressions
    if activity.failed >= _FAILURES:
        reasons = sorted({each.code for each in activity.failures})
        yield Advice(
            "Many compressions fail",
            f"{activity.failed:,} failed and {done:,} succeeded. Reasons: {', '.join(reasons)}. "
            "Test the profile that writes summaries, or use the built-in summarizer.",
            "/settings/profiles",
            "Test profiles",
            "bad",
        )
    if found.share is not None and found.share < _LOW_THRESHOLD:
        yield Advice(
            "The threshold is low",
            f"Compressions run at {figures.share_text(found.share)} of the limit, "
            f"{found.tokens:,} tokens: "
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
    useful = sum(1 for each in activity.savings if each.tokens)
    if done >= _ENOUGH and useful < done * _LITTLE:
        yield Advice(
            "Compressions save little",
            "Most of them saved no tokens. Another strategy saves more.",
            "/settings/strategy",
            "Compare strategies",
        )


def _advise_costs(facts: AdviceFacts) -> Iterator[Advice]:
    cheaper, unknown = facts.cheaper, facts.activity.total.unknown
    if cheaper is not None and cheaper.saved is not None and cheaper.saved > 0:
        words = f"For the summaries of this period: {cheaper.reason}."
        yield Advice("Summaries could cost less", words, "/settings/profiles", "Compare costs")
    if unknown:
        words = (
            f"The savings of {unknown:,} compressions are unknown: their model has no price. You "
            "can set one in a profile."
        )
        yield Advice("A price is unknown", words, "/settings/profiles", "Set price")


SPANS = {7: "7 days", 30: "30 days", 90: "90 days"}
_USUAL = 30
_LOOKED_AT = 12
"""The most recent sessions, which are counted."""
_MONEY = (
    "An estimate: the tokens that each compression took out, at the model's input price, for every "
    "reply since. Tokens that would have come from the provider's cache count at its price, and "
    "the cache that a compression discards is subtracted."
)
_NO_CLIENT = "no client: web UI, API or library"
_LISTED = 5
"""Compressions in each of the two lists."""
_VERDICTS: Mapping[Verdict, str] = {
    "helped": "helped",
    "unused": "not used yet",
    "no gain": "freed no tokens",
    "loss": "cost more than it saved",
}


async def dashboard(window: Window) -> None:
    """Build the page."""
    ui.add_css(files(__package__).joinpath("dashboard.css").read_text("utf-8"))
    given = ui.context.client.request.query_params.get("days", "")
    span = next((days for days in SPANS if str(days) == given), _USUAL)
    today = datetime.now(UTC).date()
    days = [today - timedelta(days=ago) for ago in reversed(range(span))]
    since = int(datetime.combine(days[0], datetime.min.time(), UTC).timestamp() * 1000)
    async with frame(window, "Dashboard", at="/dashboard"):
        # A new page for another period: removing a chart before it is drawn is an error.
        choice = labelled(ui.toggle(SPANS, value=span).props("no-caps unelevated"), "Period")
        choice.on_value_change(lambda: ui.navigate.to(f"/dashboard?days={choice.value}"))
        activity = await read_activity(window.engine, window.namespace, since=since)
        alerts, cheaper = await _find_alerts(window), await _find_cheaper(window, activity)
        threshold = await read_threshold(window.engine)
        _show_advice(advise(AdviceFacts(activity, threshold, alerts, cheaper)))
        _show(activity, days)


def _show(activity: Activity, days: Sequence[date]) -> None:
    if activity.is_empty:
        section = empty_state(
            "insights",
            "No compressions and no model calls in this period.",
            "Summarize a conversation, or run a coding agent with “enfold wrap”: this page then "
            "shows savings and costs.",
        )
        with section:
            ui.link("Open conversations", "/")
        return
    with labelled(ui.element("section").classes("db-tiles"), "Totals"):
        _show_totals(activity)
    with labelled(ui.element("section").classes("db-charts"), "Charts"):
        _charts(activity, days)
    by_kind = {"strategy": activity.by_strategy, "model": activity.by_model}
    with labelled(ui.element("section").classes("db-thirds"), "Tokens saved by kind"):
        for kind, found in {**by_kind, "client": activity.by_client}.items():
            if activity.savings:
                freed = {name or _NO_CLIENT: each.tokens for name, each in found.items()}
                totals(f"Tokens saved by {kind}", freed, "tokens")
    with labelled(ui.element("section").classes("db-lists"), "Lists"):
        _show_lists(activity)


@contextmanager
def _tile(title: str) -> Iterator[None]:
    with labelled(ui.element("div").classes("db-tile").props("role=group"), title):
        ui.label(title).classes("ef-soft ef-small")
        with ui.element("div").classes("db-value"):
            yield


def _show_totals(activity: Activity) -> None:
    total = activity.total
    with _tile("Saved after costs"):
        net = activity.net_dollars
        if net is None:
            figures.unknown("The price of a model is unknown.")
        else:
            figures.money(net, is_estimate=True, why="Money saved less the cost of summaries.")
    with _tile("Money saved"):
        why = _MONEY
        if total.unknown:
            why += f" {total.unknown:,} compressions are not included: their price is unknown."
        if total.unknown and total.unknown == total.compressions:
            figures.unknown("No price is known for these models.")
        else:
            figures.money(total.dollars, is_estimate=True, why=why)
    with _tile("Spent on summaries"):
        unknown = activity.unknown_costs
        why = f"{unknown:,} calls have an unknown cost and are not included."
        figures.money(activity.spent, is_estimate=bool(unknown), why=why if unknown else "")
    counts = {
        "Tokens saved": total.tokens,
        "Compressions": total.compressions,
        "Compressions that helped": activity.helped,
        "Failures": activity.failed,
    }
    for title, count in counts.items():
        with _tile(title):
            figures.count(count)
    with _tile("Read from cache"):
        if activity.cached_share is None:
            figures.unknown("No model calls in this period.")
        else:
            figures.share(activity.cached_share)
    for title, count in {"Recalls": activity.recalls, "Messages pinned": activity.pinned}.items():
        with _tile(title):
            figures.count(count)


def _charts(activity: Activity, days: Sequence[date]) -> None:
    places = [f"{day:%d %b}".removeprefix("0") for day in days]
    by_day, failed = activity.by_day(), activity.failures_by_day()
    cached = activity.cached_by_day()
    saved = [by_day.get(day) for day in days]
    so_far = [round(sum_, 6) for sum_ in accumulate(each.dollars if each else 0 for each in saved)]
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


def _show_lists(activity: Activity) -> None:
    """Show the latest compressions by their verdict, recalls and pins."""
    for title, verdicts, empty in (
        ("Compressions that helped", ("helped",), "None in this period."),
        (
            "Compressions that have not helped",
            ("loss", "no gain", "unused"),
            "None in this period: every compression saved more than it cost.",
        ),
    ):
        found = activity.with_verdict(*verdicts)[:_LISTED]
        with _figure_frame(title):
            for each in found:
                _show_compression(each)
            if not found:
                words = empty if activity.savings else "No compressions in this period."
                ui.label(words).classes("ef-small ef-soft")
    _show_texts(
        "Recalled",
        activity.latest_recalls,
        "None in this period. Agents recall summarized messages; so does “enfold recall”.",
    )
    _show_texts(
        "Pinned",
        activity.latest_pins,
        "None in this period. Pin a message to keep it in the context through all compressions.",
    )


def _show_compression(saving: Saving) -> None:
    with ui.element("div").classes("db-entry"):
        changes = path_of(saving.session, f"changes/{saving.snapshot}")
        ui.link(saving.title or saving.session, changes).classes("ef-small ef-wrap")
        with ui.element("div").classes("ef-row ef-dotted ef-tiny ef-soft"):
            ui.label(_VERDICTS[saving.verdict])
            ui.label(f"{saving.tokens:,} tokens less").classes("ef-figure")
            if saving.replies:
                ui.label(f"{number(saving.replies, 'request')} since")
            if saving.net is not None and saving.replies:
                figures.money(saving.net, is_estimate=True, why="After the cost of the summary.")
            figures.age(saving.created_at)


def _show_texts(title: str, found: Sequence[KeptText], empty: str) -> None:
    with _figure_frame(title):
        for each in found:
            with ui.element("div").classes("db-entry"):
                place = "" if each.position is None else f"?m={each.position}#m{each.position}"
                target = f"{path_of(each.session, 'history')}{place}"
                ui.link(each.text, target).classes("ef-small ef-wrap").props("dir=auto")
                with ui.element("div").classes("ef-row ef-dotted ef-tiny ef-soft"):
                    ui.label(each.title or each.session).classes("ef-wrap").props("dir=auto")
                    figures.age(each.created_at)
        if not found:
            ui.label(empty).classes("ef-small ef-soft")


def _show_advice(found: Sequence[Advice]) -> None:
    if not found:
        return
    with labelled(ui.element("section").classes("db-advice"), "Recommendations"):
        for each in found:
            with labelled(ui.element("article").classes(f"db-card db-{each.tone}"), each.title):
                ui.label(each.title).classes("db-title").props("dir=auto")
                ui.label(each.words).classes("ef-small")
                ui.link(each.action, each.path).classes("ef-small")


async def _find_alerts(window: Window) -> list[SessionAlert]:
    """Return the recent sessions that are nearly full, paused, or cannot be counted."""
    found: list[SessionAlert] = []
    for each in await window.sessions(_LOOKED_AT):
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


async def _find_cheaper(window: Window, activity: Activity) -> Recommendation | None:
    """Return a cheaper author for the summaries of this period."""
    used = [each for each in activity.usage if each.kind == "summary"]
    read = sum(each.input_tokens for each in used)
    written = sum(each.output_tokens for each in used)
    run = Figures(read, written, max(1, sum(each.calls for each in used)))
    candidates, models = candidates_of(await window.engine.profiles.all())
    called = {each.model for each in used}
    current = next((name for name, model in models.items() if model in called), None)
    if not used or current is None:
        return None
    if (found := recommend(run, candidates, current)) is None:
        return None
    effect = measured_effect(measure_summaries(used), models[found.name], models[current])
    return replace(found, reason=f"{found.reason}; {effect}") if effect else found
