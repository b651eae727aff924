"""The full history: everything that was said on a branch, in pages, to be searched.

It is not what the model is sent, and says so. Every message says whether the model is sent it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from nicegui import ui

from enfold.engine import Session
from enfold.engine.changes import MessagePlaces, Standing, read_message_places
from enfold.engine.state import message_of
from enfold.records import Branch, Hit, StoredMessage
from enfold.store import tree
from enfold.ui import figures, message_text
from enfold.ui.frame import frame
from enfold.ui.markdown import found_in, markup
from enfold.ui.widgets import Tone, age_label, age_of_record, badge, heading, number_of
from enfold.ui.window import Window, path_of

PAGE = 50
"""Messages on a page."""
_MOST_HITS = 50

_STANDINGS: Mapping[Standing, tuple[str, Tone, str]] = {
    "shown": ("in context", "good", "The model is sent it as it was said."),
    "shortened": ("shortened", "warm", "The model is sent it shortened."),
    "folded": ("folded", "plain", "The model is sent a summary in its place."),
}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What the address asks for."""

    tip: str | None = None
    """The branch; None is the one that the session is on."""
    page: int | None = None
    """The first is 1. None: the last, or the one with the message."""
    message: int | None = None
    """The place of a message to go to; the first is 1."""
    query: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> HistoryQuery:
        """From an address; what is no number there is not asked for."""
        return cls(
            given.get("branch") or None, _number(given.get("page")), _number(given.get("m")),
            given.get("q", ""),
        )  # fmt: skip

    def page_of(self, depth: int) -> int:
        """The page to show of so many messages."""
        last = max(1, -(-depth // PAGE))
        wanted = -(-self.message // PAGE) if self.message else self.page
        return min(last, max(1, last if wanted is None else wanted))

    def address(self, session: str, **other: str | int | None) -> str:
        """Where the same is shown with other things asked for."""
        given = {"branch": self.tip, "q": self.query, **other}
        asked = urlencode({name: value for name, value in given.items() if value})
        return f"{path_of(session, 'history')}{f'?{asked}' if asked else ''}"


async def history(window: Window, session: str) -> None:
    """The page of a session's full history."""
    found = await window.session(session)
    asked = HistoryQuery.read(ui.context.client.request.query_params)
    here = found.at(asked.tip)
    branches = await found.branches()
    current = await _branch(here, branches)
    async with frame(window, "Full history", session=session):
        _warning(session, await window.title(found))
        if current is None:
            with ui.element("div").classes("ef-empty"):
                ui.label("Nothing was said here yet.")
            return
        _search(session, asked)
        if len(branches) > 1:
            _branches(session, asked, branches, current)
        if asked.query:
            await _hits(here, asked)
        await _page(window, here, asked, current.depth)


def _warning(session: str, title: str) -> None:
    with ui.element("section").classes("ef-past").props('aria-label="What this is"'):
        ui.icon("history").classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow"):
            ui.label("Full history, not the active context").classes("ef-notice-title")
            ui.label(title).classes("ef-wrap").props("dir=auto")
            ui.label(
                "Everything as it was said. What is folded is not sent to the model any more."
            ).classes("ef-soft ef-small")
        ui.link("Back to the conversation", path_of(session))


def _search(session: str, asked: HistoryQuery) -> None:
    with ui.element("form").classes("ef-row").props("role=search"):
        words = ui.input("Search the full history", value=asked.query)
        words.props("outlined dense clearable type=search dir=auto").classes("ef-grow")
        button = ui.button("Search", icon="search").props("unelevated color=primary")

    def look() -> None:
        ui.navigate.to(asked.address(session, q=(words.value or "").strip()))

    words.on("keydown.enter.prevent", look)
    button.props("type=button").on_click(look)


def _branches(
    session: str, asked: HistoryQuery, branches: Sequence[Branch], current: Branch
) -> None:
    names = {
        branch.tip: f"Branch {number}: {number_of(branch.depth, 'message')}"
        for number, branch in enumerate(branches, 1)
    }
    names.setdefault(current.tip, f"Up to message {current.depth:,}")
    choice = ui.select(names, value=current.tip, label="Branch").props("outlined dense")
    choice.classes("ef-full")
    choice.on_value_change(
        lambda event: ui.navigate.to(asked.address(session, branch=event.value, m=None))
    )


async def _hits(session: Session, asked: HistoryQuery) -> None:
    hits = await session.search(asked.query, limit=_MOST_HITS, on_branch=True)
    with ui.element("section").classes("ef-stack-tight").props('aria-label="What was found"'):
        many = f"the newest {len(hits)}" if len(hits) == _MOST_HITS else f"{len(hits)}"
        words = f"Found in {many} of the messages" if hits else "Nothing was found."
        heading(words, 3).props("aria-live=polite")
        for hit in hits:
            _hit(session.id, hit, asked)


def _hit(session: str, hit: Hit, asked: HistoryQuery) -> None:
    address = f"{asked.address(session, m=hit.depth)}#m{hit.depth}"
    with ui.link(target=address).classes("ef-hit"):
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(f"#{hit.depth:,} {message_text.ROLES.get(hit.role, hit.role)}")
            ui.label(age_of_record(hit))
        shown = markup(hit.snippet, found_in(hit.snippet, asked.query))
        ui.html(shown, sanitize=False).classes("ef-snippet ef-small").props("dir=auto")


async def _page(window: Window, session: Session, asked: HistoryQuery, depth: int) -> None:
    page = asked.page_of(depth)
    first = (page - 1) * PAGE + 1
    store = window.engine.store
    rows = await store.read(tree.between, session.key, session.tip, first, first + PAGE - 1)
    placing = await store.read(
        read_message_places, session.key, window.engine.static_settings, session.tip
    )
    # What is slow is done elsewhere first, and at hand when the page is drawn.
    await asyncio.to_thread(_look_ahead, rows, asked.query)
    _pages(session.id, asked, page, depth)
    with ui.element("section").classes("ef-stack").props('aria-label="Messages"'):
        for row in rows:
            _message(session.id, row, placing, asked)
    _pages(session.id, asked, page, depth)
    if asked.message is not None:
        ui.run_javascript(f"document.getElementById('m{asked.message}')?.scrollIntoView()")


def _look_ahead(rows: Sequence[StoredMessage], query: str) -> None:
    for row in rows:
        for section in message_text.sections(message_of(row)):
            found_in(section.text, query)


def _pages(session: str, asked: HistoryQuery, page: int, depth: int) -> None:
    last = max(1, -(-depth // PAGE))
    first = (page - 1) * PAGE + 1
    with ui.element("nav").classes("ef-row").props('aria-label="Pages of the history"'):
        ui.label(f"Messages {first:,} to {min(depth, first + PAGE - 1):,} of {depth:,}").classes(
            "ef-soft ef-small ef-grow"
        )
        if last > 1:
            turn = ui.pagination(1, last, value=page, direction_links=True)
            turn.props("max-pages=4 boundary-links :boundary-numbers=false :ellipses=false")
            turn.on_value_change(
                lambda event: ui.navigate.to(asked.address(session, page=event.value))
            )


def _standing(session: str, placing: MessagePlaces, standing: Standing) -> None:
    """Whether the model is sent it; what it is sent in its place is one step away."""
    name, tone, meaning = _STANDINGS[standing]
    if standing == "shown":
        badge(name, tone).tooltip(meaning)
        return
    with ui.link(target=path_of(session, f"changes/{placing.snapshot}")).tooltip(meaning):
        badge(name, tone)


def _message(session: str, row: StoredMessage, placing: MessagePlaces, asked: HistoryQuery) -> None:
    standing = placing.standing(row.depth)
    article = ui.element("article").classes(f"ef-past-message ef-past-message-{standing}")
    article.props(f"id=m{row.depth}")
    if row.depth == asked.message:
        article.classes("ef-past-message-target")
    with article:
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(f"#{row.depth:,} {message_text.ROLES.get(row.role, row.role)}")
            _standing(session, placing, standing)
            age_label(row)
            figures.count(row.tokens, "tokens")
        message_text.show(message_of(row), query=asked.query)


async def _branch(session: Session, branches: Sequence[Branch]) -> Branch | None:
    """The branch that is shown; None where nothing was said."""
    last = await session.history(limit=1)
    if not last:
        return None
    row = last[0]
    known = next((branch for branch in branches if branch.tip == row.id), None)
    return known or Branch(row.id, row.depth, row.path_tokens, row.created_at)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004
