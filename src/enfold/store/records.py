"""The values that go into the store and come out of it.

What is given to be written is a draft; what was read is a record. Times are milliseconds since
1970, as the database's clock tells them. Messages, snapshots and edits are known by their `id`;
`key` is the database's own number of a record and means nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NewType, TypeAlias
from uuid import uuid4

from enfold.errors import StoreError
from enfold.jsontext import dump_text, loads

SessionKey = NewType("SessionKey", int)
"""What the functions of the store know a session by; `Session.key`."""

SnapshotKind: TypeAlias = Literal["title", "summary", "memory"]


def new_id() -> str:
    """An id that no other record has."""
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class Session:
    """A tree of messages, and the tip of the branch it is on."""

    key: SessionKey
    namespace: str
    id: str
    title: str
    profile: str | None
    model: str | None
    tip: str | None
    """The id of the last message of the current branch. None while there is none."""
    depth: int
    """How many messages the current branch has."""
    tokens: int
    """The sum of their counts, each as counted when it was stored."""
    settings: Mapping[str, Any]
    blocked: Mapping[str, Any] | None
    """Why the session waits. None while it does not."""
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class SessionMark:
    """Where a page of sessions ended, which are listed by when they were last used."""

    updated_at: int
    key: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A message to be written."""

    role: str
    dialect: str
    body: bytes = field(repr=False)
    """The message as UTF-8 JSON in its dialect, byte for byte as it came."""
    content_hash: str
    tokens: int
    tokenizer: str
    estimate: int = 0
    """Tokens of what has no exact count."""
    search_text: str = field(default="", repr=False)
    client_id: str | None = None
    """What the client calls the message."""
    name: str | None = None
    created_at: int | None = None
    """When it was said. Now, if not given."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a session."""

    key: int
    session: SessionKey
    id: str
    """Its identity."""
    parent: str | None
    depth: int
    """Its place on its branch; the first is 1."""
    role: str
    dialect: str
    body: bytes = field(repr=False)
    content_hash: str
    digest: str
    tokens: int
    tokenizer: str
    estimate: int
    input_tokens: int | None
    """As the provider reported; for monitoring only."""
    output_tokens: int | None
    client_id: str | None
    name: str | None
    created_at: int
    path_tokens: int
    """The counts of all messages from the first to this one."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A path from the root to a message that nothing follows."""

    tip: str
    depth: int
    tokens: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Recognition:
    """How much of a history that came again is known, and where."""

    known: int
    """So many messages from the first on."""
    session: SessionKey | None = None
    tip: str | None = None
    """The last known message."""


@dataclass(frozen=True, slots=True)
class KeptRange:
    """A manifest's entry: messages that are shown as they are, from one to another."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class EditReference:
    """A manifest's entry: an edit shown in its message's place."""

    edit: str


@dataclass(frozen=True, slots=True)
class SummaryPlace:
    """A manifest's entry: where the summary stands; `index` says which one if there are several."""

    index: int | None = None


ManifestEntry: TypeAlias = KeptRange | EditReference | SummaryPlace


@dataclass(frozen=True, slots=True)
class EditDraft:
    """What a message is shown as after a strategy has made it smaller."""

    message: str
    body: bytes = field(repr=False)
    tokens: int
    tokenizer: str
    estimate: int = 0
    ledger: Mapping[str, Any] | None = field(default=None, repr=False)
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Edit:
    """A stored edit, with its message's role and dialect, which it shares."""

    id: str
    snapshot: str
    """The id of the snapshot it was made for; later ones may show it too."""
    message: str
    depth: int
    role: str
    dialect: str
    body: bytes = field(repr=False)
    digest: str
    tokens: int
    tokenizer: str
    estimate: int
    ledger: Mapping[str, Any] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class SnapshotDraft:
    """A compression to be recorded."""

    content: Mapping[str, Any] = field(repr=False)
    """`summaryText`, `messageRange` with `firstMessageId` and `lastMessageId`, and what else."""
    kind: SnapshotKind = "summary"
    cutoff: str | None = None
    """The last message that it covers; those after it are shown as they are."""
    parent: str | None = None
    """The tip of the branch when it was made."""
    manifest: tuple[ManifestEntry, ...] = ()
    """What is shown of the messages up to the cutoff, in order."""
    token_count: int | None = None
    tokenizer: str | None = None
    previous: str | None = None
    """The id of the snapshot that applied before."""
    strategy: str = ""
    author: str = ""
    """Who wrote the summary: a model, a person, or the built-in summarizer."""
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored compression. It is never changed; undoing it is a record of its own."""

    key: int
    session: SessionKey
    id: str
    kind: SnapshotKind
    content: Mapping[str, Any] = field(repr=False)
    cutoff: str | None
    cutoff_depth: int | None
    parent: str | None
    parent_depth: int | None
    manifest: tuple[ManifestEntry, ...] = field(repr=False)
    token_count: int | None
    tokenizer: str | None
    previous: str | None
    strategy: str
    author: str
    undone: bool
    created_at: int
    updated_at: int

    @property
    def text(self) -> str | None:
        """The summary. None if there is none, or no longer."""
        return self.content.get("summaryText")


@dataclass(frozen=True, slots=True)
class Undo:
    """A snapshot was undone, at a tip."""

    snapshot: str
    message: str | None
    depth: int
    created_at: int


ViewRow: TypeAlias = StoredMessage | Edit | SummaryPlace


@dataclass(frozen=True, slots=True)
class ViewRows:
    """What a view is made of, read at one moment."""

    session: Session
    tip: str | None
    depth: int
    snapshot: Snapshot | None
    shown: tuple[ViewRow, ...]
    """The snapshot's manifest with its messages and edits in place of their ids."""
    after: tuple[StoredMessage, ...]
    """The messages after the snapshot's cutoff; all of the branch if there is no snapshot."""


@dataclass(frozen=True, slots=True)
class ModelConfigRow:
    """A model's limits and defaults."""

    id: str
    """`provider:model`."""
    max_input_tokens: int
    max_output_tokens: int
    default_compression_threshold: float
    """A fraction, up to 1."""
    recommended_retention_tokens: int
    tokenizer: str
    correction: float
    source: str
    created_at: int = 0
    last_updated: int = 0


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An API profile. Says where the key is to be found, never the key."""

    name: str
    fields: Mapping[str, Any]
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """What one call of a model used. None is unknown, not zero."""

    kind: str
    """What the call was for: a reply, a summary."""
    profile: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the input tokens, those read from the provider's cache."""
    output_tokens: int | None = None
    cost: float | None = None
    """In US dollars."""
    message_id: str | None = None
    snapshot_id: str | None = None
    session: SessionKey | None = None
    created_at: int | None = None
    """Now, if not given."""
    namespace: str | None = None
    """Whose it is, where it belongs to no session."""
    session_name: str | None = None
    """What its session will be called, where there is none yet."""


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """What the calls of one model used together."""

    kind: str
    profile: str | None
    model: str | None
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    """Of the calls whose cost is known."""
    unknown_costs: int
    """How many calls have no known cost."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """Work to be done for a message."""

    id: str
    """The same at every attempt: a receiver that has seen it has seen the message."""
    session: SessionKey
    message: str
    kind: str
    attempts: int
    created_at: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was really said after a message, where the client saw less of it."""

    snapshot: str
    """The one that applied. While it does, the exchange is sent in place of what the client saw."""
    message: str
    """The identity of the message that it follows."""
    shown: str
    """A hash of what the client saw."""
    dialect: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do something alone, until a time."""

    name: str
    holder: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found."""

    key: int
    session: SessionKey
    session_id: str
    message: str
    depth: int
    role: str
    created_at: int
    snippet: str = field(repr=False)
    """What was found, with some text around it."""
    snippet_start: int
    """Where in the message's searchable text the snippet begins, in characters."""
    start: int
    """Where in the message's searchable text the first match is."""
    end: int
    rank: float | None = None
    """Greater is better. None where the newest come first."""


def manifest_to_json(manifest: tuple[ManifestEntry, ...]) -> str:
    """The manifest as it is stored."""
    return dump_text([_to_json(entry) for entry in manifest])


def manifest_from_json(text: str) -> tuple[ManifestEntry, ...]:
    """The manifest that was stored."""
    return tuple(_from_json(entry) for entry in loads(text))


def _to_json(entry: ManifestEntry) -> dict[str, Any]:
    match entry:
        case KeptRange(first, last) if first == last:
            return {"message": first}
        case KeptRange(first, last):
            return {"from": first, "to": last}
        case EditReference(edit):
            return {"edit": edit}
        case SummaryPlace(index):
            return {"summary": True if index is None else index}


def _from_json(entry: Mapping[str, Any]) -> ManifestEntry:
    match entry:
        case {"message": id}:
            return KeptRange(id, id)
        case {"from": first, "to": last}:
            return KeptRange(first, last)
        case {"edit": edit}:
            return EditReference(edit)
        case {"summary": index}:
            return SummaryPlace(None if index is True else index)
    raise StoreError(f"a snapshot's manifest has an entry that is not known: {sorted(entry)}")
