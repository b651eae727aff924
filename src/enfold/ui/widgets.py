"""Blocks: headings, facts, badges and notices, as several pages show them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from inspect import isawaitable
from typing import Literal, Protocol, TypeAlias, TypeVar

from nicegui import ui

from enfold.ui import figures

Entry = TypeVar("Entry")
Tone: TypeAlias = Literal["plain", "good", "warm", "bad"]

BY_HAND = "user"
"""The author of a summary that somebody wrote."""

_ICONS: dict[Tone, str] = {
    "plain": "info",
    "good": "check_circle",
    "warm": "warning",
    "bad": "error",
}


def number_of(number: int, word: str) -> str:
    """So many of something: `1 message`, `1,024 messages`."""
    return f"1 {word}" if number == 1 else f"{number:,} {word}s"


def author_text(strategy: str, author: str) -> str:
    """Who did a compression: the strategy, and whoever wrote the summary, if there is one."""
    if author in {"", strategy}:
        return strategy
    return f"{strategy}, by {'you' if author == BY_HAND else author}"


class Timestamped(Protocol):
    """What the store says when it was written."""

    @property
    def created_at(self) -> int:
        """In milliseconds since 1970."""


def age_label(record: Timestamped) -> ui.label:
    """How long ago a record was written."""
    return figures.when(_moment(record))


def age_of_record(record: Timestamped) -> str:
    """The same in words alone, for where nothing more can be pointed at."""
    return figures.age_text(_moment(record))


def _moment(record: Timestamped) -> datetime:
    return datetime.fromtimestamp(record.created_at / 1_000, UTC)


def heading(text: str, level: int = 2) -> ui.label:
    """A heading; level 1 is the page's own."""
    return ui.label(text).classes(f"ef-h{level} ef-wrap").props(f"role=heading aria-level={level}")


@contextmanager
def titled_dialog(title: str) -> Iterator[ui.dialog]:
    """A dialog; what is put inside is its contents. Awaited it opens, and gives what is chosen."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        dialog.props["aria-label"] = title
        heading(title)
        yield dialog


@contextmanager
def facts() -> Iterator[None]:
    """A list of names and values; each is a `fact`."""
    with ui.element("dl").classes("ef-facts"):
        yield


@contextmanager
def fact(name: str) -> Iterator[None]:
    """A name; what is put inside is its value."""
    with ui.element("div").classes("ef-fact"):
        with ui.element("dt"):
            ui.label(name)
        with ui.element("dd"):
            yield


def badge(text: str, tone: Tone = "plain") -> ui.label:
    """A word about what it stands beside."""
    return ui.label(text).classes(f"ef-badge ef-badge-{tone}")


@contextmanager
def notice(tone: Tone, title: str) -> Iterator[ui.element]:
    """Something to know; what is put inside is more about it. What is bad is read out at once."""
    role = "alert" if tone == "bad" else "status"
    with ui.element("section").classes(f"ef-notice ef-notice-{tone}").props(f"role={role}") as made:
        ui.icon(_ICONS[tone]).classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow ef-stack-tight"):
            ui.label(title).classes("ef-notice-title ef-wrap")
            yield made


@contextmanager
def buttons() -> Iterator[None]:
    """A row of what can be done."""
    with ui.element("div").classes("ef-row"):
        yield


def expandable(
    title: str, fill: Callable[[], Awaitable[None] | None], *, is_open: bool = False
) -> ui.expansion:
    """A line that opens; what is in it is made when that first happens."""
    with ui.expansion(title, value=is_open).classes("ef-full ef-expansion").props("dense") as line:
        place = ui.element("div").classes("ef-stack-tight")

    async def opened() -> None:
        if line.value and not place.default_slot.children:
            with place:
                filling = fill()
                if isawaitable(filling):
                    await filling

    line.on_value_change(opened)
    return line


def paged_list(
    entries: Sequence[Entry],
    show: Callable[[Entry], None],
    *,
    at_once: int = 20,
    tag: str = "div",
    classes: str = "ef-stack-tight",
) -> None:
    """The first entries, and a button for the next: a page with thousands is of use to nobody."""
    listed = ui.element(tag).classes(classes)
    more = ui.button().props("flat dense color=primary").classes("ef-start ef-across")
    seen = 0

    def show_more() -> None:
        nonlocal seen
        with listed:
            for entry in entries[seen : seen + at_once]:
                show(entry)
        seen = min(len(entries), seen + at_once)
        more.set_text(f"Show more ({len(entries) - seen:,} left)")
        more.set_visibility(seen < len(entries))

    more.on_click(show_more)
    show_more()


async def prompt_for_name(question: str, label: str, value: str) -> str | None:
    """A name; None if it was thought better of."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        _heading(question)
        field = ui.input(label, value=value).props("outlined autofocus maxlength=200 dir=auto")
        field.classes("ef-full").on("keydown.enter", lambda: dialog.submit(field.value), args=[])
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
    name: str | None = await dialog
    dialog.delete()
    return name.strip() if name and name.strip() else None


async def confirm(question: str, explanation: str, act: str) -> bool:
    """Whether that is really wanted."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        _heading(question)
        ui.label(explanation).classes("ef-wrap").props("dir=auto")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat autofocus")
            sure = ui.button(act, on_click=lambda: dialog.submit(act))
            sure.props("unelevated color=negative")
    answer: str | None = await dialog
    dialog.delete()
    return answer == act


def _heading(text: str) -> None:
    ui.label(text).classes("ef-title-small").props("role=heading aria-level=2")
