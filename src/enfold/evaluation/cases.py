"""Cases: conversations to measure on, each with questions whose evidence is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias

from enfold.messages import Conversation, Message

Half: TypeAlias = Literal["tuning", "reporting"]
HALVES: tuple[Half, Half] = ("tuning", "reporting")


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a conversation."""

    question: str
    answer: str | None = None
    """What a right answer says. None where nobody wrote it down."""
    evidence: tuple[int, ...] = ()
    """The indexes of the messages that answer it. Empty where they are not known."""
    category: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and its questions."""

    id: str
    conversation: Conversation
    probes: tuple[Probe, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """Of the conversation."""
        return self.conversation.messages


def halves(ids: Iterable[str]) -> dict[str, Half]:
    """Which half each case belongs to: every other one, in the order of a hash of their ids.

    So figures can be found on one half and reported on the other, and nobody chose which.
    """
    ordered: Sequence[str] = sorted(set(ids), key=lambda id: sha256(id.encode()).hexdigest())
    return {id: HALVES[place % 2] for place, id in enumerate(ordered)}
