"""Verification: every row that is missing or changed is found, and gaps are noticed on read."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import enfold
from enfold.engine import Engine, Session
from enfold.engine.verification import verify
from enfold.errors import IntegrityError
from enfold.store import Database
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
    """A session with two branches, a summary, shortened results, a pin and work in the outbox."""
    session = await engine.session("chat", model=MODEL)
    await talk(session, 20)
    await session.compress()
    await read_again(session, 6)
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
    "message gone": ("DELETE FROM chat_messages WHERE seq = {middle}", "message"),
    "last message gone": ("DELETE FROM chat_messages WHERE seq = {last}", "session"),
    "bytes": ("UPDATE chat_messages SET content = {other} WHERE seq = {middle}", "message"),
    "identity": ("UPDATE chat_messages SET content_hash = 'x' WHERE seq = {middle}", "message"),
    "sums": ("UPDATE chat_messages SET path_tokens = 7 WHERE seq = {middle}", "message"),
    "jump": ("UPDATE chat_messages SET jump = {middle} - 2 WHERE seq = {middle}", "message"),
    "branch": ("DELETE FROM branch_tips", "branch"),
    "cutoff": ("UPDATE session_snapshots SET message_cutoff = {middle}", "snapshot"),
    "manifest": (
        'UPDATE session_snapshots SET manifest = \'[{{"message":"gone"}}]\'',
        "snapshot",
    ),
    "edit gone": ("DELETE FROM message_edits WHERE seq = (SELECT min(seq) FROM message_edits)", ""),
    "edit": ("UPDATE message_edits SET digest = 'x'", "edit"),
    "ledger": ('UPDATE message_edits SET ledger = \'{{"pointsTo":["gone"]}}\'', "edit"),
    "snapshot gone": ("DELETE FROM session_snapshots", "edit"),
    "text gone": ("DELETE FROM message_texts WHERE message = {middle}", "search"),
    "text": ("UPDATE message_texts SET text = 'zebra' WHERE message = {middle}", "search"),
    "pin": ("UPDATE pins SET message = 'gone'", "pin"),
    "outbox": ("UPDATE flush_outbox SET message_id = 'gone' || seq", "outbox"),
}


@pytest.mark.parametrize(("damage", "area"), DAMAGES.values(), ids=DAMAGES)
async def test_every_damage_is_found(
    engine: Engine, session: Session, damage: str, area: str
) -> None:
    first, last = await engine.store.read(_ends)
    other = f"(SELECT content FROM chat_messages WHERE seq = {first})"
    statement = damage.format(middle=first + 12, last=last, other=other)
    await engine.store.write(Database.run_statements, [statement])
    found = await verify(engine.store)
    assert not found.ok
    assert (area or "snapshot") in {problem.area for problem in found.problems}
    assert {problem.session for problem in found.problems} <= {"chat", None}


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
