"""Decisions: what users said in their own words, and the sentences in which something was settled.

Their items weigh more: a summary that keeps none of them is no use, however much can be restored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from enfold.messages import Message, Text

OWN_WORDS = 2_000
"""Characters. What is longer was not typed but put in: a file, a log, a tool's answer."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' full stops
_WORDS = (
    *(
        "decided",
        "decision",
        "agreed",
        "approved",
        "settled on",
        "we chose",
        "i chose",
        "opted for",
    ),
    *("go with", "going with", "went with", "let's use", "let's keep", "we'll use", "we will use"),
    *("the plan is", "instead of", "must not", "must be", "final answer"),
    *("decidimos", "decidido", "decisión", "acordamos", "elegimos", "en lugar de"),
    *("décidé", "décision", "convenu", "on part sur", "au lieu de"),
    *("entschieden", "beschlossen", "entscheidung", "vereinbart", "statt dessen", "wir nehmen"),
    *("decisão", "combinamos", "escolhemos", "em vez de"),
    *("решили", "решено", "договорились", "вместо"),
    *("قررنا", "القرار", "اتفقنا"),
    *(
        "决定",
        "決定",
        "确定用",
        "就用",
        "采用",
        "敲定",
        "商定",
        "改为",
        "改成",
        "にします",
        "に決め",
    ),
    *("결정", "하기로"),
)
"""By which people mark that something is settled."""


def weighty(messages: Iterable[Message]) -> Iterator[str]:
    """What users said in their own words, and the sentences in which a model settled something."""
    for message in messages:
        for part in message.parts:
            if not isinstance(part, Text):
                continue
            if message.role == "user" and len(part.text) <= OWN_WORDS:
                yield part.text
            elif message.role == "assistant" and _decides(part.text):
                yield from _decisions(part.text)


def _decisions(text: str) -> Iterator[str]:
    for line in filter(_decides, text.split("\n")):
        yield from filter(_decides, _SENTENCE_END.split(line))


def _decides(text: str) -> bool:
    lower = text.lower().replace("’", "'")
    return any(word in lower for word in _WORDS)
