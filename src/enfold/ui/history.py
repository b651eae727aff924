"""The page of the full history: all messages of a branch, in pages, with search.

It is not the active context. Every message states if the model receives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from urllib.parse import urlencode

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session, recall
from enfold.engine.changes import MessagePlaces, MessageState
from enfold.engine.inspection import read_messages, read_placement
from enfold.engine.recall import RecallAnswer
from enfold.engine.state import message_of
from enfold.records import Branch, Hit, StoredMessage
from enfold.ui import figures, message_text
from enfold.ui.frame import frame
from enfold.ui.markdown import find_matches, markup
from enfold.ui.pins import Pins
from enfold.ui.widgets import Tone, badge, heading
from enfold.ui.window import Window, path_of

PAGE = 50
"""Messages on a page."""
_MOST_HITS = 50

_STATES: Mapping[MessageState, tuple[str, Tone, str]] = {
    "shown": ("in context", "good", "The model receives this message unchanged."),
    "shortened": ("shortened", "warm", "The model receives a shortened form."),
    "summarized": ("summarized", "plain", "The model receives a summary in its place."),
}


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """The parameters of the address."""

    tip: str | None = None
    """The branch; None is the current one."""
    page: int | None = None
    """From 1. None: the last page, or the page with the message."""
    message: int | None = None
    """The number of a message to scroll to, from 1."""
    query: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> HistoryQuery:
        """Read the parameters; a value that should be a number and is not is ignored."""
        page, message = _number(given.get("page")), _number(given.get("m"))
        return cls(given.get("branch") or None, page, message, given.get("q", "").strip())

    def page_of(self, depth: int) -> int:
        """Return the number of the page to show."""
        last = max(1, -(-depth // PAGE))
        wanted = -(-self.message // PAGE) if self.message else self.page
        return min(last, max(1, last if wanted is None else wanted))

    def address(self, session: str, **other: str | int | None) -> str:
        """Return the address with some parameters changed."""
        given = {"branch": self.tip, "q": self.query, **other}
        parameters = urlencode({name: value for name, value in given.items() if value})
        return f"{path_of(session, 'history')}{f'?{parameters}' if parameters else ''}"


async def history(window: Window, session: str) -> None:
    """Build the page of a session's full history."""
    found = await window.session(session)
    query = HistoryQuery.read(ui.context.client.request.query_params)
    here = found.at(query.tip)
    branches = await found.branches()
    current = await _branch(here, branches)
    pins = Pins(window, here)
    async with frame(window, "Full history", session=session) as framed:
        with ui.element("section").classes("ef-past").props('aria-label="About this page"'):
            ui.icon("history").classes("ef-notice-icon").props('aria-hidden="true"')
            with ui.element("div").classes("ef-grow"):
                ui.label("Full history, not the active context").classes("ef-notice-title")
                ui.label(await window.title(found)).classes("ef-wrap").props("dir=auto")
                ui.label(
                    "All messages, unchanged. The model receives a summary of the summarized ones."
                ).classes("ef-soft ef-small")
            ui.link("Back to conversation", path_of(session))
        if current is None:
            with ui.element("div").classes("ef-empty"):
                ui.label("No messages yet.")
            return
        await _search(here, query)
        if len(branches) > 1:
            _branches(session, query, branches, current)
        with framed.actions:
            pins.add_list_button()
        await _page(window, here, query, current.depth, pins)
        # Finding what stays reads the whole view: the buttons are marked after the page is shown.
        ui.timer(0.01, pins.load, once=True)


async def _search(session: Session, query: HistoryQuery) -> None:
    """Show the search field, and the results below it while a person types."""
    # The browser sends the form itself: what was typed before the page's connection to the server
    # stands may reach the server after the key that starts the search.
    form = ui.element("form").classes("ef-row").props("role=search method=get")
    form.props["action"] = path_of(session.id, "history")
    with form:
        words = ui.input("Search full history", value=query.query)
        words.props("outlined dense clearable type=search dir=auto name=q debounce=250")
        words.classes("ef-grow")
        if query.tip is not None:
            ui.element("input").props("type=hidden name=branch").props["value"] = query.tip
        ui.button("Search", icon="search").props("unelevated color=primary type=submit")
    results = ui.element("div").classes("ef-results").props("aria-live=polite")

    async def show() -> None:
        text = (words.value or "").strip()
        hits = await session.search(text, limit=_MOST_HITS, on_branch=True) if text else ()
        # If no message has all the words, they may be a question.
        # Half-typed words are no recalls, so nothing is recorded for the activity.
        answer = await recall.answer(session, text) if text and not hits else None
        if text == (words.value or "").strip():  # otherwise a later event shows its results
            results.clear()
            with results:
                if text:
                    found = answer if answer is not None and answer.fits else None
                    _results(session.id, hits, found, replace(query, query=text))

    if query.query:
        await show()
    words.on_value_change(show)


def _branches(
    session: str, query: HistoryQuery, branches: Sequence[Branch], current: Branch
) -> None:
    names = {
        branch.tip: f"Branch {place}: {number(branch.depth, 'message')}"
        for place, branch in enumerate(branches, 1)
    }
    names.setdefault(current.tip, f"Up to message {current.depth:,}")
    choice = ui.select(names, value=current.tip, label="Branch").props("outlined dense")
    choice.classes("ef-full")
    choice.on_value_change(
        lambda event: ui.navigate.to(query.address(session, branch=event.value, m=None))
    )


def _results(
    session: str, hits: Sequence[Hit], answer: RecallAnswer | None, query: HistoryQuery
) -> None:
    """Show the hits of a search, or the messages that recall finds, as a model gets them."""
    with ui.element("section").classes("ef-stack-tight").props('aria-label="Search results"'):
        if answer is not None:
            heading(f"{number(len(answer.passages), 'message')} about “{query.query}”", 3)
            for each in answer.passages:
                day = figures.date_text(date.fromisoformat(each.day)) if each.day else ""
                _result(session, each.position, each.role, day, each.text, query)
            return
        newest = "The newest " if len(hits) == _MOST_HITS else ""
        title = f"{newest}{number(len(hits), 'result')} for “{query.query}”"
        heading(title if hits else f"No results for “{query.query}”.", 3)
        for hit in hits:
            age = figures.age_text(figures.moment(hit.created_at))
            _result(session, hit.depth, hit.role, age, hit.snippet, query)


def _result(session: str, depth: int, role: str, time: str, text: str, query: HistoryQuery) -> None:
    with ui.link(target=f"{query.address(session, m=depth)}#m{depth}").classes("ef-hit"):
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(message_text.place_text(depth, role))
            if time:
                ui.label(time)
        shown = markup(text, find_matches(text, query.query))
        ui.html(shown, sanitize=False).classes("ef-snippet ef-small").props("dir=auto")


async def _page(
    window: Window, session: Session, query: HistoryQuery, depth: int, pins: Pins
) -> None:
    page = query.page_of(depth)
    first = (page - 1) * PAGE + 1
    rows = await read_messages(window.engine, session, first, first + PAGE - 1)
    places = await read_placement(window.engine, session)
    # Reading and searching are slow: a thread fills the caches before the page is drawn.
    await asyncio.to_thread(_find_in, rows, query)
    _pages(session.id, query, page, depth)
    with ui.element("section").classes("ef-stack").props('aria-label="Messages"'):
        for row in rows:
            _message(session.id, row, places, query, pins)
    _pages(session.id, query, page, depth)
    if query.message is not None:
        ui.run_javascript(f"document.getElementById('m{query.message}')?.scrollIntoView()")


def _find_in(rows: Sequence[StoredMessage], query: HistoryQuery) -> None:
    for row in rows:
        for part in message_text.sections(message_of(row)):
            find_matches(part.text, query.query)


def _pages(session: str, query: HistoryQuery, page: int, depth: int) -> None:
    last = max(1, -(-depth // PAGE))
    first = (page - 1) * PAGE + 1
    with ui.element("nav").classes("ef-row").props('aria-label="History pages"'):
        ui.label(f"Messages {first:,} to {min(depth, first + PAGE - 1):,} of {depth:,}").classes(
            "ef-soft ef-small ef-grow-line"
        )
        if last > 1:
            turn = ui.pagination(1, last, value=page, direction_links=True)
            turn.props("max-pages=4 boundary-links :boundary-numbers=false :ellipses=false")
            turn.on_value_change(
                lambda event: ui.navigate.to(query.address(session, page=event.value))
            )


def _message(
    session: str, row: StoredMessage, places: MessagePlaces, query: HistoryQuery, pins: Pins
) -> None:
    state = places.state(row.depth)
    article = ui.element("article").classes(f"ef-past-message ef-past-message-{state}")
    article.props(f"id=m{row.depth}")
    if row.depth == query.message:
        article.classes("ef-past-message-target")
    with article:
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(message_text.place_text(row.depth, row.role))
            name, tone, meaning = _STATES[state]
            if state == "shown":
                badge(name, tone).tooltip(meaning)
            else:
                changes = path_of(session, f"changes/{places.snapshot}")
                with ui.link(target=changes).tooltip(meaning):
                    badge(name, tone)
            figures.age(row.created_at)
            figures.count(row.tokens, "tokens")
            pins.add_button(row.id, row.depth)
        message_text.show_message(message_of(row), query=query.query)


async def _branch(session: Session, branches: Sequence[Branch]) -> Branch | None:
    """Return the branch that is shown; None if it has no messages."""
    last = await session.history(limit=1)
    if not last:
        return None
    row = last[0]
    listed = next((branch for branch in branches if branch.tip == row.id), None)
    return listed or Branch(row.id, row.depth, row.path_tokens, row.created_at)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None  # noqa: PLR2004
