"""The dialog that previews a compression before it runs.

Its options apply to this one run. Every change updates the preview; no model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from nicegui import ui

from enfold.budget import AUTO_FLOOR
from enfold.engine import Preview, Session
from enfold.errors import EnfoldError
from enfold.strategies import contract
from enfold.summaries import Style
from enfold.ui import figures
from enfold.ui.widgets import fact, facts, notice, table, titled_dialog

Keeping: TypeAlias = Literal["as_set", "tokens", "messages"]

KEEPINGS: Mapping[Keeping, str] = {
    "as_set": "As set",
    "tokens": "A number of tokens",
    "messages": "A number of messages",
}
SUGGESTED: Mapping[Keeping, int] = {"as_set": 0, "tokens": 1_000, "messages": 10}
"""The suggested amounts."""
STYLES: tuple[str, ...] = get_args(Style)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one compression."""

    keep: Keeping = "as_set"
    amount: int | None = 0
    """The amount of recent content to keep. None if the field has no number."""
    strategy: str | None = None
    style: str | None = None
    prompt: str | None = None

    @property
    def fault(self) -> str:
        """The error in the options; empty if they are valid."""
        if self.keep != "as_set" and (self.amount is None or self.amount < 0):
            return f"Enter the number of {self.keep} to keep: 0 or more."
        return ""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Session.compress` and `Session.preview`."""
        given: dict[str, Any] = {}
        if self.keep != "as_set":
            given[f"keep_{self.keep}"] = self.amount
        options = {"strategy": self.strategy, "style": self.style, "prompt": self.prompt}
        return given | {name: value for name, value in options.items() if value}


AS_SET = RunOptions()


COOKIE = "enfold-notices"
"""The cookie that overrides the setting `notifications` in one browser."""


_A_YEAR = 365 * 24 * 3600


class NoticePreference:
    """The choice of one browser to show or hide notices."""

    def __init__(self, setting: bool) -> None:  # noqa: FBT001 - the setting's value is all it takes
        stored = ui.context.client.request.cookies.get(COOKIE)
        self._setting = setting
        self.wanted = setting if stored not in {"on", "off"} else stored == "on"

    def switch(self) -> ui.switch:
        """Show a switch for it."""
        switch = ui.switch("Show compressions while they run", value=self.wanted)
        switch.on_value_change(lambda event: self.choose(wanted=bool(event.value)))
        return switch

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
_AS_SET = "as set"


async def ask_for_run(session: Session, notices: NoticePreference) -> RunOptions | None:
    """Show the dialog and return the options that the user confirms; None on cancel."""
    with titled_dialog(TITLE) as dialog:
        contents = _PreviewDialog(session, dialog)
        contents.show(notices)
    await contents.preview()
    answer = await dialog
    dialog.delete()
    return answer if isinstance(answer, RunOptions) else None


class _PreviewDialog:
    """The content of the dialog."""

    def __init__(self, session: Session, dialog: ui.dialog) -> None:
        self._session = session
        self._dialog = dialog
        self._run = AS_SET
        self._request = 0

    def show(self, notices: NoticePreference) -> None:
        """Show the content."""
        ui.label(
            "A summary replaces old messages in the context. Nothing is deleted: you can read, "
            "search and restore everything."
        ).classes("ef-soft")
        self._figures = ui.element("section").classes("ef-stack").props("aria-live=polite")
        with ui.expansion("For this run only", icon="tune").classes("ef-full ef-expansion"):
            self._choices()
        notices.switch()
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: self._dialog.submit(None)).props("flat")
            self._confirm = ui.button(
                "Summarize now", icon="compress", on_click=lambda: self._dialog.submit(self._run)
            ).props("unelevated color=primary")

    async def preview(self) -> None:
        """Update the preview."""
        self._request += 1
        request = self._request
        self._confirm.disable()
        if self._run.fault:
            self._fail(self._run.fault)
            return
        self._wait()
        try:
            found = await self._session.preview(**self._run.arguments())
        except EnfoldError as error:
            if request == self._request:
                self._fail(str(error), retry=True)
            return
        if request == self._request:  # otherwise the options have changed
            self._show(found)

    def _choices(self) -> None:
        with ui.element("div").classes("ef-stack ef-full"):
            with ui.element("div").classes("ef-row"):
                keep = ui.select(dict(KEEPINGS), value="as_set", label="Keep verbatim")
                keep.classes("ef-wide-choice")
                amount = ui.number("Amount", min=0, precision=0, value=0).classes("ef-short")
                amount.bind_visibility_from(keep, "value", lambda value: value != "as_set")
            strategy = ui.select(
                [_AS_SET, *contract.names()], value=_AS_SET, label="Strategy"
            ).classes("ef-full")
            style = ui.select([_AS_SET, *STYLES], value=_AS_SET, label="Summary style")
            style.classes("ef-full")
            prompt = ui.textarea("Prompt for this summary")
            prompt.props("autogrow debounce=400 dir=auto").classes("ef-full")
        keep.on_value_change(lambda event: self._keep(event.value, amount))
        amount.on_value_change(lambda event: self._choose(amount=_whole(event.value)))
        strategy.on_value_change(lambda event: self._choose(strategy=_chosen(event.value)))
        style.on_value_change(lambda event: self._choose(style=_chosen(event.value)))
        prompt.on_value_change(lambda event: self._choose(prompt=event.value.strip() or None))

    async def _keep(self, keep: Any, amount: ui.number) -> None:
        self._run = replace(self._run, keep=keep, amount=SUGGESTED[keep])
        amount.value = SUGGESTED[keep]
        await self.preview()

    async def _choose(self, **chosen: Any) -> None:
        changed = replace(self._run, **chosen)
        if changed != self._run:
            self._run = changed
            await self.preview()

    def _wait(self) -> None:
        self._figures.clear()
        with self._figures, ui.element("div").classes("ef-row"):
            ui.spinner(size="1.2em").props('aria-hidden="true"')
            ui.label("Calculating preview…").classes("ef-soft")

    def _fail(self, fault: str, *, retry: bool = False) -> None:
        self._figures.clear()
        with self._figures, notice("bad", fault):
            if retry:
                ui.button("Retry", on_click=self.preview).props("flat dense").classes("ef-start")

    def _show(self, found: Preview) -> None:
        self._figures.clear()
        with self._figures:
            if not found.messages:
                ui.label("Nothing to summarize: all messages are recent enough to be kept.")
                return
            show_preview(found)
        self._confirm.enable()


def show_preview(found: Preview) -> None:
    """Show the result that a compression would have, its steps and its warnings."""
    with facts():
        with fact("Changes"):
            ui.label(f"{found.messages:,} of {found.messages + found.kept_messages:,} messages")
        with fact("Before"):
            figures.count(found.tokens_before, "tokens")
        with fact("After"):
            # With a summary the number is a maximum: its limit, not its length, is known.
            if found.summary_tokens:
                ui.label(f"at most {found.tokens_after:,} tokens").classes("ef-figure")
            else:
                figures.estimate(found.tokens_after, "tokens")
        with fact("Saved"):
            before = found.tokens_before
            figures.share(max(0.0, 1 - found.tokens_after / before) if before else 0.0)
        with fact("Cost"):
            if found.cost == 0:
                ui.label("none: no model is called").classes("ef-figure")
            else:
                figures.money(found.cost, is_estimate=True, why="Based on current prices.")
        with fact("Strategy"):
            ui.label(f"{contract.get(found.strategy).name}, summary by {found.author}")
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
    for warning in _warnings(found):
        with notice("warm", warning):
            pass


def _warnings(found: Preview) -> tuple[str, ...]:
    if found.tokens_before < AUTO_FLOOR:
        few = f"Only {found.tokens_before:,} tokens: a compression saves little."
        return (few, *found.warnings)
    return found.warnings


def _chosen(value: str) -> str | None:
    return None if value == _AS_SET else value


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
