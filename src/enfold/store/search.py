"""Full-text search over all stored messages, in or out of the view."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter

from enfold.errors import InputError
from enfold.jsontext import dump_text
from enfold.records import (
    ChooseRanges,
    Hit,
    MessageLocation,
    PhraseOccurrences,
    SearchScope,
    SessionKey,
)
from enfold.store import tree
from enfold.store.database import Database, Row
from enfold.store.index import namespace_scope, session_scope
from enfold.store.tree import Node
from enfold.text.words import Phrase, Term, occurrences, parts_of, phrases_of, terms_of

_END = 2**62
_RECENT = 1_000
_OTHER_SHARE = 4
"""A session with at least one in this many messages of the database is searched without scope."""
_GAP, _REST_OF_WORD = re.compile("[^a-z0-9]+"), re.compile("[a-z0-9]+")
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
    expression = _expression(db, scope, phrases)
    if best_first:
        pages = _best(db, expression, limit)
    else:
        pages = _newest(db, expression, limit, after.key if after else _END, where.session)
    hits: list[Hit] = []
    for found in pages:
        ranks = {row["key"]: row["rank"] for row in found}
        if where.session is not None and (where.tip is not None or where.on_branch):
            tip = tree.tip_node(db, where.session, where.tip)
            allowed = tree.on_path(db, tip.key, ranks)
            ranks = {key: rank for key, rank in ranks.items() if key in allowed}
        rows = {row["key"]: row for row in db.rows("hits", keys=dump_text(list(ranks)))}
        hits += [_hit(rows[key], phrases, rank) for key, rank in ranks.items() if key in rows]
        if len(hits) >= limit:
            break
    return hits[:limit]


def locate(text: str, phrases: Sequence[Phrase]) -> tuple[int, int]:
    """Return start and end of the first phrase in the text; (0, 0) if none occurs."""
    by_last: dict[str, list[Phrase]] = defaultdict(list)
    open_ended = [phrase for phrase in phrases if phrase.prefix]
    for phrase in phrases:
        by_last[phrase.terms[-1]].append(phrase)
    if text.isascii():
        lower = text.lower()
        within = any(_is_within_word(last, lower) for last in by_last)
        if not within or by_last.keys().isdisjoint(parts_of(text)):
            return _locate_in_ascii(lower, phrases)
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


def _is_within_word(term: str, lower: str) -> bool:
    """Return True if a longer word of the text contains the term, as a name in camel case may."""
    start = lower.find(term)
    while start >= 0:
        end = start + len(term)
        if lower[end : end + 1].isalnum() or (start and lower[start - 1].isalnum()):
            return True
        start = lower.find(term, end)
    return False


def _locate_in_ascii(lower: str, phrases: Iterable[Phrase]) -> tuple[int, int]:
    """Return start and end of the phrase that ends first in a text of lower case."""
    spans: list[tuple[int, int]] = []
    for phrase in phrases:
        for start in occurrences(lower, phrase.terms[0]):
            if end := _end_of_phrase(lower, start, phrase):
                spans.append((start, end))
                break
    return min(spans, key=itemgetter(1), default=(0, 0))


def _end_of_phrase(lower: str, start: int, phrase: Phrase) -> int:
    """Return the end of a phrase that begins at a place; 0 if other words are there."""
    if start and lower[start - 1].isalnum():
        return 0
    end = start
    for number, term in enumerate(phrase.terms):
        gap = _GAP.match(lower, end) if number else None
        if number and gap is None:
            return 0
        end = gap.end() if gap else end
        if not lower.startswith(term, end):
            return 0
        end += len(term)
    rest = _REST_OF_WORD.match(lower, end)
    if rest and not phrase.prefix:
        return 0
    return rest.end() if rest else end


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
        place = {"query": expression, "before": before, "limit": limit}
        rows: Sequence[Row] = ()
        if db.engine == "postgresql" and session is not None:
            # For speed, first those among the session's newest messages. The oldest of them may be
            # missing, but a full page never reaches down to it.
            rows = db.rows("search_recent", session=session, recent=_RECENT, **place)
        if len(rows) < limit:
            rows = db.rows("search_newest", **place)
        if not rows:
            return
        yield rows
        before = rows[-1]["key"]


def _best(db: Database, expression: str, limit: int) -> Iterator[Sequence[Row]]:
    offset = 0
    while rows := db.rows("search_best", query=expression, limit=limit, offset=offset):
        yield rows
        offset += len(rows)


def _expression(
    db: Database, scope: str, phrases: Sequence[Phrase], one_of: Sequence[Phrase] = ()
) -> str:
    """Return the query for all phrases, together with one of others if there are any."""
    if db.engine == "sqlite":
        wanted = [f'scope : "{scope}"'] if scope else []
        wanted += map(_fts5, phrases)
        if one_of:
            wanted.append(f"({' OR '.join(map(_fts5, one_of))})")
        return " AND ".join(wanted)
    others = f" & ({' | '.join(map(_tsquery, one_of))})" if one_of else ""
    return dump_text([f"'{scope}' & ({_tsquery(phrase)}){others}" for phrase in phrases])


def _fts5(phrase: Phrase) -> str:
    """Return the query for a phrase. Terms are letters, digits and marks, so quotes are safe."""
    columns = "words" if len(phrase.terms) > 1 else "{words parts}"
    return f'{columns} : "{" ".join(phrase.terms)}"{" *" if phrase.prefix else ""}'


def _tsquery(phrase: Phrase) -> str:
    words = " <-> ".join(f"'{term}'" for term in phrase.terms)
    return f"({words}:*)" if phrase.prefix else f"({words})"


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
    # The snippet begins and ends with a whole word.
    first, last = max(0, start - _AROUND), end + _AROUND
    if first and not text[first - 1].isspace():
        first = text.find(" ", first, start) + 1 or first
    if last < len(text):
        last = max(end, text.rfind(" ", end, last + 1))
    return Hit(
        **values,
        snippet=text[first:last],
        snippet_start=first,
        start=start,
        end=end,
        rank=None if rank is None else float(rank),
    )


_MAX_UNDATED = 8
"""Messages in a row that may have no date in a conversation with dates."""


def search_around(
    db: Database,
    where: SearchScope,
    phrases: Iterable[Phrase],
    choose: ChooseRanges,
    *,
    most: int,
    depths: tuple[int, int] | None = None,
) -> tuple[PhraseOccurrences, list[list[MessageLocation]]]:
    """Return the places of the phrases on the branch to the tip, and the ranges that were chosen.

    The newest `most` occurrences of each phrase are used; with `depths`, only those from the first
    to the last of them. Each range is a list, oldest first.
    """
    tip = tree.tip_node(db, where.one_session(), where.tip)
    first, last = depths or (1, tip.depth)
    found = _find(db, where, tip, phrases, most, first, last)
    chosen = ((max(first, start), min(last, end)) for start, end in choose(found))
    return found, [_stretch(db, tip, start, end) for start, end in chosen if start <= end]


def stretch(db: Database, where: SearchScope, first: int, last: int) -> list[MessageLocation]:
    """Return the messages from one depth to another of the branch to the tip, oldest first."""
    tip = tree.tip_node(db, where.one_session(), where.tip)
    return _stretch(db, tip, max(1, first), last) if max(1, first) <= last <= tip.depth else []


def newest_time(db: Database, where: SearchScope) -> int | None:
    """Return the time of the last message of the branch; None if it is empty."""
    tip = tree.tip_node(db, where.one_session(), where.tip)
    if not tip.key:
        return None
    row = db.row("message_time", key=tip.key)
    if row is None:
        raise tree.missing(f"the message with the key {tip.key}")
    return int(row["created_at"])


def depths_between(db: Database, where: SearchScope, first: int, end: int) -> tuple[int, int]:
    """Return the first and last depth of the messages from one time to before another.

    Found by halving, so the messages are taken to be in the order of their times. A few in a row
    may be later than those after them: messages without a date have the time at which they were
    stored.
    """
    tip = tree.tip_node(db, where.one_session(), where.tip)

    def time_from(depth: int) -> int:
        some = _stretch(db, tip, depth, min(tip.depth, depth + _MAX_UNDATED))
        return min(each.created_at for each in some)

    def first_from(time: int) -> int:
        return 1 + bisect_left(range(1, tip.depth + 1), time, key=time_from)

    return first_from(first), first_from(end) - 1


def texts(db: Database, spots: Iterable[MessageLocation]) -> dict[int, str]:
    """Return the searchable texts of messages by key; messages without text are left out."""
    keys = dump_text([spot.key for spot in spots])
    return {row["key"]: row["text"] for row in db.rows("texts", keys=keys)}


def _find(
    db: Database,
    where: SearchScope,
    tip: Node,
    phrases: Iterable[Phrase],
    most: int,
    first: int,
    last: int,
) -> PhraseOccurrences:
    """Return the newest messages with each phrase, from one depth to another.

    Of a frequent phrase there are also the newest messages that contain another phrase too, so that
    old messages with several words of a question are found in a long history.
    """
    wanted = list(phrases)
    scope = _branch_scope(db, where, tip)

    def find(phrase: Phrase, one_of: Sequence[Phrase] = ()) -> dict[int, int]:
        rows = db.rows(
            "occurrences",
            query=_expression(db, scope, [phrase], one_of),
            session=where.one_session(),
            first=first,
            last=last,
            limit=most,
        )
        return {row["key"]: row["depth"] for row in rows}

    found = {each: find(each) for each in wanted}
    counts: dict[Phrase, int] = {}
    for phrase in [each for each in wanted if len(found[each]) >= most]:
        newest = found[phrase]
        searched = last - min(newest.values()) + 1
        counts[phrase] = len(newest) * (last - first + 1) // searched
        others = [each for each in wanted if each != phrase and found[each]]
        if others:
            found[phrase] = newest | find(phrase, others)
    everywhere = {key for each in found.values() for key in each}
    if everywhere and db.rows("branch_tips", session=where.one_session())[1:]:
        allowed = tree.on_path(db, tip.key, everywhere)
        found = {
            phrase: {key: depth for key, depth in each.items() if key in allowed}
            for phrase, each in found.items()
        }
    depths = {phrase: sorted(each.values()) for phrase, each in found.items() if each}
    return PhraseOccurrences(depths, tip.depth, counts)


def _branch_scope(db: Database, where: SearchScope, tip: Node) -> str:
    """Return the scope of a search; none if most messages of the database are in the session.

    SQLite reads all messages of a scope, which takes longer than to skip those of other sessions.
    """
    newest = db.row("newest_key")
    is_most = newest is not None and tip.depth * _OTHER_SHARE >= (newest["key"] or 0)
    return "" if is_most and db.engine == "sqlite" else _scope(where)


def _stretch(db: Database, tip: Node, first: int, last: int) -> list[MessageLocation]:
    bottom = tree.ancestor(db, tip, last)
    rows = db.rows("spots_of_line", bottom=bottom.key, above=first - 1)
    found = sorted(map(MessageLocation._make, map(_location, rows)), key=attrgetter("depth"))
    if found and found[0].depth > max(first, 1):
        raise tree.missing(f"a message before {found[0].id}")
    return found


_location = itemgetter(*MessageLocation._fields)
