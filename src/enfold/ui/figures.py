"""Figures: how counts, estimates, unknown values, money, shares and dates look, on every page.

An exact count is plain. An estimate has a sign before it and dots under it, and says why when
pointed at. What is unknown is said to be, and never shown as nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui import ui

from enfold.amounts import dollars

UNKNOWN = "unknown"
_A_DAY = 24 * 3600
_AGES = ((60, 1, "s"), (3600, 60, "min"), (_A_DAY, 3600, "h"), (14 * _A_DAY, _A_DAY, "d"))


def count(value: int | None, unit: str = "", *, why_unknown: str = "") -> ui.label:
    """An exact count; None is unknown."""
    if value is None:
        return unknown(why_unknown)
    return ui.label(_with_unit(f"{value:,}", unit)).classes("ef-figure")


def estimate(value: float, unit: str = "", why: str = "An estimate.") -> ui.label:
    """A number that is not exact, and why it is not."""
    return _explained(_with_unit(f"≈ {value:,.0f}", unit), "ef-figure ef-estimate", why)


def unknown(why: str = "") -> ui.label:
    """A value that nobody knows, and why nobody does."""
    return _explained(UNKNOWN, "ef-figure ef-unknown", why)


def money(amount: float | None, *, is_estimate: bool = False, why: str = "") -> ui.label:
    """US dollars; None is unknown."""
    if amount is None:
        return unknown(why or "No price is known for this model.")
    if is_estimate:
        return _explained(f"≈ {dollars(amount)}", "ef-figure ef-estimate", why or "An estimate.")
    return ui.label(dollars(amount)).classes("ef-figure")


def share(value: float | None, digits: int = 0) -> ui.label:
    """A share of one as a percentage; None is unknown."""
    return unknown() if value is None else ui.label(share_text(value, digits)).classes("ef-figure")


def when(at: datetime, *, now: datetime | None = None) -> ui.label:
    """How long ago, with the date and the time when pointed at."""
    return _explained(age_text(at, now), "ef-figure ef-when", moment_text(at))


def share_text(value: float, digits: int = 0) -> str:
    """`12 %`; what is more than nothing and less than all is not rounded to either."""
    step = 10.0 ** (-digits - 2)
    if 0 < value < step:
        return f"< {step * 100:.{digits}f} %"
    if 1 - step < value < 1:
        return f"> {(1 - step) * 100:.{digits}f} %"
    return f"{value * 100:.{digits}f} %"


def moment_text(at: datetime) -> str:
    """The date and the time, in UTC: the server does not know where its visitor is."""
    return f"{at.astimezone(UTC):%d %B %Y, %H:%M} UTC".removeprefix("0")


def age_text(at: datetime, now: datetime | None = None) -> str:
    """How long ago that was; the date if it is long."""
    seconds = max(0.0, ((now or datetime.now(UTC)) - at).total_seconds())
    for below, unit, sign in _AGES:
        if seconds < below:
            return f"{int(seconds // unit)} {sign} ago" if seconds >= 1 else "now"
    return f"{at.astimezone(UTC):%d %b %Y}".removeprefix("0")


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}" if unit else number


def _explained(text: str, classes: str, why: str) -> ui.label:
    label = ui.label(text).classes(classes)
    if why:
        # Also for whoever uses no mouse: it can be reached by the keyboard, and read out.
        label.props("tabindex=0").props["aria-label"] = f"{text}. {why}"
        label.tooltip(why)
    return label
