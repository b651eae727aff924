"""Overflows: how providers and local servers say that a request is larger than a model's window."""

from __future__ import annotations

import re

_WORDS = re.compile(
    r"exceed_context_size|context[ _](size|length|window|limit)|(prompt|input) is too long"
    r"|too many (input )?tokens|request_too_large|number of tokens allowed|input token count",
    re.IGNORECASE,
)


def says_overflow(said: str) -> bool:
    """Whether that is said, where a provider has refused a request."""
    return _WORDS.search(said) is not None
