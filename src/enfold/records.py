"""Records: the values that go into the store and come out of it.

A draft is written; a record was read. Times are milliseconds since 1970 by the database's clock.
Messages, snapshots and edits are identified by their `id`. `key` is the database's number of a
record and has no meaning outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from hashlib import blake2b
from typing import Any, ClassVar, Literal, NamedTuple, NewType, TypeAlias
from uuid import uuid4

from enfold.amounts import CallUsage
from enfold.errors import InputError, StoreError
from enfold.jsontext import dump_text, loads
from enfold.text.words import Phrase, is_storable

_LONGEST_NAME = 256

SessionKey = NewType("SessionKey", int)
"""The database's number of a session; `SessionRecord.key`."""

POINTS_TO = "pointsTo"
"""The field of an edit's ledger with the ids of the messages that it points to."""

SnapshotKind: TypeAlias = Literal["title", "summary", "memory"]


def new_id() -> str:
    """Return a unique id for a record."""
    return uuid4().hex


KEY_NAMESPACE = "key-"
"""Prefix of the namespaces of proxy clients without an access token; a hash of the key follows."""
KEY_NAMESPACES_END = "key."
"""The first text after all of these namespaces."""
_CONVERSATION = "c-"
"""Prefix of the names of recognised conversations."""


def listing_namespace(namespace: str) -> str:
    """Return the namespace whose lists, search and figures show the sessions of a namespace.

    Clients without an access token are on the owner's machine: the owner sees their sessions.
    """
    return "" if namespace.startswith(KEY_NAMESPACE) else namespace


def conversation_name(namespace: str, message: str) -> str:
    """Return the name of a recognised conversation's session, given a message's identity.

    Names are unique where they are listed: clients with different keys may send the same messages.
    """
    if listing_namespace(namespace) != namespace:
        message = blake2b(f"{namespace} {message}".encode(), digest_size=16).hexdigest()
    return f"{_CONVERSATION}{message}"


def unlisted_conversation(name: str) -> str | None:
    """Return the identity in the name of a conversation that is not listed yet, if it has one."""
    return name.removeprefix(_CONVERSATION) if name.startswith(_CONVERSATION) else None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session: a tree of messages, and the tip of its current branch."""

    JSON_FIELDS: ClassVar = (
        "id",
        "title",
        "model",
        "client",
        "client_session",
        "profile",
        "tip",
        "messages=depth",
        "tokens",
        "settings",
        "blocked=blocked_reason",
        "importing",
        "created_at",
        "updated_at",
    )
    key: SessionKey
    namespace: str
    id: str
    """The session's name, unique in its namespace."""
    title: str
    """A short text for people."""
    profile: str | None
    """The profile that answers and condenses. None for none."""
    model: str | None
    """`provider:model`. None for the model of the settings."""
    client: str | None
    """The program that sent the session's requests through the proxy. None for other sessions."""
    client_session: str | None
    """The session id that the program sends. None if it sends none."""
    tip: str | None
    """The id of the last message of the current branch. None while the branch is empty."""
    depth: int
    """The number of messages on the current branch."""
    tokens: int
    """The sum of their counts, each as counted when it was stored."""
    settings: Mapping[str, Any]
    """The settings of this session."""
    blocked: Mapping[str, Any] | None
    """Why the session is blocked. None while it is not."""
    importing: int | None
    """The number of messages of an import that was interrupted. None if there is none."""
    created_at: int
    """Milliseconds since 1970."""
    updated_at: int
    """Milliseconds since 1970."""

    @property
    def blocked_reason(self) -> str | None:
        """The reason why the session is blocked; null while it is not."""
        return (self.blocked or {}).get("reason")


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """The end of a page of sessions, which are listed by the time of their last use."""

    updated_at: int
    key: int


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message to be written."""

    role: str
    dialect: str
    body: bytes = field(repr=False)
    """The message as UTF-8 JSON in its dialect, byte for byte as it was received."""
    content_hash: str
    tokens: int
    tokenizer: str
    estimate: int = 0
    """Tokens of the parts that have no exact count."""
    search_text: str = field(default="", repr=False)
    search_terms: str | None = field(default=None, repr=False)
    """The terms of the text, joined by spaces. None: they are found when it is written."""
    search_parts: str | None = field(default=None, repr=False)
    """The parts of its names in camel case, likewise."""
    digest: str | None = None
    """The hash of the body, likewise."""
    client_id: str | None = None
    """The client's id of the message."""
    name: str | None = None
    created_at: int | None = None
    """The time of the message. Now, if not given."""
    is_dated: bool = True
    """False if its time is unknown; then `created_at` only says when it was stored."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a session."""

    JSON_FIELDS: ClassVar = (
        "id",
        "parent",
        "depth",
        "role",
        "dialect",
        "tokens",
        "tokenizer",
        "estimate",
        "input_tokens",
        "output_tokens",
        "created_at",
        "message=value",
    )
    key: int
    session: SessionKey
    id: str
    """The message's identity: a hash of its content and its parent."""
    parent: str | None
    """The id of the message before it. None for the first."""
    depth: int
    """The position on its branch; the first is 1."""
    role: str
    """`system`, `user`, `assistant` or `tool`."""
    dialect: str
    """The wire format of the message."""
    body: bytes = field(repr=False)
    content_hash: str
    digest: str
    tokens: int
    """The tokens, counted when it was stored."""
    tokenizer: str
    """The tokenizer that counted."""
    estimate: int
    """The tokens of parts without an exact count, such as an image."""
    input_tokens: int | None
    """The input of the call that wrote it, as the provider reported it; for monitoring only."""
    output_tokens: int | None
    """The output of that call, as the provider reported it."""
    client_id: str | None
    name: str | None
    created_at: int
    """Milliseconds since 1970."""
    path_tokens: int
    """The sum of the tokens of all messages from the first to this one."""
    is_dated: bool
    """False if its time is unknown; then `created_at` only says when it was stored."""

    @property
    def value(self) -> Any:
        """The message in its dialect, as it was received."""
        return loads(self.body)


@dataclass(frozen=True, slots=True)
class Branch:
    """A path from the root to a message that has no successor."""

    JSON_FIELDS: ClassVar = ("tip", "messages=depth", "tokens", "created_at", "current")
    tip: str
    """The id of its last message."""
    depth: int
    """The number of its messages."""
    tokens: int
    """The tokens of its messages."""
    created_at: int
    """The time of its last message, in milliseconds since 1970."""
    current: bool = False
    """True for the session's current branch."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """The part of a repeated history that the store already has."""

    count: int
    """The number of recognised messages, from the first one on."""
    session: SessionKey | None = None
    tip: str | None = None
    """The id of the last recognised message."""


@dataclass(frozen=True, slots=True)
class KeptRange:
    """A manifest entry: messages that are shown verbatim, from `first` to `last`."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class EditReference:
    """A manifest entry: an edit that is shown in place of its message."""

    edit: str


@dataclass(frozen=True, slots=True)
class SummaryPlace:
    """A manifest entry: the place of a summary; `index` numbers it if there are several."""

    index: int | None = None


ManifestEntry: TypeAlias = KeptRange | EditReference | SummaryPlace


@dataclass(frozen=True, slots=True)
class EditDraft:
    """A shortened form of a message, to be written."""

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
    """The id of the snapshot it was made for. Later snapshots may show it too."""
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
    created_at: int
    """The time of the message, not of the edit."""
    is_dated: bool


@dataclass(frozen=True, slots=True)
class SnapshotDraft:
    """A compression to be recorded."""

    content: Mapping[str, Any] = field(repr=False)
    """`summaryText`, `messageRange` (`firstMessageId`, `lastMessageId`) and further fields."""
    kind: SnapshotKind = "summary"
    cutoff: str | None = None
    """The last message it covers. Later messages are shown verbatim."""
    parent: str | None = None
    """The message that a branch must have for the snapshot to apply there."""
    manifest: tuple[ManifestEntry, ...] = ()
    """The view of the messages up to the cutoff, in order."""
    token_count: int | None = None
    tokenizer: str | None = None
    previous: str | None = None
    """The id of the snapshot that applied before."""
    strategy: str = ""
    author: str = ""
    """The author of the summary: a model, a person or the built-in summarizer."""
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored compression. It never changes; an undo is a separate record."""

    JSON_FIELDS: ClassVar = (
        "id",
        "text",
        "author",
        "strategy",
        "tokens=token_count",
        "cutoff",
        "parent",
        "previous",
        "undone",
        "range=message_range",
        "warnings",
        "created_at",
    )
    key: int
    session: SessionKey
    id: str
    """The snapshot's id."""
    kind: SnapshotKind
    """`summary`, `title` or `memory`."""
    content: Mapping[str, Any] = field(repr=False)
    """The summary's text, its range and further fields."""
    cutoff: str | None
    """The last message it covers."""
    cutoff_depth: int | None
    parent: str | None
    """The message that a branch must have for the snapshot to apply there."""
    parent_depth: int | None
    manifest: tuple[ManifestEntry, ...] = field(repr=False)
    token_count: int | None
    """The tokens of the summary. None if it has none."""
    tokenizer: str | None
    previous: str | None
    """The snapshot that was in use before."""
    strategy: str
    """The strategy that made it."""
    author: str
    """A model, the built-in summarizer, or `user`."""
    undone: bool
    """True if it was undone."""
    created_at: int
    """Milliseconds since 1970."""
    updated_at: int
    """Milliseconds since 1970."""

    @property
    def text(self) -> str | None:
        """The summary text. None if it has none, or if it was erased."""
        return self.content.get("summaryText")

    @property
    def tip(self) -> str | None:
        """The end of the branch when the snapshot was made: its parent or a reply to that."""
        tip: str | None = self.content.get("tip", self.parent)
        return tip

    @property
    def message_range(self) -> Mapping[str, Any] | None:
        """The first and the last message that the summary replaces."""
        return self.content.get("messageRange")

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of the compression."""
        return self.content.get("warnings") or []


@dataclass(frozen=True, slots=True)
class Undo:
    """The undo of a snapshot, at a tip."""

    snapshot: str
    message: str | None
    depth: int
    created_at: int


ViewRow: TypeAlias = StoredMessage | Edit | SummaryPlace


@dataclass(frozen=True, slots=True)
class ViewRows:
    """The records of a view, read in one transaction."""

    session: SessionRecord
    tip: str | None
    depth: int
    snapshot: Snapshot | None
    shown: tuple[ViewRow, ...]
    """The snapshot's manifest with messages and edits in place of their ids."""
    after: tuple[StoredMessage, ...]
    """The messages after the snapshot's cutoff; the whole branch if there is no snapshot."""
    skipped: int = 0
    """The oldest of these messages that were not read, because all of them cannot be sent."""
    skipped_tokens: int = 0
    """Their tokens."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An API profile. It names the source of the key, never the key."""

    name: str
    fields: Mapping[str, Any]
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The tokens and the cost of one model call. None is unknown, not zero."""

    kind: str
    """The purpose of the call: a reply, a summary."""
    profile: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    """The input tokens that were read from the provider's cache."""
    output_tokens: int | None = None
    cost: float | None = None
    """In US dollars."""
    message_id: str | None = None
    snapshot_id: str | None = None
    session: SessionKey | None = None
    created_at: int | None = None
    """Now, if not given."""
    namespace: str | None = None
    """The namespace of a call that belongs to no session."""
    session_name: str | None = None
    """The id of a session that does not exist yet."""

    @classmethod
    def of(cls, kind: str, usage: CallUsage, cost: float | None, **where: Any) -> UsageEvent:
        """Return the record of a call; `where` are the fields that say whose call it was."""
        return cls(
            kind,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            cost=cost,
            **where,
        )


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The sum of the calls of one model, for one purpose."""

    kind: str
    """The purpose of the calls: a reply, a summary."""
    profile: str | None
    """The profile that made the calls. None for none."""
    model: str | None
    """The model that was called."""
    calls: int
    """The number of calls."""
    input_tokens: int
    """The tokens sent, cached ones included."""
    cached_tokens: int
    """The tokens that the provider read from its cache."""
    output_tokens: int
    """The tokens received."""
    cost: float
    """In US dollars, without the calls of unknown cost."""
    unknown_costs: int
    """The number of calls without a known cost."""


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """Usage totals by purpose, profile and model, and their sum."""

    cost: float | None
    """In US dollars. None if some of it is unknown."""
    known_cost: float
    """In US dollars, without the calls of unknown cost."""
    calls: int
    """The number of calls."""
    totals: Sequence[UsageTotal]
    """One entry per purpose, profile and model."""

    @classmethod
    def of(cls, totals: Sequence[UsageTotal]) -> UsageSummary:
        """Return the summary of totals."""
        cost = sum(total.cost for total in totals)
        is_known = not any(total.unknown_costs for total in totals)
        calls = sum(total.calls for total in totals)
        return cls(cost if is_known else None, cost, calls, totals)


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A pending piece of background work for a message."""

    id: str
    """The same at every attempt, so that a receiver can recognise repeated deliveries."""
    session: SessionKey
    message: str
    kind: str
    attempts: int
    created_at: int


NO_SNAPSHOT = ""
"""In place of a snapshot's id: the client has compacted its history, and enfold has not."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The full exchange after a message, of which the client received only a part."""

    snapshot: str
    """The snapshot that applied. While it does, the exchange replaces the client's version."""
    message: str
    """The identity of the message before it."""
    shown: str
    """A hash of the client's version."""
    dialect: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Lease:
    """An exclusive right that expires."""

    name: str
    holder: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that a search found."""

    JSON_FIELDS: ClassVar = (
        "session=session_id",
        "session_id",
        "message",
        "depth",
        "role",
        "created_at",
        "snippet",
        "snippet_start",
        "start",
        "end",
        "rank",
    )
    key: int
    session: SessionKey
    session_id: str
    """The session's name."""
    message: str
    """The message's id."""
    depth: int
    """The position on its branch; the first is 1."""
    role: str
    """The role of the message."""
    created_at: int
    """Milliseconds since 1970."""
    snippet: str = field(repr=False)
    """The match with some text around it."""
    snippet_start: int
    """The snippet's first character in the message's searchable text."""
    start: int
    """The match's first character in the message's searchable text."""
    end: int
    """The character after the match."""
    rank: float | None = None
    """Greater is better. None if the results are sorted by time."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token of a server and its namespace. The token's text is not stored."""

    id: str
    """The token's id, for deleting it."""
    name: str
    """The token's name."""
    namespace: str
    """The namespace of its sessions; empty for the owner's."""
    created_at: int
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class AuditDraft:
    """An action for the audit log: ids and counts, never text."""

    actor: str
    namespace: str
    action: str
    status: int
    request_id: str
    session: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log."""

    JSON_FIELDS: ClassVar = (
        "seq",
        "at",
        "actor",
        "action",
        "status",
        "request_id",
        "session",
        "counts",
    )
    seq: int
    """A number that grows with every entry."""
    at: int
    """Milliseconds since 1970."""
    actor: str
    """The token's name; empty for a caller on the machine itself."""
    namespace: str
    action: str
    """Method and route; or `UI` and the action there."""
    status: int
    """The HTTP status of the answer."""
    request_id: str
    """The id of the request in the log; empty for the web UI."""
    session: str | None
    """The session it concerned. None for none."""
    counts: Mapping[str, int]
    """Figures, such as tokens; never text."""


@dataclass(frozen=True, slots=True)
class CompressionRow:
    """A compression that was not undone."""

    key: int
    created_at: int
    strategy: str
    author: str
    model: str | None
    """The session's model, if it names one."""
    profile: str | None
    tokens_before: int
    tokens_after: int
    replies: int
    """The number of replies in the session since."""
    input_tokens: int = 0
    """The input tokens of these replies."""
    cached_tokens: int = 0
    """Of these, the tokens that the provider read from its cache."""
    cost: float = 0.0
    """The cost of writing the summary in US dollars, as far as it is known."""
    session: str = ""
    title: str = ""
    client: str | None = None
    """The program that writes the session through the proxy. None for other sessions."""
    snapshot: str = ""


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """The usage of one model on one day, for one purpose."""

    day: int
    """Days since 1970, in UTC."""
    kind: str
    model: str | None
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    """In US dollars, without the calls of unknown cost."""
    unknown_costs: int


@dataclass(frozen=True, slots=True)
class DailyFailures:
    """The number of failed compressions of one day, for one error code."""

    day: int
    code: str
    failures: int
    automatic: int
    """The failures of compressions that were started automatically."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """The place of a search: a session, or all sessions of a namespace."""

    session: SessionKey | None = None
    namespace: str | None = None
    tip: str | None = None
    """Search only the path to this message of the session."""
    on_branch: bool = False
    """Search only the current branch of the session."""

    def one_session(self) -> SessionKey:
        """Return the session; raise `InputError` if there is none."""
        if self.session is None:
            raise InputError("this search needs a session")
        return self.session


class MessageLocation(NamedTuple):
    """A message's place on a branch, without its content. A recall reads hundreds of them."""

    key: int
    id: str
    depth: int
    role: str
    name: str | None
    tokens: int
    created_at: int = 0
    """Milliseconds since 1970."""
    is_dated: bool = False
    """False if `created_at` only says when the message was stored."""


@dataclass(frozen=True, slots=True)
class PhraseOccurrences:
    """The places of phrases on a branch."""

    depths: Mapping[Phrase, Sequence[int]]
    """The depths of the messages with each phrase, oldest first. Unfound phrases are left out."""
    length: int
    """The number of messages on the branch."""
    counts: Mapping[Phrase, int] = field(default_factory=dict)
    """The messages with a phrase, estimated, for phrases of which not all places are listed."""

    @property
    def has_name(self) -> bool:
        """True if a phrase of several words was found, such as the file `a.py`."""
        return any(len(phrase.terms) > 1 for phrase in self.depths)

    def count(self, phrase: Phrase) -> int:
        """Return the number of messages with the phrase."""
        return self.counts.get(phrase) or len(self.depths[phrase])


ChooseRanges: TypeAlias = Callable[[PhraseOccurrences], Sequence[tuple[int, int]]]
"""Returns the ranges of the branch to read, each as its first and last depth."""


@dataclass(frozen=True, slots=True)
class ResponseItem:
    """An item of a response, as JSON in the provider's dialect."""

    id: str | None
    """The provider's id, if it gave one."""
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A model's response, kept for requests that continue from its id."""

    session: SessionKey
    id: str
    """The provider's id."""
    tip: str
    """The identity of the last message that was sent."""
    snapshot: str | None
    """The snapshot whose view was sent. None if the whole history was sent."""
    items: tuple[ResponseItem, ...]
    lead: bytes = field(default=b"[]", repr=False)
    """The system messages before the history, as a JSON array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdate:
    """New values for a session. None leaves a field as it is; "" and {} make it empty."""

    title: str | None = None
    profile: str | None = None
    model: str | None = None
    client: str | None = None
    client_session: str | None = None
    settings: Mapping[str, Any] | None = None
    blocked: Mapping[str, Any] | None = None


NO_UPDATE = SessionUpdate()


def check_name(what: str, name: str) -> None:
    """Raise `InputError` unless the name can be stored."""
    if not is_storable(name) or len(name) > _LONGEST_NAME:
        raise InputError(
            f"{what} {name[:40]!r}: expected at most {_LONGEST_NAME} characters of plain text"
        )


class AppendPlace(Enum):
    """A place to append to that is not a message id."""

    CURRENT_TIP = auto()
    ROOT = auto()


CURRENT_TIP = AppendPlace.CURRENT_TIP
"""After the tip of the current branch, as of the transaction."""
ROOT = AppendPlace.ROOT
"""Before all messages: the start of another conversation in the same session."""


def manifest_to_json(manifest: tuple[ManifestEntry, ...]) -> str:
    """Return the manifest as stored JSON."""
    return dump_text([_to_json(entry) for entry in manifest])


@lru_cache(maxsize=64)  # every turn reads the manifest of its session
def manifest_from_json(text: str) -> tuple[ManifestEntry, ...]:
    """Return the manifest of stored JSON."""
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
    raise StoreError(f"a snapshot's manifest has an unknown entry: {sorted(entry)}")
