"""Markdown: what a message says, as HTML that cannot do anything.

Text of people and models is data. Markup in it is shown as the text it is; a link has an address
that a browser may open, or is none; a picture is named and not fetched, because to fetch it would
tell somebody elsewhere that, and when, a conversation is read.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from nicegui import ui
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from enfold.store.words import storable

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
