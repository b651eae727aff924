"""Markdown: what a message says, as HTML that cannot do anything.

Text of people and models is data. Markup in it is shown as the text it is; a link has an address
that a browser may open, or is none; a picture is named and not fetched, because to fetch it would
tell somebody elsewhere that, and when, a conversation is read.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import lru_cache
from html import escape
from itertools import islice
from typing import Any, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from nicegui import ui
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from enfold.text.words import Phrase, Term, parts_of, phrases_of, storable, terms_of

_RENDERED = 2_000
"""Texts whose HTML is kept at hand."""
_LONGEST_CODE = 50_000
"""Characters of code that are coloured; what is longer stays plain."""


def markdown(text: str) -> ui.html:
    """The text on a page."""
    # The HTML is harmless as it is; the browser cleans it once more all the same.
    return ui.html(render(text), sanitize=True).classes("ef-markdown").props("dir=auto")


@lru_cache(maxsize=_RENDERED)
def render(text: str) -> str:
    """The text as HTML."""
    return str(_renderer().render(storable(text)))


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    options: dict[str, Any] = {"html": False, "breaks": True, "highlight": _highlighted}
    made = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    return made


def _highlighted(code: str, language: str, _attributes: str) -> str:
    """Code in colours, if its language is known; empty leaves it plain."""
    if len(code) > _LONGEST_CODE:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripall=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def styles() -> str:
    """The colours of code, light and dark, as CSS."""
    light = HtmlFormatter(nobackground=True).get_style_defs(".ef-markdown pre")
    dark = HtmlFormatter(nobackground=True, style="github-dark")
    return f"{light}\n{dark.get_style_defs('.body--dark .ef-markdown pre')}"


def _image(
    _self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: MutableMapping[str, Any],
) -> str:
    said = tokens[index].content or tokens[index].attrs.get("src", "")
    return f'<span class="ef-picture">[picture: {escape(str(said))}]</span>'


def _table_open(*_: Any) -> str:
    """A table may be wider than the page, and scrolls by itself then."""
    return '<div class="ef-table"><table>'


def _table_close(*_: Any) -> str:
    return "</table></div>"


Range: TypeAlias = tuple[int, int]
"""From one character up to another."""

_AT_HAND = 256
"""Texts of which the places are remembered: a page is looked through before it is drawn."""
_MOST = 500
"""Highlights in one text; whoever has seen so many needs no more."""


@lru_cache(maxsize=_AT_HAND)
def found_in(text: str, query: str) -> tuple[Range, ...]:
    """Every place of the query's words and phrases, in order, none overlapping another."""
    phrases = phrases_of(query)
    if not phrases:
        return ()
    terms = list(terms_of(text))
    return tuple(islice(_joined(_matches(text, terms, phrases)), _MOST))


def markup(text: str, ranges: Sequence[Range] = ()) -> str:
    """The text as HTML, with those ranges marked."""
    pieces: list[str] = []
    at = 0
    for start, end in ranges:
        pieces += (escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>")
        at = end
    # A lone half of a character's code cannot be sent to a browser.
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
    """Whether the phrase begins at that term."""
    *head, last = phrase.terms
    found = [term.text for term in terms[index : index + len(phrase.terms)]]
    if len(found) < len(phrase.terms) or found[:-1] != head:
        return False
    return found[-1].startswith(last) if phrase.prefix else found[-1] == last


def _joined(ranges: Iterator[Range]) -> Iterator[Range]:
    """Ranges that overlap as one."""
    current: Range | None = None
    for start, end in ranges:
        if current is None:
            current = (start, end)
        elif start < current[1]:
            current = (current[0], max(current[1], end))
        else:
            yield current
            current = (start, end)
    if current is not None:
        yield current
