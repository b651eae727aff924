"""Failures: how a page says that something went wrong, and what the log is told of it."""

from __future__ import annotations

import logging
import traceback

from nicegui import ui

from enfold.errors import EnfoldError


def show(error: Exception) -> None:
    """Say it in a corner of the page. Words of ours can be read; a mistake's might hold anything.

    This is what happens to whatever a handler on a page raises.
    """
    words = (
        str(error) if isinstance(error, EnfoldError) else "Something went wrong here; see the log."
    )
    tell(words)


def tell(words: str) -> None:
    """Say in a corner of the page what is wrong."""
    ui.notify(
        words,
        type="negative",
        position="bottom",
        timeout=12_000,
        actions=[{"label": "Dismiss", "color": "white"}],
    )


def explain(error: EnfoldError) -> None:
    """Say it in the place of what should have been on the page."""
    with ui.element("section").classes("ef-empty").props('role="alert"'):
        ui.icon("error_outline").classes("ef-empty-icon").props('aria-hidden="true"')
        ui.label(str(error)).classes("ef-wrap")
        ui.link("Back to the conversations", "/")


def without_words(record: logging.LogRecord) -> bool:
    """For the log: what is ours was shown already; of a mistake, its kind and its place."""
    if not record.exc_info or record.exc_info[1] is None:
        return True
    error = record.exc_info[1]
    if isinstance(error, EnfoldError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"
    record.msg, record.args = "a mistake of ours: %s", (f"{type(error).__name__} at {place}",)
    record.exc_info = None
    return True
