"""The prompts section: the prompt for summaries, with a preview on a real excerpt."""

from __future__ import annotations

from nicegui import ui

from enfold.engine.state import message_of
from enfold.errors import ConfigError
from enfold.messages import Message
from enfold.summaries import SummaryRequest
from enfold.summaries.prompts import CONVERSATION, build, validate
from enfold.ui.settings.scope import SOURCES, ScopedSection, session_choices
from enfold.ui.widgets import card, labelled

_EXCERPT = 6
"""Messages of the excerpt in the preview."""


class PromptsSection(ScopedSection):
    """The prompt, validated while it is edited, and its preview."""

    async def _build(self) -> None:
        about = (
            f"Replaces the instructions of the style. {{{CONVERSATION}}} marks the place of the "
            "conversation; without it, the conversation comes last. A profile may have its own "
            "prompt. The built-in summarizer does not use prompts."
        )
        with card("Summary prompt", about):
            self._source = ui.label().classes("st-source")
            self._text = ui.textarea(
                "Your prompt", placeholder="Not set: the prompt of the style", validation=_fault
            ).props("outlined autogrow debounce=250")
            self._text.classes("ef-full")
            self._text.on_value_change(self._changed)
            with ui.element("div").classes("ef-row"):
                self._save = ui.button("Save prompt", icon="save", on_click=self._store)
                self._save.props("unelevated")
                self._reset = ui.button("Reset prompt", icon="undo", on_click=self._unset)
                self._reset.props("flat")
            self._note = ui.label().classes("ef-small ef-warm ef-wrap")
        await self._preview_card()

    async def _preview_card(self) -> None:
        choices = await session_choices(self._window)
        about = "The text that a model is sent, with the latest messages of a session."
        with card("Preview", about):
            if not choices:
                ui.label("No session yet for an example.").classes("ef-soft")
            self._example = ui.select(
                {"": "Without a conversation", **choices},
                value=next(iter(choices), ""),
                label="Example from",
                on_change=self._preview,
            ).props("outlined dense options-dense")
            self._example.classes("st-scope")
            self._preview_text = ui.element("div").classes("ef-stack").props("aria-live=polite")

    async def _refresh(self) -> None:
        self._settings = await self._scope.settings()
        source = self._settings.sources["prompt"]
        self._source.text = f"from: {SOURCES[source]}"
        self._text.value = self._settings.prompt or ""
        self._text.set_enabled(self._scope.may_change)
        self._reset.set_visibility(source == self._scope.level and self._scope.may_change)
        native = self._settings.strategy_config.get("native", {})
        self._note.text = (
            "The config of the native strategy has its own prompt, which overrides this one."
            if native.get("prompt")
            else ""
        )
        await self._preview()

    async def _changed(self) -> None:
        is_valid = _fault(self._text.value) is None
        self._save.set_enabled(is_valid and self._scope.may_change)
        if is_valid:
            await self._preview()

    async def _store(self) -> None:
        await self._scope.set("prompt", self._text.value or None)
        ui.notify("Saved. It applies from the next summary on.", type="positive")
        await self._refresh()

    async def _unset(self) -> None:
        await self._scope.set("prompt", None)
        await self._refresh()

    async def _preview(self) -> None:
        request = await self._request()
        built = build(request)
        self._preview_text.clear()
        with self._preview_text:
            for title, text in (("System", built.system), ("User", built.user)):
                ui.label(title).classes("st-title")
                shown = labelled(ui.element("pre").classes("st-prompt"), f"{title} text")
                with shown.props("tabindex=0 role=region dir=auto"):
                    ui.label(text)

    async def _request(self) -> SummaryRequest:
        messages: tuple[Message, ...] = ()
        if self._example.value:
            session = await self._window.session(self._example.value)
            rows = await session.history(limit=_EXCERPT)
            messages = tuple(message_of(row) for row in rows)
        return SummaryRequest(messages, style=self._settings.style, prompt=self._text.value or None)


def _fault(text: str | None) -> str | None:
    """Return the error in a prompt; None if it is valid or empty."""
    if not text:
        return None
    try:
        validate(text)
    except ConfigError as error:
        return str(error)
    return None
