"""The index: its terms keep sessions and namespaces apart, and it forgets what it is told to."""

from __future__ import annotations

import re

from tests.store.samples import draft, drafts, numbered

from enfold.records import SearchScope, SessionKey, SessionRecord
from enfold.store import Database, Store, index, search, sessions, tree
from enfold.store.index import namespace_scope, session_scope


def test_scopes_are_distinct_and_harmless_words() -> None:
    assert session_scope(SessionKey(1)) != session_scope(SessionKey(11))
    assert namespace_scope("a") != namespace_scope("b")
    assert re.fullmatch(r"[a-z0-9\u00b7]+", namespace_scope("'; DROP TABLE \x00 sessions"))


async def test_a_scope_cannot_be_searched_for(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, drafts("tea"))
    for scope in (session_scope(session.key), namespace_scope("ours")):
        found = await store.read(search.search, scope, SearchScope(session=session.key))
        assert found == []


async def test_messages_without_text_are_not_indexed(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, [draft("")])
    assert await store.read(tree.path, session.key)


async def test_a_forgotten_session_leaves_no_words(store: Store) -> None:
    """Not even in the index's own tables, where a deleted secret could still be read."""
    kept = await store.write(sessions.get_or_create, "ours", "kept")
    await store.write(tree.append, kept.key, numbered(3))
    doomed = await store.write(sessions.get_or_create, "ours", "doomed")
    await store.write(tree.append, doomed.key, drafts("my password is swordfish", "数据库"))
    await store.write(sessions.delete, doomed.key)

    def terms(db: Database) -> set[str]:
        if db.engine == "sqlite":
            db.run_statements(
                ["CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, message_words, 'row')"]
            )
            rows = db._cursor().execute("SELECT term FROM temp.terms").fetchall()
        else:
            query = "SELECT word AS term FROM ts_stat('SELECT words FROM message_words')"
            rows = db._cursor().execute(query).fetchall()
        return {row["term"] for row in rows}

    left = await store.write(terms)
    assert {"message", "1", "2", "3"} < left
    assert not left & {"password", "swordfish", "数据", session_scope(doomed.key)}


async def test_forgetting_a_long_session(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, numbered(2_500))
    await store.write(index.forget_session, session.key)
    if store.engine == "sqlite":
        assert not await store.read(search.search, "message", SearchScope(session=session.key))
        await store.write(
            Database.run_statements,
            ["INSERT INTO message_words (message_words) VALUES ('integrity-check')"],
        )
