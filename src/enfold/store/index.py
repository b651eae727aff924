"""The search index: rows are added with messages and deleted with sessions.

Besides its words every message has a term for its session and one for its namespace, so that a
search in one session does not read matches of other sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from enfold.records import SessionKey
from enfold.store.database import Database, EngineName
from enfold.text.words import LONGEST_PHRASE, parts_of, storable, texts_of_terms

WINDOW = 256
"""Terms in one row of PostgreSQL's index, which keeps at most 256 places of a word in a row."""

_SAMPLE = 64
"""Terms of a message that are looked up in SQLite's index to verify it."""

_JOINT = "\u00b7"
"""No letter, digit or mark, so no message has such a word; beyond ASCII, so SQLite keeps it."""


def session_scope(session: SessionKey) -> str:
    """Return the term that every message of the session has."""
    return f"session{_JOINT}{session}"


def namespace_scope(namespace: str) -> str:
    """Return the term that every message of the namespace has."""
    return f"namespace{_JOINT}{blake2b(namespace.encode(), digest_size=12).hexdigest()}"


def add(
    db: Database, session: SessionKey, texts: Sequence[tuple[int, str, str | None, str | None]]
) -> None:
    """Add messages, given as key, searchable text, its terms and its parts, to the index."""
    cleaned = [(key, storable(text), *found) for key, text, *found in texts if text]
    if not cleaned:
        return
    db.change_many(
        "insert_text",
        [{"message": key, "session": session, "text": text} for key, text, *_ in cleaned],
    )
    db.change_many("insert_words", _rows(db, session, cleaned))


def forget_session(db: Database, session: SessionKey) -> None:
    """Delete a session's messages from the index, before the session is deleted.

    PostgreSQL's index is a table whose rows are deleted with the session. SQLite's index keeps no
    content, so that a deletion needs the same text as the insertion.
    """
    if db.engine == "postgresql":
        return
    for page in db.pages("texts_after_key", session=session):
        texts = [(each["key"], each["text"]) for each in page]
        db.change_many("delete_words", _rows(db, session, texts))


def move_session(db: Database, session: SessionKey, listed_in: str, id: str) -> None:
    """List a session in another namespace under an id; a search there finds its messages."""
    forget_session(db, session)
    if db.engine == "postgresql":
        db.change("delete_words_of_session", session=session)
    db.change("list_session", key=session, listed_in=listed_in, id=id)
    for page in db.pages("texts_after_key", session=session):
        texts = [(each["key"], each["text"]) for each in page]
        db.change_many("insert_words", _rows(db, session, texts))


def not_indexed(
    db: Database, session: SessionKey, texts: Iterable[tuple[int, str]]
) -> Iterator[int]:
    """Yield the keys of messages whose words the index does not have."""
    scopes = _scopes(db, session)
    has_words = _HAS_WORDS[db.engine]
    for key, text in texts:
        if not has_words(db, key, session, scopes, text):
            yield key


def _is_in_fts5(
    db: Database, key: int, _session: SessionKey, scopes: Sequence[str], text: str
) -> bool:
    """Return True if the index has the scopes and the terms; a long text is checked by a sample."""
    terms = sorted({*texts_of_terms(text), *parts_of(text)})
    sample = terms[:: 1 + len(terms) // _SAMPLE]
    wanted = [f'scope : "{scope}"' for scope in scopes]
    wanted += [f'{{words parts}} : "{term}"' for term in sample]
    return db.row("has_words", query=" AND ".join(wanted), message=key) is not None


def _is_in_tsvectors(
    db: Database, key: int, session: SessionKey, scopes: Sequence[str], text: str
) -> bool:
    for row in _tsvector_rows(key, session, scopes, text):
        wanted = {name: row[name] for name in ("message", "piece", "words")}
        found = db.row("has_words", **wanted)
        if found is None or not found["pieces"]:
            return False
    return True


def _scopes(db: Database, session: SessionKey) -> tuple[str, ...]:
    row = db.row("namespace_of", session=session)
    namespaces = (row["namespace"], row["listed_in"]) if row else ("",)
    return session_scope(session), *map(namespace_scope, dict.fromkeys(namespaces))


def _rows(
    db: Database, session: SessionKey, texts: Iterable[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """Return the rows of texts, each given as key, text and, if it has them, terms and parts."""
    scopes, rows_of = _scopes(db, session), _ROWS[db.engine]  # before another query runs
    return (row for key, *text in texts for row in rows_of(key, session, scopes, *text))


def joined_terms(text: str) -> str:
    """Return the terms of a searchable text, joined by spaces."""
    return " ".join(texts_of_terms(storable(text)))


def joined_parts(text: str) -> str:
    """Return the parts of names in camel case of a searchable text, joined by spaces."""
    return " ".join(sorted(parts_of(storable(text))))


def _fts5_rows(
    key: int,
    _session: SessionKey,
    scopes: Sequence[str],
    text: str,
    terms: str | None = None,
    parts: str | None = None,
) -> Iterator[dict[str, Any]]:
    yield {
        "message": key,
        "scope": " ".join(scopes),
        "words": joined_terms(text) if terms is None else terms,
        "parts": joined_parts(text) if parts is None else parts,
    }


def _tsvector_rows(
    key: int,
    session: SessionKey,
    scopes: Sequence[str],
    text: str,
    joined: str | None = None,
    parts: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield rows that overlap by the longest phrase, so that one row has each phrase whole."""
    terms = texts_of_terms(text) if joined is None else joined.split()
    without_place = [*scopes, *(parts_of(text) if parts is None else parts.split())]
    starts = range(0, max(1, len(terms) - LONGEST_PHRASE), WINDOW - LONGEST_PHRASE)
    for piece, at in enumerate(starts):
        yield {
            "message": key,
            "piece": piece,
            "session": session,
            "is_whole": len(starts) == 1,
            "words": _tsvector(terms[at : at + WINDOW], without_place),
        }
        without_place = list(scopes)


def _tsvector(terms: Iterable[str], without_place: Iterable[str]) -> str:
    """Return a tsvector as text; terms are letters, digits and marks, which need no escape."""
    places: dict[str, list[str]] = {term: [] for term in without_place}
    for place, term in enumerate(terms, start=1):
        places.setdefault(term, []).append(str(place))
    return " ".join(
        f"'{term}':{','.join(at)}" if at else f"'{term}'" for term, at in places.items()
    )


_ROWS: Mapping[EngineName, Callable[..., Iterator[dict[str, Any]]]] = {
    "sqlite": _fts5_rows,
    "postgresql": _tsvector_rows,
}

_HAS_WORDS: Mapping[EngineName, Callable[..., bool]] = {
    "sqlite": _is_in_fts5,
    "postgresql": _is_in_tsvectors,
}
