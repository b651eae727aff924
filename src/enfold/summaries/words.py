"""The user's own words in a summary: a section that no other text can write.

Words that cannot stay as messages, because their message also answers a tool call, are quoted in
this section word for word. `take_words` reads it back from an earlier summary, so that it lasts
through any number of compressions. A heading of the same name in other text is made harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from enfold.tokens import get

HEADING = "## The user's own words, still in force"
_QUOTE = "> "
_SECTION = re.compile(
    rf"\n*^{re.escape(HEADING)}\n\n(?P<quotes>(?:^>[^\n]*\n?|^\n(?=>))+)\Z", re.MULTILINE
)
_FORGED = re.compile(
    r"^(?P<marks>\s*#+)(?P<rest>\s*The user.s own words)", re.MULTILINE | re.IGNORECASE
)


def add_words(summary: str, words: Iterable[str]) -> str:
    """Return the summary with the words quoted at its end, each once."""
    body = _FORGED.sub(r"(quoted)\g<rest>", summary.strip())
    quotes = [_quote(text) for text in dict.fromkeys(words) if text.strip()]
    return "\n\n".join((body, HEADING, *quotes)) if quotes else body


def take_words(summary: str) -> tuple[str, tuple[str, ...]]:
    """Return a summary without its quoted words, and the words."""
    found = _SECTION.search(summary)
    if found is None:
        return summary, ()
    quotes = re.split(r"\n\n(?=> )", found["quotes"].strip())
    return summary[: found.start()], tuple(map(_unquote, quotes))


def words_tokens(words: Iterable[str], tokenizer: str) -> int:
    """Return the tokens that quoting the words adds to a summary, at most."""
    quoted = add_words("", words)
    return get(tokenizer).count(quoted) + 1 if quoted else 0


def _quote(text: str) -> str:
    return "\n".join(f"{_QUOTE}{line}".rstrip() for line in text.strip().splitlines())


def _unquote(text: str) -> str:
    return "\n".join(line[1:].removeprefix(" ") for line in text.splitlines())
