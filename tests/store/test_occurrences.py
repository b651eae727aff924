"""Occurrences: the same places on both engines, of the session's own branch alone."""

from __future__ import annotations

import pytest
from tests.store.samples import drafts

from enfold.errors import InputError, NotFoundError
from enfold.records import PhraseOccurrences, SearchScope, SessionRecord
from enfold.store import Store, search, sessions, tree
from enfold.text.words import Phrase

TEXTS = ("The transcripts are late", "yes", "transcribers were hired", "我们使用数据库", "tea")
TRANSCRI = Phrase(("transcri",), prefix=True)
TEA = Phrase(("tea",))
NOWHERE = Phrase(("sextant",))
PAIR = Phrase(("数据",))


def everything(found: PhraseOccurrences) -> list[tuple[int, int]]:
    return [(1, found.length)]


async def test_word_beginnings_are_found_with_their_places(
    store: Store, session: SessionRecord
) -> None:
    await store.write(tree.append, session.key, drafts(*TEXTS))
    found, stretches = await store.read(
        search.search_around,
        SearchScope(session=session.key),
        (TRANSCRI, TEA, NOWHERE, PAIR),
        everything,
        most=10,
    )
    assert found == PhraseOccurrences({TRANSCRI: [1, 3], TEA: [5], PAIR: [4]}, 5)
    (spots,) = stretches
    assert [spot.depth for spot in spots] == [1, 2, 3, 4, 5]
    found_texts = await store.read(search.texts, spots)
    assert [found_texts[spot.key] for spot in spots] == list(TEXTS)


async def test_the_newest_occurrences_are_looked_at(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, drafts(*(f"tea {n}" for n in range(9))))
    found, stretches = await store.read(
        search.search_around,
        SearchScope(session=session.key),
        (TEA,),
        lambda _: [(2, 3), (8, 9)],
        most=4,
    )
    assert found.depths == {TEA: [6, 7, 8, 9]}
    assert [[spot.depth for spot in spots] for spots in stretches] == [[2, 3], [8, 9]]


async def test_other_branches_and_sessions_are_not_seen(
    store: Store, session: SessionRecord
) -> None:
    other = await store.write(sessions.get_or_create, "ours", "another")
    await store.write(tree.append, other.key, drafts("their tea"))
    first, _ = await store.write(tree.append, session.key, drafts("coffee", "tea, then left"))
    await store.write(tree.append, session.key, drafts("tea here"), first.id)
    found, stretches = await store.read(
        search.search_around, SearchScope(session=session.key), (TEA,), everything, most=10
    )
    assert found == PhraseOccurrences({TEA: [2]}, 2)
    found_texts = await store.read(search.texts, stretches[0])
    assert sorted(found_texts.values()) == ["coffee", "tea here"]


async def test_an_empty_session_has_none(store: Store, session: SessionRecord) -> None:
    found, stretches = await store.read(
        search.search_around, SearchScope(session=session.key), (TEA,), lambda _: [], most=10
    )
    assert (found, stretches) == (PhraseOccurrences({}, 0), [])


async def test_a_tip_says_which_branch(store: Store, session: SessionRecord) -> None:
    first, second = await store.write(tree.append, session.key, drafts("coffee", "tea"))
    await store.write(tree.append, session.key, drafts("cocoa"), first.id)
    where = SearchScope(session=session.key, tip=second.id)
    found, _ = await store.read(search.search_around, where, (TEA,), everything, most=10)
    assert found == PhraseOccurrences({TEA: [2]}, 2)
    assert (await store.read(tree.at_position, session.key, 2, second.id)).id == second.id
    with pytest.raises(NotFoundError, match="this branch has 2"):
        await store.read(tree.at_position, session.key, 3, second.id)
    with pytest.raises(InputError, match="needs a session"):
        await store.read(
            search.search_around, SearchScope(namespace=""), (TEA,), everything, most=1
        )


async def test_a_frequent_word_is_found_where_another_word_is(
    store: Store, session: SessionRecord
) -> None:
    texts = ["tea and transcripts", *(f"tea {n}" for n in range(8)), "the end"]
    await store.write(tree.append, session.key, drafts(*texts))
    found, _ = await store.read(
        search.search_around, SearchScope(session=session.key), (TEA, TRANSCRI), everything, most=4
    )
    assert found.depths == {TEA: [1, 6, 7, 8, 9], TRANSCRI: [1]}
    assert found.count(TEA) == 8  # estimated: 4 in the last 5 of 10 messages
    assert found.count(TRANSCRI) == 1


@pytest.mark.parametrize(("ours", "theirs"), [(3, 60), (60, 3)])
async def test_sessions_of_any_size_are_separate(
    store: Store, session: SessionRecord, ours: int, theirs: int
) -> None:
    other = await store.write(sessions.get_or_create, "ours", "another")
    for key, number in ((session.key, ours), (other.key, theirs)):
        texts = [f"tea {n}" for n in range(number)]
        await store.write(tree.append, key, drafts(*texts))
    found, _ = await store.read(
        search.search_around, SearchScope(session=session.key), (TEA,), everything, most=100
    )
    assert found == PhraseOccurrences({TEA: list(range(1, ours + 1))}, ours)


async def test_messages_after_the_tip_are_not_found(store: Store, session: SessionRecord) -> None:
    _, second, _ = await store.write(tree.append, session.key, drafts("tea", "no", "tea again"))
    where = SearchScope(session=session.key, tip=second.id)
    found, _ = await store.read(search.search_around, where, (TEA,), everything, most=10)
    assert found == PhraseOccurrences({TEA: [1]}, 2)
