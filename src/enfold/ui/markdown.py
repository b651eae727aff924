"""Message texts as harmless HTML: rendered Markdown, and plain text with highlighted matches.

Texts of people and models are data. Markup in them is shown as text, a link keeps only addresses
that a browser may open, and a picture is named but not loaded: loading it would tell its server
that the conversation is being read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import islice
from typing import Any, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token
from nicegui import ui
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from enfold.text.words import Phrase, Term, parts_of, phrases_of, storable, terms_of

_CACHED_TEXTS = 2_000
_CACHED_SEARCHES = 256
"""Enough for a page: its texts are searched in a thread before they are drawn."""
_LONGEST_CODE = 50_000
"""Characters; longer code is not highlighted."""
_MOST_MATCHES = 500
"""Highlighted matches in one text."""

Range: TypeAlias = tuple[int, int]
"""The start and end of a match, in characters."""


def markdown(text: str) -> ui.html:
    """Show a text as Markdown."""
    # The rendered HTML is harmless already; the browser sanitizes it as a second guard.
    return ui.html(render(text), sanitize=True).classes("ef-markdown").props("dir=auto")


@lru_cache(maxsize=_CACHED_TEXTS)
def render(text: str) -> str:
    """Return Markdown as HTML."""
    return str(_renderer().render(storable(text)))


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    options: dict[str, Any] = {"html": False, "breaks": True, "highlight": _highlight}
    made = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    # A table may be wider than the page: its container scrolls.
    made.add_render_rule("table_open", lambda *_: '<div class="ef-table"><table>')
    made.add_render_rule("table_close", lambda *_: "</table></div>")
    return made


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Return highlighted code; empty if its language is unknown."""
    if len(code) > _LONGEST_CODE:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripall=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def styles() -> str:
    """Return the CSS of highlighted code, light and dark."""
    light = HtmlFormatter(nobackground=True).get_style_defs(".ef-markdown pre")
    dark = HtmlFormatter(nobackground=True, style="github-dark")
    return f"{light}\n{dark.get_style_defs('.body--dark .ef-markdown pre')}"


def _image(_self: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    name = tokens[index].content or tokens[index].attrs.get("src", "")
    return f'<span class="ef-picture">[picture: {escape(str(name))}]</span>'


@lru_cache(maxsize=_CACHED_SEARCHES)
def find_matches(text: str, query: str) -> tuple[Range, ...]:
    """Return the places of the query's words and phrases, in order, without overlaps."""
    phrases = phrases_of(query)
    if not phrases:
        return ()
    terms = list(terms_of(text))
    return tuple(islice(_merge_overlaps(_matches(text, terms, phrases)), _MOST_MATCHES))


def markup(text: str, ranges: Sequence[Range] = ()) -> str:
    """Return plain text as HTML, with the ranges highlighted."""
    pieces: list[str] = []
    at = 0
    for start, end in ranges:
        pieces += (escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>")
        at = end
    # storable: a lone surrogate cannot be sent to a browser.
    return storable("".join((*pieces, escape(text[at:]))))


def _matches(text: str, terms: Sequence[Term], phrases: Sequence[Phrase]) -> Iterator[Range]:
    single = {phrase.terms[0] for phrase in phrases if len(phrase.terms) == 1}
    for index, term in enumerate(terms):
        lengths = [len(each.terms) for each in phrases if _begins(terms, index, each)]
        if lengths:
            yield term.start, terms[index + max(lengths) - 1].end
        elif single & parts_of(text[term.start : term.end]):
            yield term.start, term.end


def _begins(terms: Sequence[Term], index: int, phrase: Phrase) -> bool:
    """Return True if the phrase begins at a term."""
    *head, last = phrase.terms
    found = [term.text for term in terms[index : index + len(phrase.terms)]]
    if len(found) < len(phrase.terms) or found[:-1] != head:
        return False
    return found[-1].startswith(last) if phrase.prefix else found[-1] == last


def _merge_overlaps(ranges: Iterator[Range]) -> Iterator[Range]:
    current = next(ranges, None)
    if current is None:
        return
    for start, end in ranges:
        if start < current[1]:
            current = (current[0], max(current[1], end))
        else:
            yield current
            current = (start, end)
    yield current
