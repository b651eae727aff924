"""Widgets that several pages use: headings, cards, facts, badges, notices, dialogs, lists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from typing import Literal, TypeAlias, TypeVar

from nicegui import ui

from enfold.report import author_name

Item = TypeVar("Item")
Element = TypeVar("Element", bound=ui.element)
Tone: TypeAlias = Literal["plain", "good", "warm", "bad"]
Cell: TypeAlias = str | Callable[[], object]
"""The content of a table's cell, or the value of a fact: a text, or a function that draws it."""

BY_HAND = "user"
"""The author of a summary that the user wrote."""

_ICONS: dict[Tone, str] = {
    "plain": "info",
    "good": "check_circle",
    "warm": "warning",
    "bad": "error",
}


def author_text(strategy: str, author: str) -> str:
    """Return the strategy of a compression and, if there is one, the author of its summary."""
    name = strategy.capitalize()
    if author in {"", strategy}:
        return name
    return f"{name}, by {'you' if author == BY_HAND else author_name(author)}"


def labelled(element: Element, label: str) -> Element:
    """Give an element an accessible name and return it."""
    # Set as a value: in the text form of props, quotes in the name would end it.
    element.props["aria-label"] = label
    return element


def heading(text: str, level: int = 2) -> ui.label:
    """Show a heading; level 1 is the title of the page."""
    return ui.label(text).classes(f"ef-h{level} ef-wrap").props(f"role=heading aria-level={level}")


def navigation(
    classes: str, label: str, entries: Mapping[str, tuple[str, str]], current: str
) -> None:
    """Show links to pages; an entry is path -> title and icon."""
    with labelled(ui.element("nav").classes(classes), label):
        for path, (title, icon) in entries.items():
            with ui.link(target=path).classes(f"{classes}-item") as link:
                ui.icon(icon, size="20px").props("aria-hidden=true")
                ui.label(title)
            if path == current:
                link.props("aria-current=page")


def card(title: str, explanation: str = "") -> ui.element:
    """Return a section with a heading, to be filled with `with`."""
    part = labelled(ui.element("section").classes("ef-card ef-stack"), title)
    with part, ui.element("div"):
        heading(title)
        if explanation:
            ui.label(explanation).classes("ef-soft ef-small ef-wrap")
    return part


def empty_state(icon: str, *lines: str) -> ui.element:
    """Show an icon and lines in place of content that does not exist yet."""
    with ui.element("section").classes("ef-empty") as section:
        ui.icon(icon).classes("ef-empty-icon").props('aria-hidden="true"')
        for number, line in enumerate(lines):
            ui.label(line).classes("ef-small" if number else "")
    return section


def facts(entries: Mapping[str, Cell]) -> None:
    """Show names with their values."""
    with ui.element("dl").classes("ef-facts"):
        for name, value in entries.items():
            with ui.element("div").classes("ef-fact"):
                with ui.element("dt"):
                    ui.label(name)
                with ui.element("dd"):
                    _draw(value, "ef-wrap")


def badge(text: str, tone: Tone = "plain") -> ui.label:
    """Show a short text in a rounded frame."""
    return ui.label(text).classes(f"ef-badge ef-badge-{tone}")


@contextmanager
def notice(tone: Tone, title: str) -> Iterator[ui.element]:
    """Show a notice and open the element for its details. Screen readers announce bad ones."""
    role = "alert" if tone == "bad" else "status"
    with ui.element("section").classes(f"ef-notice ef-notice-{tone}").props(f"role={role}") as made:
        ui.icon(_ICONS[tone]).classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow ef-stack-tight"):
            ui.label(title).classes("ef-notice-title ef-wrap")
            yield made


def show_all_button(length: int, show_all: Callable[[], object]) -> None:
    """Show a button that shows the whole text and then disappears."""

    def act() -> None:
        show_all()
        button.delete()

    button = ui.button(f"Show all {length:,} characters", on_click=act)
    button.props("flat dense size=sm color=primary").classes("ef-start")


def icon_button(icon: str, name: str, act: Callable[[], object] | None = None) -> ui.button:
    """Return a small button with an icon; its name is the tooltip and the accessible name."""
    button = ui.button(icon=icon, on_click=act).props("flat round dense size=sm")
    button.props["title"] = name
    return labelled(button, name)


def named_button(
    text: str, name: str, act: Callable[[], object], look: str = "flat dense"
) -> ui.button:
    """Return a button whose accessible name says more than its text."""
    return labelled(ui.button(text, on_click=act).props(look), name)


def show_text(place: ui.element, text: str, classes: str) -> None:
    """Show a text in place of an element's content."""
    place.clear()
    with place:
        ui.label(text).classes(f"{classes} ef-wrap").props("dir=auto")


def text_block(label: str) -> ui.label:
    """Show a frame for a long text as it is; return the label for the text."""
    frame = labelled(ui.element("pre").classes("st-prompt"), label)
    with frame.props("tabindex=0 role=region dir=auto"):
        return ui.label()


def file_button(field: ui.upload, name: str) -> ui.button:
    """Hide an upload field, which has controls inside controls, and return a button for it."""
    field.classes("ef-import")
    button = ui.button(name, icon="upload_file").props("flat no-caps align=left color=primary")
    button.on("click", js_handler=f"() => runMethod({field.id}, 'pickFiles', [])")
    return button


def expandable(title: str, fill: Callable[[], Awaitable[None] | None]) -> ui.expansion:
    """Show a line that expands; `fill` builds its content when it is first expanded."""
    with ui.expansion(title).classes("ef-full ef-expansion").props("dense") as line:
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
    items: Sequence[Item],
    show: Callable[[Item], None],
    *,
    at_once: int = 20,
    tag: str = "div",
    classes: str = "ef-stack-tight",
) -> None:
    """Show the first items, and a button that shows the next ones."""
    listed = ui.element(tag).classes(classes)
    more = ui.button().props("flat dense color=primary").classes("ef-start ef-across")
    shown = 0

    def show_more() -> None:
        nonlocal shown
        with listed:
            for item in items[shown : shown + at_once]:
                show(item)
        shown = min(len(items), shown + at_once)
        more.set_text(f"Show more ({len(items) - shown:,} left)")
        more.set_visibility(shown < len(items))

    more.on_click(show_more)
    show_more()


def table(
    label: str, titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, classes: str = ""
) -> None:
    """Show a table; if the first column has no title, its cells are headings."""
    with (
        ui.element("div").classes("ef-scroll-x"),
        labelled(ui.element("table").classes(f"ef-grid {classes}"), label),
    ):
        with ui.element("tr"):
            for title in titles:
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        for row in rows:
            with ui.element("tr"):
                for place, content in enumerate(row):
                    is_heading = not place and not titles[0]
                    with ui.element("th").props("scope=row") if is_heading else ui.element("td"):
                        _draw(content)


def _draw(content: Cell, classes: str = "") -> None:
    if isinstance(content, str):
        ui.label(content).classes(classes)
    else:
        content()


@contextmanager
def titled_dialog(title: str) -> Iterator[ui.dialog]:
    """Open a dialog to be filled. Awaiting the dialog shows it and returns the submitted value."""
    opener = ui.context.slot.parent
    if (task := asyncio.current_task()) is not None:
        # A refresh may delete the opener; its handler still needs it to find the page.
        task.add_done_callback(lambda _: opener)
    # In the page, so that a dialog stays open when the part that opened it is drawn again.
    with opener.client.content, ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        labelled(dialog, title)
        heading(title)
        yield dialog


@contextmanager
def shown_dialog(title: str) -> Iterator[ui.dialog]:
    """Open a dialog to be filled; it is shown at the end, and deleted when it closes."""
    with titled_dialog(title) as dialog:
        yield dialog
    dialog.on("hide", dialog.delete)
    dialog.open()


async def prompt_for_text(
    title: str, label: str, value: str, *, explanation: str = "", is_long: bool = False
) -> str | None:
    """Return the text that the user enters; None if it is empty or the user cancels."""
    with titled_dialog(title) as dialog:
        if explanation:
            ui.label(explanation).classes("ef-soft ef-small ef-wrap")
        field: ui.input | ui.textarea
        if is_long:
            field = ui.textarea(label, value=value)
            field.props("outlined autogrow dir=auto autofocus input-style='max-height: 50vh'")
        else:
            field = ui.input(label, value=value).props("outlined autofocus maxlength=200 dir=auto")
            field.on("keydown.enter", lambda: dialog.submit(field.value), args=[])
        field.classes("ef-full")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
            save.bind_enabled_from(field, "value", lambda text: bool((text or "").strip()))
    text: str | None = await dialog
    dialog.delete()
    return text if text and text.strip() else None


async def confirm(question: str, explanation: str, action: str) -> bool:
    """Return True if the user confirms an action that cannot be undone."""
    with titled_dialog(question) as dialog:
        ui.label(explanation).classes("ef-wrap").props("dir=auto")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat autofocus")
            sure = ui.button(action, on_click=lambda: dialog.submit(action))
            sure.props("unelevated color=negative")
    answer: str | None = await dialog
    dialog.delete()
    return answer == action
