"""Sequence: a request divided into pieces that a summarizer can read one after the other.

The summary of one piece is the previous summary of the next. Pieces end at legal cut points, and
every message is in one of them; a text that alone is more than a piece is spread over several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from enfold.history import cut_points
from enfold.messages import Message, Text
from enfold.summaries.request import SummaryRequest
from enfold.summaries.transcript import transcript
from enfold.tokens import get

_ROOM_FOR_INSTRUCTIONS = 1_500
_SMALLEST_PIECE = 1_000
_CHARACTERS_PER_TOKEN = 2
"""On the safe side: a slice of so many characters per token is within its piece in any language."""


def pieces(request: SummaryRequest, max_input: int | None) -> Iterator[tuple[Message, ...]]:
    """The request's messages, in runs that fit the summarizer's input. None is no limit."""
    if max_input is None:
        yield request.messages
        return
    count = get(request.tokenizer).count_many
    room = room_for_messages(request, max_input)
    messages = tuple(part for message in request.messages for part in _slices(message, room))
    sizes = count([transcript((message,)) for message in messages])
    for first, last in runs(messages, sizes, room):
        yield messages[first:last]


def runs(messages: Sequence[Message], sizes: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Where each run of messages that fits begins and ends; what cannot be divided is one run."""
    start = size = 0
    points = (*cut_points(messages), len(messages))
    for first, last in pairwise(points):
        unit = sum(sizes[first:last])
        if size and size + unit > room:
            yield start, first
            start, size = first, 0
        size += unit
    yield start, len(messages)


def room_for_messages(request: SummaryRequest, max_input: int) -> int:
    """How many tokens of messages one piece can hold, beside all that comes with it."""
    count = get(request.tokenizer).count_many
    taken = sum(count([transcript(request.recent), request.previous or ""]))
    room = max_input - request.max_tokens - taken - _ROOM_FOR_INSTRUCTIONS
    return max(_SMALLEST_PIECE, room - request.max_tokens)


def _slices(message: Message, room: int) -> Iterator[Message]:
    """The message itself, or its long texts spread over several messages of the same speaker."""
    length = room * _CHARACTERS_PER_TOKEN
    parts = [
        replace(part, text=part.text[at : at + length])
        for part in message.parts
        if isinstance(part, Text)
        for at in range(0, max(1, len(part.text)), length)
    ]
    if all(len(part.text) <= length for part in message.parts if isinstance(part, Text)):
        yield message
        return
    others = tuple(part for part in message.parts if not isinstance(part, Text))
    yield replace(message, parts=(parts[0], *others))
    for part in parts[1:]:
        yield replace(message, parts=(part,))
