"""Recognition: which session a history belongs to that a client sends whole, and its snapshot.

A history is recognised by its own beginning: its session is named after everything up to the first
reply, since a greeting that two people share does not make theirs one conversation, and a reply
that they share does. Everything is read at one moment, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from enfold import records
from enfold.budget import Policy
from enfold.engine.state import SettingsLevel, effective_settings, model_of, policy_of, threshold_of
from enfold.identity import chain, content_hash
from enfold.messages import Message, Role
from enfold.modelconfig import ModelConfig
from enfold.settings import Settings
from enfold.store import responses, sessions, snapshots, tree
from enfold.store import snapshots as views
from enfold.store.database import Database

BY_CUTOFF = {"share_across_branches": True}
"""A client may send another branch at any time: a summary serves every branch its cutoff is on."""


@dataclass(frozen=True)
class ClientHistory:
    """What a client sent, as far as recognising it needs."""

    roles: tuple[Role, ...]
    contents: tuple[str, ...]
    """The content hashes."""
    known: tuple[str, ...] = ()
    """The identities of the first messages, where they are known already."""

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The identities; a long history is hashed once for all that ask."""
        parent = self.known[-1] if self.known else None
        return (*self.known, *chain(self.contents[len(self.known) :], parent))

    def followed_by(self, messages: Iterable[Message]) -> ClientHistory:
        """What it will be once these were said too."""
        said = tuple(messages)
        roles = (*self.roles, *(message.role for message in said))
        return ClientHistory(roles, (*self.contents, *map(content_hash, said)))

    def name(self) -> str | None:
        """The session's name; None before the first reply, when there is nothing to go by."""
        if "assistant" not in self.roles:
            return None
        return f"c-{self.ids[self.roles.index('assistant')]}"


@dataclass(frozen=True, slots=True)
class RecognisedHistory:
    """What the store has of a history."""

    settings: Settings
    model: ModelConfig | None
    policy: Policy
    session: records.SessionRecord | None = None
    messages: int = 0
    """So many of them are recorded, from the first on."""
    tip: str | None = None
    """The last of these."""
    snapshot: records.Snapshot | None = None
    shown: tuple[records.ViewRow, ...] = ()
    """What the snapshot shows."""
    exchanges: tuple[records.Exchange, ...] = ()
    """What was really said while the snapshot applied, where the client saw less."""
    is_diverging: bool = False
    """The last two summaries of the session are on branches that were left again."""


def recognise_history(
    db: Database,
    namespace: str,
    name: str | None,
    history: ClientHistory,
    model_id: str,
    static_settings: Sequence[SettingsLevel],
) -> RecognisedHistory:
    """What the store has of the history in the session of that name."""
    session = sessions.find(db, namespace, name) if name is not None else None
    settings, fields, _, _ = effective_settings(db, session, BY_CUTOFF, static_settings)
    model = model_of(db, model_id)
    threshold = threshold_of(fields, model, settings)
    if session is None:
        return RecognisedHistory(settings, model, policy_of(settings, threshold))
    found = tree.recognise(db, history.ids, session=session.key)
    if found.tip is None:
        return RecognisedHistory(settings, model, policy_of(settings, threshold), session)
    bottom = tree.tip_node(db, session.key, found.tip)
    snapshot = snapshots.applicable_at(db, session.key, bottom, share_across_branches=True)
    undo = snapshots.last_undo(db, session.key, found.tip)
    suspended = undo is not None and "user" not in history.roles[undo.depth :]
    return RecognisedHistory(
        settings,
        model,
        policy_of(settings, threshold, suspended=suspended),
        session,
        found.count,
        found.tip,
        snapshot,
        tuple(views.entries(db, snapshot)) if snapshot is not None else (),
        responses.exchanges_under(db, session.key, snapshot.id) if snapshot is not None else (),
        snapshot is None and _is_diverging(db, session.key),
    )


def _is_diverging(db: Database, session: records.SessionKey) -> bool:
    """Whether the last summary was made on a branch that the one before it is not on.

    Asked for a branch that neither is on: that would be the third in a row.
    """
    last = snapshots.of_kind(db, session, limit=2)
    match [each.cutoff for each in last if not each.undone]:
        case [str(after), str(before)]:
            newest, older = tree.require(db, session, after), tree.require(db, session, before)
        case _:
            return False
    return newest.depth < older.depth or tree.ancestor(db, newest, older.depth).key != older.key
