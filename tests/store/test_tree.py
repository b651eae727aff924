"""The tree of messages: one line or many branches, recognised, walked and paged."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import permutations

import pytest
from tests.store.samples import draft, drafts, numbered, texts

from enfold.errors import IntegrityError, NotFoundError
from enfold.identity import chain
from enfold.records import CURRENT_TIP, ROOT, MessageDraft, SessionRecord, UsageEvent
from enfold.store import Database, Store, catalog, sessions, tree


async def test_messages_form_a_line(store: Store, session: SessionRecord) -> None:
    first = await store.write(tree.append, session.key, drafts("a", "b"))
    second = await store.write(tree.append, session.key, drafts("c"), CURRENT_TIP)
    line = await store.read(tree.path, session.key)
    assert line == first + second
    assert texts(line) == ["a", "b", "c"]
    assert [message.depth for message in line] == [1, 2, 3]
    assert [message.parent for message in line] == [None, line[0].id, line[1].id]
    assert [message.path_tokens for message in line] == [1, 2, 3]
    assert [message.role for message in line] == ["user", "assistant", "user"]
    now = await store.read(sessions.get, session.key)
    assert (now.tip, now.depth, now.tokens) == (line[-1].id, 3, 3)


async def test_ids_are_the_identities(store: Store, session: SessionRecord) -> None:
    messages = numbered(5)
    stored = await store.write(tree.append, session.key, messages)
    assert [message.id for message in stored] == chain(each.content_hash for each in messages)


async def test_every_field_comes_back(store: Store, session: SessionRecord) -> None:
    given_draft = MessageDraft(
        role="user",
        dialect="anthropic",
        body=b'{"content": "\\u0000 \\ud83d", "n": 123456789012345678901234567890, "z":1, "a":2}',
        content_hash="c" * 32,
        tokens=7,
        tokenizer="o200k_base",
        estimate=85,
        search_text="\x00 \ud83d",
        client_id="msg\x00\ud83d",
        name="Zo\u00eb",
        created_at=1_700_000_000_123,
    )
    await store.write(tree.append, session.key, [given_draft])
    (stored,) = await store.read(tree.path, session.key)
    for field in ("role", "dialect", "body", "content_hash", "tokens", "tokenizer", "estimate"):
        assert getattr(stored, field) == getattr(given_draft, field)
    assert stored.created_at == 1_700_000_000_123
    assert stored.name == "Zo\u00eb"
    assert stored.client_id == "msg\ufffd\ufffd"
    assert (stored.input_tokens, stored.output_tokens) == (None, None)
    assert await store.read(tree.get, session.key, stored.id) == stored


@pytest.mark.parametrize("body", [b"\x00", bytes(range(256)), b"", b"x" * 1_000_000], ids=len)
async def test_bytes_come_back_as_they_went_in(
    store: Store, session: SessionRecord, body: bytes
) -> None:
    odd = MessageDraft("user", "openai", body, "c" * 32, 1, "characters")
    await store.write(tree.append, session.key, [odd])
    (stored,) = await store.read(tree.path, session.key)
    assert stored.body == body


async def test_writing_again_finds_what_is_there(store: Store, session: SessionRecord) -> None:
    messages = numbered(6)
    first = await store.write(tree.append, session.key, messages[:4], ROOT)
    again = await store.write(tree.append, session.key, messages, ROOT)
    assert again[:4] == first
    assert await store.read(tree.path, session.key) == again
    assert len(await store.read(tree.branches, session.key)) == 1
    back = await store.write(tree.append, session.key, messages[:2], ROOT)
    assert back == again[:2]
    assert (await store.read(sessions.get, session.key)).tip == again[1].id


@pytest.mark.parametrize("order", list(permutations((2, 4, 6))), ids=str)
async def test_records_of_a_growing_history_may_come_in_any_order(
    store: Store, session: SessionRecord, order: tuple[int, ...]
) -> None:
    messages = numbered(6)
    for length in order:
        await store.write(tree.append, session.key, messages[:length], ROOT, forward_only=True)
    assert len(await store.read(tree.path, session.key)) == 6
    assert len(await store.read(tree.branches, session.key)) == 1


async def test_the_same_words_later_are_another_message(
    store: Store, session: SessionRecord
) -> None:
    one = await store.write(tree.append, session.key, [draft("ok")])
    two = await store.write(tree.append, session.key, [draft("ok")])
    assert one[0].id != two[0].id
    assert len(await store.read(tree.path, session.key)) == 2


async def test_after_another_message_a_branch_begins(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(4))
    other = await store.write(tree.append, session.key, drafts("x", "y"), line[1].id)
    assert texts(await store.read(tree.path, session.key)) == ["message 1", "message 2", "x", "y"]
    assert await store.read(tree.path, session.key, line[-1].id) == line
    found = await store.read(tree.branches, session.key)
    assert [(each.tip, each.depth, each.tokens) for each in found] == [
        (line[-1].id, 4, line[-1].path_tokens),
        (other[-1].id, 4, other[-1].path_tokens),
    ]
    children = await store.read(tree.children, session.key, line[1].id)
    assert children == (line[2], other[0])
    assert await store.read(tree.children, session.key, other[-1].id) == ()


async def test_a_session_may_begin_again(store: Store, session: SessionRecord) -> None:
    first = await store.write(tree.append, session.key, drafts("a"))
    other = await store.write(tree.append, session.key, drafts("b"), ROOT)
    assert other[0].parent is None
    assert await store.read(tree.children, session.key, None) == first + other


async def test_the_tip_can_be_moved(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(3))
    await store.write(tree.set_tip, session.key, line[0].id)
    assert await store.read(tree.path, session.key) == line[:1]
    await store.write(tree.append, session.key, drafts("x"))
    assert texts(await store.read(tree.path, session.key)) == ["message 1", "x"]
    await store.write(tree.set_tip, session.key, None)
    assert await store.read(tree.path, session.key) == ()


async def test_only_what_is_below_a_depth_is_read(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(9))
    assert await store.read(tree.path, session.key, above_depth=6) == line[6:]
    assert await store.read(tree.path, session.key, line[4].id, above_depth=2) == line[2:5]
    assert await store.read(tree.path, session.key, above_depth=9) == ()
    assert await store.read(tree.path, session.key, above_depth=99) == ()


async def test_pages(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(40))
    other = await store.write(tree.append, session.key, drafts("x", "y"), line[19].id)
    await store.write(tree.set_tip, session.key, line[-1].id)

    async def page(**where: object) -> tuple[object, ...]:
        return await store.read(tree.page, session.key, limit=7, **where)  # type: ignore[arg-type]  # the cases are a table

    assert await page() == line[33:]
    assert await page(before=line[33].id) == line[26:33]
    assert await page(before=line[3].id) == line[:3]
    assert await page(before=line[0].id) == ()
    assert await page(after=line[3].id) == line[4:11]
    assert await page(after=line[36].id) == line[37:]
    assert await page(after=line[-1].id) == ()
    assert await page(tip=other[-1].id) == (*line[15:20], *other)
    assert await page(tip=other[-1].id, after=line[16].id) == (*line[17:20], *other)
    assert await page(tip=line[10].id) == line[4:11]
    with pytest.raises(NotFoundError, match="not on the branch"):
        await page(after=other[0].id)


async def test_a_stretch_is_had_by_its_places(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(40))
    other = await store.write(tree.append, session.key, drafts("x", "y"), line[19].id)
    tip = line[-1].id

    async def between(first: int, last: int, tip: str | None = tip) -> tuple[object, ...]:
        return await store.read(tree.between, session.key, tip, first, last)

    assert await between(1, 10) == line[:10]
    assert await between(0, 3) == line[:3]
    assert await between(31, 999) == line[30:]
    assert await between(40, 40) == line[39:]
    assert await between(41, 50) == ()
    assert await between(5, 4) == ()
    assert await between(20, 30, other[-1].id) == (line[19], *other)


async def test_an_empty_session_has_empty_answers(store: Store, session: SessionRecord) -> None:
    assert await store.write(tree.append, session.key, []) == ()
    assert await store.read(tree.path, session.key) == ()
    assert await store.read(tree.page, session.key) == ()
    assert await store.read(tree.between, session.key, None, 1, 50) == ()
    assert await store.read(tree.branches, session.key) == ()
    assert (await store.read(tree.recognise, ["c" * 32], session=session.key)).count == 0


async def test_messages_of_other_sessions_are_not_there(
    store: Store, session: SessionRecord
) -> None:
    other = await store.write(sessions.get_or_create, "ours", "another")
    mine = await store.write(tree.append, session.key, drafts("mine"))
    theirs = await store.write(tree.append, other.key, drafts("theirs"))
    for refused in (
        store.write(tree.append, session.key, drafts("x"), theirs[0].id),
        store.write(tree.set_tip, session.key, theirs[0].id),
        store.read(tree.path, session.key, theirs[0].id),
        store.read(tree.get, session.key, theirs[0].id),
    ):
        with pytest.raises(NotFoundError, match=theirs[0].id):
            await refused
    assert await store.read(tree.path, session.key) == mine


@pytest.mark.parametrize("likely", [0, 2, 13, 40, 99])
async def test_a_history_is_recognised_as_far_as_it_is_known(
    store: Store, session: SessionRecord, likely: int
) -> None:
    line = await store.write(tree.append, session.key, numbered(40))
    contents = [message.content_hash for message in line]
    for stored_count in (0, 1, 2, 13, 39, 40):
        for new in (0, 1, 2, 9):
            history = contents[:stored_count] + [f"{number:032}" for number in range(new)]
            ids, key = chain(history), session.key
            found = await store.read(tree.recognise, ids, session=key, likely=likely)
            assert found.count == stored_count
            assert found.tip == (line[stored_count - 1].id if stored_count else None)
            assert found.session == (session.key if stored_count else None)


async def test_a_history_is_recognised_in_its_namespace_only(store: Store) -> None:
    messages = numbered(5)
    contents = [each.content_hash for each in messages]
    short = await store.write(sessions.get_or_create, "ours", "short")
    long = await store.write(sessions.get_or_create, "ours", "long")
    theirs = await store.write(sessions.get_or_create, "theirs", "all")
    await store.write(tree.append, long.key, messages[:4])
    await store.write(tree.append, short.key, messages[:2])
    await store.write(tree.append, theirs.key, messages)
    found = await store.read(tree.recognise, chain(contents), namespace="ours")
    assert (found.count, found.session) == (4, long.key)
    shared = await store.read(tree.recognise, chain(contents[:2]), namespace="ours")
    assert (shared.count, shared.session) == (2, long.key)
    assert (await store.read(tree.recognise, chain(contents), namespace="nobody's")).count == 0


async def test_usage_that_the_provider_reports_is_kept(
    store: Store, session: SessionRecord
) -> None:
    (message,) = await store.write(tree.append, session.key, drafts("a"))
    used = UsageEvent("reply", input_tokens=10, session=session.key, message_id=message.id)
    await store.write(catalog.add_usage, [used, replace(used, message_id="not stored yet")])
    stored = await store.read(tree.get, session.key, message.id)
    assert (stored.input_tokens, stored.output_tokens, stored.tokens) == (10, None, 1)


async def test_appends_at_the_same_time_make_one_line(store: Store, session: SessionRecord) -> None:
    await asyncio.gather(
        *(store.write(tree.append, session.key, [draft(f"from {n}")]) for n in range(20))
    )
    line = await store.read(tree.path, session.key)
    assert sorted(texts(line)) == sorted(f"from {n}" for n in range(20))
    assert len(await store.read(tree.branches, session.key)) == 1


async def test_changed_bytes_are_noticed(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(3))

    def damage(db: Database) -> None:
        kind = "BLOB" if db.engine == "sqlite" else "BYTEA"
        change = f"UPDATE chat_messages SET content = CAST('x' AS {kind}) WHERE seq = {line[1].key}"
        db.run_statements([change])

    await store.write(damage)
    with pytest.raises(IntegrityError, match=line[1].id):
        await store.read(tree.path, session.key)
    assert await store.read(tree.path, session.key, above_depth=2) == line[2:]


async def test_stepping_back_leaves_the_message_on_its_own_branch(
    store: Store, session: SessionRecord
) -> None:
    stored = await store.write(tree.append, session.key, drafts("a", "b"))
    assert await store.write(tree.step_back, session.key) == stored[1]
    assert await store.read(tree.path, session.key) == stored[:1]
    assert await store.read(tree.get, session.key, stored[1].id) == stored[1]
    assert await store.write(tree.step_back, session.key) == stored[0]
    assert await store.write(tree.step_back, session.key) is None


async def test_a_message_of_another_branch_is_not_on_this_one(
    store: Store, session: SessionRecord
) -> None:
    stored = await store.write(tree.append, session.key, drafts("a", "b"))
    assert await store.read(tree.on_branch, session.key, stored[1].id) == stored[1]
    await store.write(tree.step_back, session.key)
    with pytest.raises(NotFoundError):
        await store.read(tree.on_branch, session.key, stored[1].id)
    await store.write(tree.set_tip, session.key, None)
    with pytest.raises(NotFoundError):
        await store.read(tree.on_branch, session.key, stored[0].id)
