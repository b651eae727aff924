"""Integrity: checks every stored row of a session against the rows that it follows from.

A message is checked against its bytes, its identity, its parent and the sums of its path; a
snapshot against its messages and its manifest; an edit against its bytes and its ledger; a search
row against its text. Sessions are read page by page, so memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple

from enfold.errors import ConfigError, InputError, IntegrityError
from enfold.identity import digest, identity
from enfold.jsontext import dump_text, loads
from enfold.records import (
    POINTS_TO,
    EditReference,
    KeptRange,
    SessionKey,
    StoredMessage,
    manifest_from_json,
)
from enfold.store import index, snapshots, tree
from enfold.store.database import Database, Row
from enfold.text.words import storable

_MOST = 100
"""The most problems that are listed for one session, and for the database."""
_FEW = 50
"""Tokens by which a count may always differ from a new one."""
_COLUMNS = tuple(each.name for each in fields(StoredMessage))


@dataclass(frozen=True, slots=True)
class IntegrityFault:
    """A stored row that is missing or changed."""

    JSON_FIELDS: ClassVar = ("area", "session", "id", "detail")
    area: str
    """`database`, `setting`, `profile`, `session`, `message`, `branch`, `snapshot`, `edit`,
    `search`, `outbox`, `pin` or `undo`."""
    id: str
    """The row's id."""
    detail: str
    """Description of the fault."""
    session: str | None = None
    """The session's name. None if the row belongs to no session."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session to verify."""

    key: SessionKey
    namespace: str
    listed_in: str
    id: str


@dataclass(slots=True)
class SessionCheck:
    """The figures of one verified session."""

    messages: int = 0
    snapshots: int = 0
    edits: int = 0
    search_rows: int = 0
    problems: list[IntegrityFault] = field(default_factory=list)

    def add(self, area: str, id: object, detail: str) -> None:
        """Add a problem, unless very many are listed already."""
        if len(self.problems) < _MOST:
            self.problems.append(IntegrityFault(area, str(id), detail))


class ReadBody(NamedTuple):
    """The role, the text and the tokens of a message, as its bytes have them."""

    role: str
    text: str
    """The searchable text."""
    tokens: int | None
    """Its tokens, counted now. None if its tokenizer is not known here."""


def heads(db: Database, after: int, *, limit: int = 1_000) -> list[SessionHead]:
    """Return sessions of the whole database by key, after the one with that key."""
    return [
        SessionHead(row["key"], row["namespace"], row["listed_in"], row["id"])
        for row in db.rows("sessions_after_key", key=after, limit=limit)
    ]


def check_database(db: Database) -> list[IntegrityFault]:
    """Check the file of an SQLite database, settings, profiles, and search rows without message."""
    problems: list[IntegrityFault] = []
    if db.engine == "sqlite":
        found = [row["integrity_check"] for row in db.rows("check_database")]
        problems += [IntegrityFault("database", "file", text) for text in found if text != "ok"]
        problems += [
            IntegrityFault(
                "database", row["table"], f"row {row['rowid']}: no row in {row['parent']}"
            )
            for row in db.rows("check_references")
        ]
    problems += [
        IntegrityFault("search", str(row["key"]), "the search row belongs to no message")
        for row in db.rows("words_without_text", limit=_MOST)
    ]
    values = [
        *(("setting", row["key"], row["value"]) for row in db.rows("settings", scope="global")),
        *(("profile", row["name"], row["fields"]) for row in db.rows("profiles")),
    ]
    for area, name, value in values:
        try:
            loads(value)
        except InputError:
            problems.append(IntegrityFault(area, name, "its value cannot be read"))
    return problems[:_MOST]


def check_session(
    db: Database,
    session: SessionKey,
    read: Callable[[StoredMessage], ReadBody | None] = lambda _: None,
) -> SessionCheck:
    """Check every row of a session. `read` reads the bytes of a message; the store cannot."""
    check = SessionCheck()
    _check_head(db, session, check)
    _check_messages(db, session, check, read)
    for row in db.rows("unlisted_tips", session=session, limit=_MOST):
        check.add("branch", row["id"], "the branch that ends with this message is not listed")
    for row in db.rows("wrong_tips", session=session, limit=_MOST):
        check.add("branch", row["key"], "it is listed as the end of a branch and is none")
    for page in db.pages("snapshots_to_verify", size=100, session=session):
        check.snapshots += len(page)
        for row in page:
            for fault in (*_place_faults(db, row), *_manifest_faults(db, session, row)):
                check.add("snapshot", row["id"], fault)
    for page in db.pages("edits_to_verify", session=session):
        check.edits += len(page)
        for row in page:
            for fault in _edit_faults(db, session, row):
                check.add("edit", row["id"], fault)
    for row in db.rows("references_to_verify", session=session, limit=_MOST):
        check.add(row["area"], row["id"], f"it refers to {row['target']}, which does not exist")
    _check_search(db, session, check)
    return check


def _check_head(db: Database, session: SessionKey, check: SessionCheck) -> None:
    for row in db.rows("sessions_after_key", key=session - 1, limit=1):
        if row["key"] != session:
            continue
        if row["tip_key"] and row["tip_session"] != session:
            check.add("session", row["id"], "the last message of its current branch is missing")
        try:
            is_object = isinstance(loads(row["settings"]), dict)
        except InputError:
            is_object = False
        if not is_object:
            check.add("session", row["id"], "its settings cannot be read")


def _check_messages(
    db: Database,
    session: SessionKey,
    check: SessionCheck,
    read: Callable[[StoredMessage], ReadBody | None],
) -> None:
    for page in db.pages("messages_to_verify", session=session):
        check.messages += len(page)
        for row in page:
            message = StoredMessage(**{name: row[name] for name in _COLUMNS})
            for fault in _faults(message, row):
                check.add("message", message.id, fault)
            try:
                body = read(message)
            except (ConfigError, InputError) as error:
                check.add("message", message.id, f"its bytes cannot be read: {error}")
                continue
            if body is None:
                continue
            if body.role != message.role:
                check.add("message", message.id, f"its bytes have the role {body.role}")
            # Earlier versions counted some messages a little differently.
            counted = message.tokens if body.tokens is None else body.tokens
            if not counted // 2 - _FEW <= message.tokens <= 2 * counted + _FEW:
                fault = f"its {message.tokens:,} tokens are far from the {counted:,} counted"
                check.add("message", message.id, fault)
            if row["text"] is None and body.text:
                check.add("search", message.id, "the message has no search row")
            elif row["text"] is not None and row["text"] != storable(body.text):
                check.add("search", message.id, "the search row has another text")


def _faults(message: StoredMessage, row: Row) -> Iterator[str]:
    """Yield the problems of a message: its bytes or its parent do not fit."""
    if digest(message.body) != message.digest:
        yield "its bytes no longer match its digest"
    if row["parent_key"] is not None and message.parent is None:
        yield "the message before it is missing"
        return
    if message.id != identity(message.parent, message.content_hash):
        yield "its identity does not fit its content and the message before it"
    if message.depth != (row["parent_depth"] or 0) + 1:
        yield "its position does not follow the message before it"
    if message.path_tokens != (row["parent_tokens"] or 0) + message.tokens:
        yield "its sum of tokens does not follow the message before it"
    is_parent = tree.jump_depth(message.depth) == message.depth - 1
    if (row["jump"] or 0) != ((row["parent_key"] if is_parent else row["jump_after"]) or 0):
        yield "its link to an earlier message is wrong"


def _place_faults(db: Database, row: Row) -> Iterator[str]:
    """Yield the problems of a snapshot: its messages do not fit."""
    for name, id in (("cutoff", "message_cutoff_id"), ("parent", "parent_message_id")):
        if row[id] is None and row["kind"] != "summary":
            continue
        found = row[f"{name}_found"], row[f"{name}_found_depth"]
        if found != (row[id], row[f"{name}_depth"]):
            yield f"its {name} message {row[id]} is missing or at another place"
            return
    if row["cutoff_key"] and row["cutoff_key"] not in tree.on_path(
        db, row["parent_key"], [row["cutoff_key"]]
    ):
        yield "its cutoff message is not on its branch"
    if row["previous_id"] is not None and row["previous_found"] is None:
        yield f"the snapshot before it, {row['previous_id']}, is missing"


def _manifest_faults(db: Database, session: SessionKey, row: Row) -> Iterator[str]:
    """Yield the problems of the entries of a snapshot's manifest."""
    try:
        loads(row["content_json"])
        manifest = manifest_from_json(row["manifest"])
    except (InputError, IntegrityError) as error:
        yield f"its content cannot be read: {error}"
        return
    if not snapshots.is_snapshot_unchanged(row):
        yield "its summary or its manifest no longer match its digest"
    edits = [entry.edit for entry in manifest if isinstance(entry, EditReference)]
    there = {
        found["id"]: found["depth"]
        for found in db.rows("edits_by_id", session=session, ids=dump_text(edits))
    }
    yield from (
        f"it shows the edit {edit}, which is missing" for edit in edits if edit not in there
    )
    shown = 0  # the place on the branch of the last message so far
    for entry in manifest:
        if isinstance(entry, EditReference) and entry.edit in there:
            if there[entry.edit] <= shown:
                yield f"it shows the edit {entry.edit}, which is of a message at another place"
            shown = there[entry.edit]
        elif isinstance(entry, KeptRange):
            first, last = (
                db.row("node_by_id", session=session, id=end) for end in (entry.first, entry.last)
            )
            if first is None or last is None:
                yield f"it shows message {entry.first} to {entry.last}, which are missing"
            elif not tree.on_path(db, last["key"], [first["key"]]):
                yield f"it shows message {entry.first} to {entry.last}, which are on no branch"
            elif first["depth"] <= shown:
                yield f"it shows message {entry.first} after a later one"
            shown = shown if last is None else last["depth"]


def _edit_faults(db: Database, session: SessionKey, row: Row) -> Iterator[str]:
    if not snapshots.is_edit_unchanged(row):
        yield "its bytes or its ledger no longer match its digest"
    if row["message"] is None:
        yield "the message that it shortens is missing"
    if row["snapshot_found"] is None:
        yield "the snapshot that it was made for is missing"
    try:
        ledger = {} if row["ledger"] is None else loads(row["ledger"])
    except InputError as error:
        yield f"its ledger cannot be read: {error}"
        return
    for target in ledger.get(POINTS_TO, ()):
        if db.row("node_by_id", session=session, id=target) is None:
            yield f"its ledger points to message {target}, which is missing"


def _check_search(db: Database, session: SessionKey, check: SessionCheck) -> None:
    for page in db.pages("texts_to_verify", session=session):
        check.search_rows += len(page)
        for row in page:
            if row["message"] is None:
                check.add("search", row["key"], "the search row belongs to no message")
        names = {row["key"]: row["message"] for row in page if row["message"] is not None}
        texts = ((row["key"], row["text"]) for row in page if row["key"] in names)
        for key in index.not_indexed(db, session, texts):
            check.add("search", names[key], "the search index does not have its words")
