"""Full-text search over all stored messages, in or out of the view."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from enfold.errors import InputError
from enfold.jsontext import dump_text
from enfold.records import (
    ChooseRanges,
    Hit,
    MessageLocation,
    PhraseOccurrences,
    SearchScope,
    SessionKey,
    StoredMessage,
)
from enfold.store import tree
from enfold.store.database import Database, EngineName, Row
from enfold.store.index import namespace_scope, session_scope
from enfold.store.tree import Node
from enfold.text.words import Phrase, Term, parts_of, phrases_of, terms_of

_END = 2**62
_RECENT = 1_000
_AROUND = 80
"""Characters of a snippet on each side of the match."""


def search(
    db: Database,
    query: str,
    where: SearchScope,
    *,
    limit: int = 20,
    after: Hit | None = None,
    best_first: bool = False,
) -> list[Hit]:
    """Return the messages with all the words and all the phrases (in double quotes) of the query.

    They come newest first, and the next page starts `after` the last hit; or best first, which is
    slower because all matches must be ranked.
    """
    scope = _scope(where)
    phrases = phrases_of(query)
    if not phrases:
        return []
    expression = _EXPRESSIONS[db.engine](scope, phrases)
    before = after.key if after else _END
    if best_first:
        pages = _best(db, expression, limit)
    else:
        pages = _newest(db, expression, limit, before, where.session)
    hits: list[Hit] = []
    for found in pages:
        allowed = _on_path(db, where, [row["key"] for row in found])
        ranks = {row["key"]: row["rank"] for row in found if row["key"] in allowed}
        rows = {row["key"]: row for row in db.rows("hits", keys=dump_text(list(ranks)))}
        hits += [_hit(rows[key], phrases, rank) for key, rank in ranks.items() if key in rows]
        if len(hits) >= limit:
            break
    return hits[:limit]


def newest_keys(db: Database, phrase: Phrase, where: SearchScope, *, limit: int) -> list[int]:
    """Return the keys of the newest messages that have the phrase, on any branch."""
    expression = _EXPRESSIONS[db.engine](_scope(where), (phrase,))
    rows = db.rows("search_newest", query=expression, before=_END, limit=limit)
    return [row["key"] for row in rows]


def locate(text: str, phrases: Sequence[Phrase]) -> tuple[int, int]:
    """Return start and end of the first phrase in the text; (0, 0) if none occurs."""
    by_last: dict[str, list[Phrase]] = defaultdict(list)
    open_ended = [phrase for phrase in phrases if phrase.prefix]
    for phrase in phrases:
        by_last[phrase.terms[-1]].append(phrase)
    terms: list[Term] = []
    for term in terms_of(text):
        terms.append(term)
        for phrase in (*by_last.get(term.text, ()), *open_ended):
            if _ends_here(terms, phrase):
                return terms[-len(phrase.terms)].start, term.end
        word = text[term.start : term.end]
        if not word.islower() and any(part in by_last for part in parts_of(word)):
            return term.start, term.end
    return 0, 0


def _scope(where: SearchScope) -> str:
    if where.session is not None:
        return session_scope(where.session)
    if where.namespace is not None and where.tip is None and not where.on_branch:
        return namespace_scope(where.namespace)
    raise InputError("a search needs a session or a namespace")


def _newest(
    db: Database, expression: str, limit: int, before: int, session: SessionKey | None
) -> Iterator[Sequence[Row]]:
    """Yield pages of matches, newest first."""
    while True:
        rows = _recent(db, expression, limit, before, session)
        if len(rows) < limit:
            rows = db.rows("search_newest", query=expression, before=before, limit=limit)
        if not rows:
            return
        yield rows
        before = rows[-1]["key"]


def _recent(
    db: Database, expression: str, limit: int, before: int, session: SessionKey | None
) -> Sequence[Row]:
    """Return the matches among a session's newest messages; only PostgreSQL needs this for speed.

    The oldest of them may be missing, but a full page never reaches down to it.
    """
    if db.engine == "sqlite" or session is None:
        return ()
    return db.rows(
        "search_recent",
        query=expression,
        session=session,
        before=before,
        limit=limit,
        recent=_RECENT,
    )


def _best(db: Database, expression: str, limit: int) -> Iterator[Sequence[Row]]:
    offset = 0
    while rows := db.rows("search_best", query=expression, limit=limit, offset=offset):
        yield rows
        offset += len(rows)


def _on_path(db: Database, where: SearchScope, keys: Sequence[int]) -> set[int]:
    if where.session is None or (where.tip is None and not where.on_branch):
        return set(keys)
    return tree.on_path(db, tree.tip_node(db, where.session, where.tip).key, keys)


def _fts5_expression(scope: str, phrases: Sequence[Phrase]) -> str:
    """Return the query for FTS5. Terms are letters, digits and marks, so quotes are safe."""
    wanted = [f'scope : "{scope}"']
    for phrase in phrases:
        columns = "words" if len(phrase.terms) > 1 else "{words parts}"
        wanted.append(f'{columns} : "{" ".join(phrase.terms)}"{" *" if phrase.prefix else ""}')
    return " AND ".join(wanted)


def _tsquery_expression(scope: str, phrases: Sequence[Phrase]) -> str:
    """Return one tsquery per phrase, each within the scope."""
    return dump_text([f"'{scope}' & ({_tsquery(phrase)})" for phrase in phrases])


def _tsquery(phrase: Phrase) -> str:
    words = " <-> ".join(f"'{term}'" for term in phrase.terms)
    return f"{words}:*" if phrase.prefix else words


_EXPRESSIONS: Mapping[EngineName, Callable[[str, Sequence[Phrase]], str]] = {
    "sqlite": _fts5_expression,
    "postgresql": _tsquery_expression,
}


def _ends_here(terms: Sequence[Term], phrase: Phrase) -> bool:
    *head, last = phrase.terms
    found = [term.text for term in terms[-len(phrase.terms) :]]
    if len(found) < len(phrase.terms) or found[:-1] != head:
        return False
    return found[-1].startswith(last) if phrase.prefix else found[-1] == last


def _hit(row: Row, phrases: Sequence[Phrase], rank: float | None) -> Hit:
    values = dict(row)
    text: str = values.pop("text")
    start, end = locate(text, phrases)
    first = max(0, start - _AROUND)
    return Hit(
        **values,
        snippet=text[first : end + _AROUND],
        snippet_start=first,
        start=start,
        end=end,
        rank=None if rank is None else float(rank),
    )


def around(
    db: Database, where: SearchScope, phrases: Iterable[Phrase], choose: ChooseRanges, *, most: int
) -> tuple[PhraseOccurrences, list[list[MessageLocation]]]:
    """Return the places of the phrases on the branch to the tip, and the ranges that were chosen.

    The newest `most` occurrences of each phrase are used. Each range is a list, oldest first.
    """
    tip = tree.tip_node(db, where.one_session(), where.tip)
    found = _find(db, where, tip, phrases, most)
    return found, [_stretch(db, tip, first, last) for first, last in choose(found)]


def message_at(db: Database, where: SearchScope, position: int) -> StoredMessage:
    """Return the message at a position of the branch to the tip; the first is 1."""
    return tree.at_position(db, where.one_session(), position, where.tip)


def texts(db: Database, _where: SearchScope, spots: Iterable[MessageLocation]) -> dict[int, str]:
    """Return the searchable texts of messages by key; messages without text are left out."""
    keys = dump_text([spot.key for spot in spots])
    return {row["key"]: row["text"] for row in db.rows("texts", keys=keys)}


def _find(
    db: Database, where: SearchScope, tip: Node, phrases: Iterable[Phrase], most: int
) -> PhraseOccurrences:
    keys = {phrase: newest_keys(db, phrase, where, limit=most) for phrase in phrases}
    everywhere = {key for found in keys.values() for key in found}
    allowed = tree.on_path(db, tip.key, everywhere) if everywhere else set()
    rows = db.rows("spots", keys=dump_text(sorted(allowed)))
    depths = {row["key"]: row["depth"] for row in rows}
    found = {
        phrase: sorted(depths[key] for key in of if key in depths) for phrase, of in keys.items()
    }
    return PhraseOccurrences({phrase: each for phrase, each in found.items() if each}, tip.depth)


def _stretch(db: Database, tip: Node, first: int, last: int) -> list[MessageLocation]:
    bottom = tree.ancestor(db, tip, last)
    rows = db.rows("spots_of_line", bottom=bottom.key, above=first - 1)
    return sorted((MessageLocation(**dict(row)) for row in rows), key=lambda spot: spot.depth)
