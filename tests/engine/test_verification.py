"""Verification: every row that is missing or changed is found, and gaps are noticed on read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

import enfold
from enfold.engine import Engine, Session
from enfold.engine.verification import check, verify
from enfold.errors import IntegrityError
from enfold.store import Database, integrity, tree
from enfold.store.integrity import IntegrityFault
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.engine.conftest import MODEL, talk
from tests.engine.test_originals import read_again


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    scripted = ScriptedSummarizer("They agreed on the plan.")
    async with enfold.open(url, summarizers={"scripted": scripted}) as opened:
        await opened.models.edit(MODEL, max_input=4_000, max_output=20_000, retention_tokens=300)
        await opened.set("summarizer", "scripted")
        yield opened


@pytest.fixture
async def session(engine: Engine) -> Session:
    """A session with branches, a summary, shortened results, an undo, a pin and outbox entries."""
    session = await engine.session("chat", model=MODEL)
    await talk(session, 20)
    await session.compress()
    await read_again(session, 6)
    await session.compress(strategy="lossless")
    await session.undo()
    await session.compress(strategy="lossless")
    first, *_ = await engine.store.read(_message_ids)
    await session.append(assistant("Another branch."), after=first)
    await session.pin(first)
    return session


def _message_ids(db: Database) -> list[str]:
    rows = db._cursor().execute("SELECT id FROM chat_messages ORDER BY seq").fetchall()
    return [row["id"] for row in rows]


async def test_a_whole_store_has_no_problem(engine: Engine, session: Session) -> None:
    found = await verify(engine.store)
    assert found.problems == ()
    assert (found.sessions, found.messages) == (1, 66)
    assert found.snapshots >= 2
    assert found.edits > 0
    assert found.search_rows > 60


DAMAGES = {
    "setting": ("UPDATE settings SET value = '{{scripted'", "setting"),
    "profile": ("INSERT INTO profiles VALUES ('odd', '{{', 1, 1)", "profile"),
    "edit of another message": ("UPDATE message_edits SET message = {middle} - 15", "snapshot"),
    "message gone": ("DELETE FROM chat_messages WHERE seq = {middle}", "message"),
    "last message gone": ("DELETE FROM chat_messages WHERE seq = {last}", "session"),
    "bytes": ("UPDATE chat_messages SET content = {other} WHERE seq = {middle}", "message"),
    "identity": ("UPDATE chat_messages SET content_hash = 'x' WHERE seq = {middle}", "message"),
    "sums": ("UPDATE chat_messages SET path_tokens = 7 WHERE seq = {middle}", "message"),
    "jump": ("UPDATE chat_messages SET jump = {middle} - 2 WHERE seq = {middle}", "message"),
    "jump in a circle": ("UPDATE chat_messages SET jump = seq WHERE seq = {middle}", "message"),
    "parent in a circle": ("UPDATE chat_messages SET parent = seq WHERE seq = {middle}", "message"),
    "role": ("UPDATE chat_messages SET role = 'tool' WHERE seq = {middle}", "message"),
    "no dialect": ("UPDATE chat_messages SET dialect = 'x' WHERE seq = {middle}", "message"),
    "dialect": ("UPDATE chat_messages SET dialect = 'gemini' WHERE seq = {middle}", "search"),
    "branch": ("DELETE FROM branch_tips", "branch"),
    "cutoff": ("UPDATE session_snapshots SET message_cutoff = {middle}", "snapshot"),
    "manifest": (
        'UPDATE session_snapshots SET manifest = \'[{{"message":"gone"}}]\'',
        "snapshot",
    ),
    "manifest cut": ("UPDATE session_snapshots SET manifest = '[]'", "snapshot"),
    "summary": (
        'UPDATE session_snapshots SET content_json = \'{{"summaryText":"Another."}}\'',
        "snapshot",
    ),
    "edit gone": (
        "DELETE FROM message_edits WHERE seq = (SELECT min(seq) FROM message_edits)",
        "snapshot",
    ),
    "edit": ("UPDATE message_edits SET digest = 'x'", "edit"),
    "ledger": ('UPDATE message_edits SET ledger = \'{{"pointsTo":["gone"]}}\'', "edit"),
    "ledger cut": ("UPDATE message_edits SET ledger = NULL", "edit"),
    "snapshot gone": ("DELETE FROM session_snapshots", "edit"),
    "tokens": (
        (
            "UPDATE chat_messages SET path_tokens = path_tokens + 9000, "
            "tokens = tokens + CASE WHEN seq = {first} THEN 9000 ELSE 0 END"
        ),
        "message",
    ),
    "settings": ("UPDATE sessions SET settings = '[]'", "session"),
    "undo": ("UPDATE snapshot_undos SET message = -1", "undo"),
    "text gone": ("DELETE FROM message_texts WHERE message = {middle}", "search"),
    "text": ("UPDATE message_texts SET text = 'zebra' WHERE message = {middle}", "search"),
    "text cut": ("UPDATE message_texts SET text = '' WHERE message = {middle}", "search"),
    "pin": ("UPDATE pins SET message = 'gone'", "pin"),
    "outbox": ("UPDATE flush_outbox SET message_id = 'gone' || seq", "outbox"),
}


async def test_every_damage_is_found(engine: Engine, session: Session) -> None:
    first, last = await engine.store.read(_ends)
    other = f"(SELECT content FROM chat_messages WHERE seq = {first})"
    for name, (damage, area) in DAMAGES.items():
        statement = damage.format(first=first, middle=first + 12, last=last, other=other)
        with pytest.raises(_TakenBack) as caught:
            await engine.store.write(_damage_and_check, statement)
        assert area in {problem.area for problem in caught.value.problems}, name
    assert (await verify(engine.store)).ok


class _TakenBack(Exception):  # noqa: N818 - it ends a transaction, nothing is wrong
    def __init__(self, problems: Sequence[IntegrityFault]) -> None:
        self.problems = problems


def _damage_and_check(db: Database, statement: str) -> None:
    db.run_statements([statement])
    (head,) = integrity.heads(db, 0)
    raise _TakenBack([*integrity.check_database(db), *check(db, head.key).problems])


def _ends(db: Database) -> tuple[int, int]:
    query = "SELECT min(seq) AS first, (SELECT tip FROM sessions) AS last FROM chat_messages"
    row = db._cursor().execute(query).fetchone()
    return row["first"], row["last"]


async def test_a_gap_in_a_branch_is_an_error_on_read(engine: Engine) -> None:
    session = await engine.session("chat", model=MODEL)
    await session.append(*(user(f"message {number}") for number in range(40)))
    first, last = await engine.store.read(_ends)
    await engine.store.write(
        Database.run_statements, [f"DELETE FROM chat_messages WHERE seq = {first + 10}"]
    )
    with pytest.raises(IntegrityError, match=r"is missing.*enfold verify"):
        await session.messages()
    with pytest.raises(IntegrityError):
        await session.prepare()
    await engine.store.write(
        Database.run_statements, [f"DELETE FROM chat_messages WHERE seq = {last}"]
    )
    with pytest.raises(IntegrityError, match="last message"):
        await session.messages()
    with pytest.raises(IntegrityError):
        await session.append(user("one more"))


async def test_a_circle_of_parents_is_an_error_on_read(engine: Engine) -> None:
    session = await engine.session("chat", model=MODEL)
    await session.append(*(user(f"message {number}") for number in range(40)))
    key = (await session.record()).key
    await engine.store.write(Database.run_statements, ["UPDATE chat_messages SET jump = seq"])
    with pytest.raises(IntegrityError, match=r"is missing.*enfold verify"):
        await engine.store.read(tree.at_position, key, 5)
    assert len(await session.messages()) == 40
    await engine.store.write(Database.run_statements, ["UPDATE chat_messages SET parent = seq"])
    with pytest.raises(IntegrityError):
        await session.messages()


async def test_a_namespace_is_verified_alone(engine: Engine) -> None:
    for namespace in ("ann", "ben"):
        session = await engine.session("chat", namespace=namespace)
        await session.append(user("hello"), user("and more"))
    broken = (
        "UPDATE chat_messages SET tokens = tokens + 1 WHERE session = "
        "(SELECT key FROM sessions WHERE namespace = 'ben')"
    )
    await engine.store.write(Database.run_statements, [broken])
    assert (await verify(engine.store, namespace="ann")).ok
    assert not (await verify(engine.store, namespace="ben", session="chat")).ok
