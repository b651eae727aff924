"""Markdown: messages are rendered, and nothing in them is executed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.ui.markdown import render, styles

OURS = re.compile(
    r"</?(?:a|blockquote|br|code|div|em|h[1-6]|hr|li|ol|p|pre|s|span|strong|table|tbody|td|th|thead"
    r"|tr|ul)(?: (?:class|href|title|start|style)=\"[^\"<>]*\")*(?: /)?>"
)


def test_markdown_is_rendered() -> None:
    assert render("**now** and `then`") == "<p><strong>now</strong> and <code>then</code></p>\n"
    assert "<td>1</td>" in render("|a|\n|-|\n|1|")


def test_code_has_its_colours() -> None:
    shown = render("```python\nprint('<b>')\n```")
    assert '<span class="nb">print</span>' in shown
    assert "&lt;b&gt;" in shown
    assert ".ef-markdown pre .nb" in styles()
    assert '<code class="language-nonesuch">' in render("```nonesuch\nx\n```")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "<a href='javascript:alert(1)'>x</a>",
        "<!-- --><svg onload=alert(1)>",
        "[x](vbscript:x)",
        '[x](http://a "\\" onmouseover=alert(1)")',
        "```<script>\nx\n```",
    ],
)
def test_markup_is_text(text: str) -> None:
    left = OURS.sub("", render(text))
    assert "<" not in left
    assert not re.search(r'href="(?!https?:)', render(text))


def test_a_picture_is_named_and_not_fetched() -> None:
    shown = render("![the pier](http://elsewhere.example/pier.png)")
    assert "picture: the pier" in shown
    assert "elsewhere" not in shown


@given(st.text(alphabet=st.sampled_from("<>&\"'`*_[]()!#|- \nax:=/\\{}\0\ud800"), max_size=80))
def test_nothing_but_our_own_markup_comes_out(text: str) -> None:
    assert "<" not in OURS.sub("", render(text))
