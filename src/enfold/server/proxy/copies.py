"""Copies: markers that a model has put into a call, where the text that they stand for was meant.

A tool would write `⟨ Content suppressed ⟩` into a file. The call is the client's to judge; it is
warned. What is known before the reply begins is said in a header. A stream has begun by then, and a
comment at its end is no way: Google's library takes one for a part of its JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.places import texts_within
from enfold.server.proxy.hearing import Heard

COPIED = "marker-in-tool-arguments"

_MARKER = re.compile(r"⟨ [^⟩\n]{1,300} ⟩")
"""All that enfold puts in place of a text looks like this."""
_SIGNS = ("⟨".encode(), b"27e8")
"""Its first character in JSON, as it is or escaped."""


def copied(heard: Heard) -> tuple[str, ...]:
    """The names of tools whose arguments have a marker in them."""
    raw = b"".join(heard.chunks)
    if _SIGNS[0] not in raw and _SIGNS[1] not in raw.lower():
        return ()
    return tuple(call.name for call in heard.reply.calls if _has_marker(call.arguments))


def _has_marker(arguments: str) -> bool:
    return any(_MARKER.search(text) for text in _texts(arguments))


def _texts(arguments: str) -> Iterator[str]:
    try:
        given: Any = loads(arguments)
    except InputError:
        yield arguments
        return
    yield from (text for _, text in texts_within(given))
