"""Items: what of a text must be kept exactly, by class.

A text is read in two ways. Cut at blanks, quotes and brackets it falls into chunks, most of which
are words; each distinct one is looked at once. What consists of several words (a quantity, a day,
a person's name, a command) is looked for in the lines, of which each distinct one is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from enfold.messages import Message
from enfold.receipt.chunks import in_chunk
from enfold.receipt.lines import Lines, commands, in_lines
from enfold.receipt.patterns import CHUNK, CLASSES, COLOUR, Class
from enfold.receipt.secrets import Secrets
from enfold.receipt.texts import commands_called, texts

__all__ = ["CLASSES", "Class", "Items", "extract", "items_of"]

Items: TypeAlias = dict[Class, dict[str, None]]
"""Distinct items of each class, in the order in which they come up."""


def extract(text: str) -> Items:
    """The distinct exact items of a text. Keys, tokens and passwords are none."""
    found: Items = {name: {} for name in CLASSES}
    plain = COLOUR.sub("\x1b", text) if "\x1b" in text else text
    distinct = "\n".join(dict.fromkeys(plain.split("\n")))
    chunks = dict.fromkeys(CHUNK.findall(distinct))
    lines = Lines(distinct, chunks.keys())
    secrets = Secrets(lines)
    for chunk in chunks:
        for kind, item in in_chunk(chunk):
            if not secrets.hold(item):
                found[kind][item] = None
    for kind, item in in_lines(lines):
        if not secrets.hold(item):
            found[kind][item] = None
    return found


def items_of(messages: Sequence[Message]) -> Items:
    """The distinct exact items of what messages say."""
    called = "\n".join(f"$ {line}" for line in commands(commands_called(messages)))
    return extract("\n".join((*texts(messages), called)))
