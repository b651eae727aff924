"""Figures: counts, estimates, unknown values, money, shares and dates, the same on every page.

An exact count is plain. An estimate has a sign before it and a dotted underline, and its tooltip
gives the reason. An unknown value is shown as "unknown", never as zero.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from nicegui import ui

from enfold.amounts import dollars

UNKNOWN = "unknown"
_A_DAY = 24 * 3600
_AGES = ((60, 1, "s"), (3600, 60, "min"), (_A_DAY, 3600, "h"), (14 * _A_DAY, _A_DAY, "d"))
"""Seconds below which a unit is used, the seconds in that unit, and its sign."""


def count(value: int | None, unit: str = "") -> ui.label:
    """Show an exact count; None is unknown."""
    if value is None:
        return unknown()
    return ui.label(f"{value:,} {unit}".rstrip()).classes("ef-figure")


def estimate(value: float, unit: str = "", why: str = "An estimate.") -> ui.label:
    """Show a number that is not exact, with the reason."""
    return _explained(f"≈ {value:,.0f} {unit}".rstrip(), "ef-figure ef-estimate", why)


def unknown(why: str = "") -> ui.label:
    """Show that a value is unknown, with the reason."""
    return _explained(UNKNOWN, "ef-figure ef-unknown", why)


def money(amount: float | None, *, is_estimate: bool = False, why: str = "") -> ui.label:
    """Show an amount in US dollars; None is unknown."""
    if amount is None:
        return unknown(why or "No price is known for this model.")
    if is_estimate:
        return _explained(f"≈ {dollars(amount)}", "ef-figure ef-estimate", why or "An estimate.")
    return ui.label(dollars(amount)).classes("ef-figure")


def share(value: float | None, digits: int = 0) -> ui.label:
    """Show a share of one as a percentage; None is unknown."""
    return unknown() if value is None else ui.label(share_text(value, digits)).classes("ef-figure")


def age(milliseconds: int) -> ui.label:
    """Show the age of a record, with the date and time as a tooltip."""
    at = moment(milliseconds)
    return _explained(age_text(at), "ef-figure ef-when", moment_text(at))


def moment(milliseconds: int) -> datetime:
    """Return a stored time: milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)


def share_text(value: float, digits: int = 0) -> str:
    """Return a percentage such as `12 %`; only 0 and 1 are written as 0 % and 100 %."""
    step = 10.0 ** (-digits - 2)
    if 0 < value < step:
        return f"< {step * 100:.{digits}f} %"
    if 1 - step < value < 1:
        return f"> {(1 - step) * 100:.{digits}f} %"
    return f"{value * 100:.{digits}f} %"


def moment_text(at: datetime) -> str:
    """Return the date and time in UTC: the server does not know the visitor's time zone."""
    return f"{at.astimezone(UTC):%d %B %Y, %H:%M} UTC".removeprefix("0")


def age_text(at: datetime, now: datetime | None = None) -> str:
    """Return the time since a moment, such as `5 min ago`; after 14 days the date."""
    seconds = max(0.0, ((now or datetime.now(UTC)) - at).total_seconds())
    for below, unit, sign in _AGES:
        if seconds < below:
            return f"{int(seconds // unit)} {sign} ago" if seconds >= 1 else "now"
    return date_text(at.astimezone(UTC).date())


def date_text(day: date) -> str:
    """Return a date such as `8 Jun 2021`."""
    return f"{day:%d %b %Y}".removeprefix("0")


def _explained(text: str, classes: str, why: str) -> ui.label:
    label = ui.label(text).classes(classes)
    if why:
        # A tooltip needs a mouse; keyboard and screen reader get the reason this way.
        label.props("tabindex=0").props["aria-label"] = f"{text}. {why}"
        label.tooltip(why)
    return label
