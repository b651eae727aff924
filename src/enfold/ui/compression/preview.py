"""Previewing: the dialog that shows what a compression would do before it is done.

What is chosen in it holds for this one run. Every change is previewed anew; no model is asked.
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
from enfold.ui.widgets import fact, facts, notice, titled_dialog

Keeping: TypeAlias = Literal["as_set", "tokens", "messages"]

KEEPINGS: Mapping[Keeping, str] = {
    "as_set": "As much as is set",
    "tokens": "So many tokens",
    "messages": "So many messages",
}
SUGGESTED: Mapping[Keeping, int] = {"as_set": 0, "tokens": 1_000, "messages": 10}
"""How much of each is suggested."""
STYLES: tuple[str, ...] = get_args(Style)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One compression."""

    keep: Keeping = "as_set"
    amount: int | None = 0
    """How much of the newest part stays. None while that is not a number."""
    strategy: str | None = None
    style: str | None = None
    prompt: str | None = None

    @property
    def fault(self) -> str:
        """Why it cannot be done. Empty if it can."""
        if self.keep != "as_set" and (self.amount is None or self.amount < 0):
            return f"How many {self.keep} are to stay? 0 or more."
        return ""

    def arguments(self) -> dict[str, Any]:
        """What `Session.compress` and `Session.preview` are called with."""
        given: dict[str, Any] = {}
        if self.keep != "as_set":
            given[f"keep_{self.keep}"] = self.amount
        said = {"strategy": self.strategy, "style": self.style, "prompt": self.prompt}
        return given | {name: value for name, value in said.items() if value}


AS_SET = RunOptions()


COOKIE = "enfold-notices"
"""Where the browser keeps what was chosen in it; until then the setting `notifications` holds."""


_A_YEAR = 365 * 24 * 3600


class NoticePreference:
    """One window's choice."""

    def __init__(self, setting: bool) -> None:  # noqa: FBT001 - the setting's value is all it takes
        said = ui.context.client.request.cookies.get(COOKIE)
        self._setting = setting
        self.wanted = setting if said not in {"on", "off"} else said == "on"

    def switch(self) -> ui.switch:
        """A switch for it, which the browser remembers."""
        switch = ui.switch("Show compressions while they run", value=self.wanted)
        switch.on_value_change(lambda event: self.choose(wanted=bool(event.value)))
        return switch

    def choose(self, *, wanted: bool) -> None:
        """Show them from now on, or do not."""
        self.wanted = wanted
        word = "on" if wanted else "off"
        # What is as it is set need not be remembered: then it follows the setting again.
        seconds = 0 if wanted == self._setting else _A_YEAR
        ui.run_javascript(
            f"document.cookie='{COOKIE}={word};path=/;max-age={seconds};samesite=strict'"
        )


TITLE = "Summarize conversation history"
_AS_SET = "as set"


async def ask_for_run(session: Session, notices: NoticePreference) -> RunOptions | None:
    """What somebody wants done, once they have seen what it comes to; None if nothing."""
    with titled_dialog(TITLE) as dialog:
        contents = _PreviewDialog(session, dialog)
        contents.show(notices)
    await contents.preview()
    answer = await dialog
    dialog.delete()
    return answer if isinstance(answer, RunOptions) else None


class _PreviewDialog:
    """The dialog's contents."""

    def __init__(self, session: Session, dialog: ui.dialog) -> None:
        self._session = session
        self._dialog = dialog
        self._run = AS_SET
        self._asked = 0

    def show(self, notices: NoticePreference) -> None:
        """Put it on the page."""
        ui.label(
            "What is old is folded into a summary, which the model is sent in its place. "
            "Nothing is deleted: you can read, search and restore all of it."
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
        """Show what the run would come to."""
        self._asked += 1
        asked = self._asked
        self._confirm.disable()
        if self._run.fault:
            self._say(self._run.fault)
            return
        self._wait()
        try:
            found = await self._session.preview(**self._run.arguments())
        except EnfoldError as error:
            if asked == self._asked:
                self._say(str(error), retry=True)
            return
        if asked == self._asked:  # else something else was chosen meanwhile
            self._tell(found)

    def _choices(self) -> None:
        with ui.element("div").classes("ef-stack ef-full"):
            with ui.element("div").classes("ef-row"):
                keep = ui.select(dict(KEEPINGS), value="as_set", label="What stays verbatim")
                keep.classes("ef-wide-choice")
                amount = ui.number("How many", min=0, precision=0, value=0).classes("ef-short")
                amount.bind_visibility_from(keep, "value", lambda value: value != "as_set")
            strategy = ui.select(
                [_AS_SET, *contract.names()], value=_AS_SET, label="Strategy"
            ).classes("ef-full")
            style = ui.select([_AS_SET, *STYLES], value=_AS_SET, label="Style of the summary")
            style.classes("ef-full")
            prompt = ui.textarea("Instructions for this summary")
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
            ui.label("Working out what it comes to…").classes("ef-soft")

    def _say(self, fault: str, *, retry: bool = False) -> None:
        self._figures.clear()
        with self._figures, notice("bad", fault):
            if retry:
                ui.button("Retry", on_click=self.preview).props("flat dense").classes("ef-start")

    def _tell(self, found: Preview) -> None:
        self._figures.clear()
        with self._figures:
            if not found.messages:
                ui.label("There is nothing to summarize: all of it is recent enough to stay.")
                return
            _figures(found)
            for warning in _warnings(found):
                with notice("warm", warning):
                    pass
        self._confirm.enable()


def _figures(found: Preview) -> None:
    """What a run would come to, as a list of names and values."""
    with facts():
        with fact("Folds"):
            ui.label(f"{found.messages:,} of {found.messages + found.kept_messages:,} messages")
        with fact("Before"):
            figures.count(found.tokens_before, "tokens")
        with fact("After"):
            _after(found)
        with fact("Less"):
            figures.share(max(0.0, 1 - found.tokens_after / found.tokens_before))
        with fact("Cost"):
            _cost(found.cost)
        with fact("Strategy"):
            ui.label(f"{contract.get(found.strategy).name}, summary by {found.author}")


def _after(found: Preview) -> None:
    """A summary has a limit and is often shorter; what other strategies leave is reckoned."""
    if found.summary_tokens:
        ui.label(f"{found.tokens_after:,} tokens at most").classes("ef-figure")
    else:
        figures.estimate(found.tokens_after, "tokens", "What is expected; known once it is done.")


def _cost(cost: float | None) -> None:
    if cost == 0:
        ui.label("none, no model is asked").classes("ef-figure")
    else:
        figures.money(cost, is_estimate=True)


def _warnings(found: Preview) -> tuple[str, ...]:
    if found.tokens_before < AUTO_FLOOR:
        few = f"Only {found.tokens_before:,} tokens are there; little is to be gained."
        return (few, *found.warnings)
    return found.warnings


def _chosen(value: str) -> str | None:
    return None if value == _AS_SET else value


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
