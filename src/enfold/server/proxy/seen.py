"""What a request is seen to be: what came, what is known of it, and what goes out for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Literal, TypeAlias

from enfold.budget import Decision
from enfold.engine.recognition import History, Known
from enfold.llm.calls import Connection
from enfold.server.proxy import marks
from enfold.server.proxy.assembly import Piece
from enfold.server.proxy.bodies import Body
from enfold.server.proxy.chains import AtProvider, has_a_view
from enfold.server.proxy.prefixes import Prefix
from enfold.server.proxy.recall.turn import Recall
from enfold.store.records import Snapshot

What: TypeAlias = Literal["keep", "reused", "compressed"]


def _unknown() -> None:
    """No key."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the proxy: whose, for which model, and with which body."""

    body: Body
    model: str
    """As provider:model."""
    namespace: str = ""
    session: str | None = None
    """The name that the client gave it. None: it is recognised."""
    provider_has: AtProvider | None = None
    """What need not be sent, as long as nothing has to change."""
    prefix: Prefix | None = field(default=None, repr=False)
    """What is known of how its body begins."""
    may_recall: bool = True
    """Whether its reply can be joined from several."""
    connection: Callable[[], Connection | None] = field(default=_unknown, repr=False)
    """How its model is reached with the client's own key, if that has to be known."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send, and what is to be said of it."""

    raw: bytes
    what: What
    tokens_before: int
    tokens_after: int
    session: str | None
    warnings: tuple[str, ...] = ()
    seen: Seen | None = field(default=None, repr=False)
    """The request that it stands for."""
    recall: Recall | None = None
    """Where the model may recall: how that is done."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it stands: what is known of it, and what would be sent."""

    asked: Asked
    lead: Sequence[bytes]
    """System messages before the history. They often say the date, and are never folded."""
    sent: Sequence[bytes]
    history: History
    name: str | None
    known: Known
    pieces: tuple[Piece, ...]
    tokens_before: int
    """Of all that came."""
    decision: Decision
    body: Body
    """As it came, or with one tool more."""
    instead: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    """What was really said, in place of messages that were sent."""
    recalling: Callable[..., Recall] | None = None
    """Where the model may recall: how, once it is known how the request is sent again."""

    @property
    def as_is(self) -> What:
        """What is said of it where nothing new is folded."""
        return "keep" if self.known.snapshot is None else "reused"

    def outgoing(self, what: What, *warnings: str) -> Outgoing:
        """The request as it stands, sent."""
        total = self.decision.load.total
        raw, before = self.body.raw, self.tokens_before
        out = Outgoing(raw, what, before, total, self.name, warnings, self)
        if self.known.snapshot is not None:
            view = (*self.lead, *self._view(self.known.snapshot))
            recall = self.recalling and self.recalling(resend=partial(_resend, self.body, view))
            return replace(out, raw=self.body.with_messages(view), recall=recall)
        if has_a_view(self.asked.provider_has):
            return replace(out, raw=self.body.with_messages(self.body.messages))
        return out

    def _view(self, snapshot: Snapshot) -> list[bytes]:
        cutoff = snapshot.cutoff
        covered = 0 if cutoff is None else self.history.ids.index(cutoff) + 1
        view = marks.set_again(
            self.asked.body,
            lead=self.lead,
            covered=covered,
            sent=self.sent,
            view=[piece.raw for piece in self.pieces],
        )
        stable = len(view) - (len(self.sent) - covered)
        said = [self.instead.get(at, (raw,)) for at, raw in enumerate(view[stable:], start=covered)]
        return [*view[:stable], *chain.from_iterable(said)]


def _resend(body: Body, view: tuple[bytes, ...], more: Sequence[bytes]) -> bytes:
    return body.with_messages((*view, *more))
