"""The dialog that previews a compression before it runs.

Its options apply to this one run. Every change updates the preview; no model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import background_tasks, ui

from enfold.budget import AUTO_FLOOR
from enfold.engine import Preview, Session
from enfold.errors import EnfoldError
from enfold.fields import DescribedModel, Fault, described, faults
from enfold.strategies import contract
from enfold.summaries import Style
from enfold.ui import figures
from enfold.ui.forms import ConfigForm
from enfold.ui.widgets import Cell, author_text, facts, notice, table, titled_dialog

_optional = partial(described, default=None, unset="as set")


class RunOptions(DescribedModel):
    """The options of one compression; the settings apply to those that are unset."""

    keep_tokens: int | None = _optional(
        "Recent tokens kept", "Number of recent tokens kept verbatim.", ge=0, unit="tokens"
    )
    keep_messages: int | None = _optional(
        "Recent messages kept",
        "Number of recent messages kept verbatim, in place of a number of tokens.",
        ge=0,
        unit="messages",
    )
    strategy: str | None = _optional("Strategy", "The strategy that condenses.")
    style: Style | None = _optional("Summary style", "The form of the summary.")
    prompt: str | None = _optional("Prompt", "Replaces the prompt of this summary.")


def find_faults(options: Mapping[str, Any]) -> tuple[Fault, ...]:
    """Return everything that is wrong with the options of a run."""
    if options.get("keep_tokens") is not None and options.get("keep_messages") is not None:
        return (Fault("keep_messages", "enter a number of tokens or of messages, not both"),)
    return faults(RunOptions, options)


COOKIE = "enfold-notices"
"""The cookie that overrides the setting `notifications` in one browser."""
_A_YEAR = 365 * 24 * 3600


class NoticePreference:
    """The choice of one browser to show or hide notices."""

    def __init__(self, setting: bool) -> None:  # noqa: FBT001 - the setting's value is all it takes
        stored = ui.context.client.request.cookies.get(COOKIE)
        self._setting = setting
        self.wanted = setting if stored not in {"on", "off"} else stored == "on"

    def choose(self, *, wanted: bool) -> None:
        """Store the choice in the browser."""
        self.wanted = wanted
        word = "on" if wanted else "off"
        # A choice equal to the setting is not stored, so that later changes of the setting apply.
        seconds = 0 if wanted == self._setting else _A_YEAR
        ui.run_javascript(
            f"document.cookie='{COOKIE}={word};path=/;max-age={seconds};samesite=strict'"
        )


TITLE = "Summarize conversation history"


async def ask_for_run(session: Session, notices: NoticePreference) -> Mapping[str, Any] | None:
    """Show the dialog and return the options that the user confirms; None on cancel."""
    with titled_dialog(TITLE) as dialog:
        contents = _PreviewDialog(session, dialog, notices)
    await contents.preview()
    answer: Mapping[str, Any] | None = await dialog
    dialog.delete()
    return answer


class _PreviewDialog:
    """The content of the dialog."""

    def __init__(self, session: Session, dialog: ui.dialog, notices: NoticePreference) -> None:
        self._session = session
        self._options: dict[str, Any] = {}
        self._request = 0
        ui.label(
            "A summary replaces old messages in the context. Nothing is deleted: you can read, "
            "search and restore everything."
        ).classes("ef-soft")
        self._figures = ui.element("section").classes("ef-stack").props("aria-live=polite")
        with ui.expansion("For this run only", icon="tune").classes("ef-full ef-expansion"):
            names = {name: name for name in contract.names()}
            self._form = ConfigForm(self._changed, choices={"strategy": names})
            self._form.add_object(RunOptions, self._options)
        switch = ui.switch("Show compressions while they run", value=notices.wanted)
        switch.on_value_change(lambda event: notices.choose(wanted=bool(event.value)))
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            self._confirm = ui.button("Summarize now", icon="compress")
            self._confirm.on_click(lambda: dialog.submit(self._options))
            self._confirm.props("unelevated color=primary")

    async def preview(self) -> None:
        """Update the preview."""
        self._request += 1
        request = self._request
        self._confirm.disable()
        self._figures.clear()
        wrong = find_faults(self._options)
        self._form.show_faults(wrong)
        if wrong:
            return
        with self._figures, ui.element("div").classes("ef-row"):
            ui.spinner(size="1.2em").props('aria-hidden="true"')
            ui.label("Calculating preview…").classes("ef-soft")
        try:
            found = await self._session.preview(**self._options)
        except EnfoldError as error:
            if request == self._request:
                self._figures.clear()
                with self._figures, notice("bad", str(error)):
                    retry = ui.button("Retry", on_click=self.preview).props("flat dense")
                    retry.classes("ef-start")
            return
        if request != self._request:
            return  # the options have changed
        self._figures.clear()
        with self._figures:
            if not found.messages:
                ui.label("Nothing to summarize: all messages are recent enough to be kept.")
                return
            show_preview(found)
        self._confirm.enable()

    def _changed(self) -> None:
        background_tasks.create(self.preview(), name="preview", context=self._figures)


def show_preview(found: Preview) -> None:
    """Show the result that a compression would have, its steps and its warnings."""
    before, after = found.tokens_before, found.tokens_after
    # A summary replaces all of these; other strategies look at them and change some.
    most = "" if found.summary_tokens else "at most "
    entries: dict[str, Cell] = {
        "Changes": f"{most}{found.messages:,} of {found.messages + found.kept_messages:,} messages",
        "Before": partial(figures.count, before, "tokens"),
        "After": partial(figures.estimate, after, "tokens"),
        "Saved": partial(figures.share, max(0.0, 1 - after / before) if before else 0.0),
        "Cost": "none: no model is called",
        "Strategy": author_text(found.strategy, found.author),
    }
    if found.summary_tokens:  # its limit is known, not its length
        entries["After"] = f"at most {after:,} tokens"
    if found.cost != 0:
        why = "Based on current prices."
        entries["Cost"] = partial(figures.money, found.cost, is_estimate=True, why=why)
    facts(entries)
    if found.steps:
        rows = [
            (
                step.name,
                f"{step.tokens_before:,}",
                f"{step.tokens_after:,}",
                figures.share_text(max(0.0, step.reduction)),
            )
            for step in found.steps
        ]
        table("Steps", ("Step", "Before", "After", "Saved"), rows)
    warnings = list(found.warnings)
    if before < AUTO_FLOOR:
        warnings.insert(0, f"Only {before:,} tokens: a compression saves little.")
    for warning in warnings:
        with notice("warm", warning):
            pass
