"""Search: the same words find the same messages on both engines."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.samples import draft, drafts, numbered

from enfold.errors import InputError
from enfold.records import SearchScope, SessionRecord
from enfold.store import Store, search, sessions, tree
from enfold.store.search import locate
from enfold.text.words import phrases_of

TEXTS = (
    "The quick brown fox jumps over the lazy dog",
    "Please fix src/store/foo_bar.py and run pytest -x",
    "getUserName raises KeyError in HTTPServer",
    "我们使用数据库来存储会话",
    "データベースを使います。東京タワー",
    "한국어를 공부합니다",
    "Le café est fermé à Besançon",
    "dog brown quick",
    "it's 3.14, \"quoted\" and 'single' (or not) * AND ~ \\ NEAR/2",
)


@pytest.fixture
async def talk(store: Store, session: SessionRecord) -> SessionRecord:
    await store.write(tree.append, session.key, drafts(*TEXTS))
    return session


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fox", [0]),
        ("FOX quick", [0]),
        ("quick", [7, 0]),
        ('"quick brown"', [0]),
        ('"brown quick"', [7]),
        ("foo_bar.py", [1]),
        ("bar foo", [1]),
        ('"bar foo"', []),
        ("store/foo_bar", [1]),
        ("getUserName", [2]),
        ("getusername", [2]),
        ("user", [2]),
        ("server", [2]),
        ("数据", [3]),
        ("数据库", [3]),
        ("库来", [3]),
        ("存", [3]),
        ("话", [3]),
        ("据数", []),
        ("東京", [4]),
        ("タワー", [4]),
        ("使", [4, 3]),
        ("한국어", [5]),
        ("국어", [5]),
        ("cafe besancon", [6]),
        ("CAFÉ", [6]),
        ("caf", []),
        ("3.14", [8]),
        ("it's", [8]),
        ('"unclosed', []),
        ('fox" OR "cafe', []),
        ("* ~ ( ) \\ '", []),
        ("AND NEAR", [8]),
        ("", []),
    ],
    ids=repr,
)
async def test_queries_find_the_expected_messages(
    store: Store, talk: SessionRecord, query: str, expected: list[int]
) -> None:
    hits = await store.read(search.search, query, SearchScope(session=talk.key))
    assert [hit.depth - 1 for hit in hits] == expected
    best = await store.read(search.search, query, SearchScope(session=talk.key), best_first=True)
    assert {hit.message for hit in best} == {hit.message for hit in hits}
    assert all(hit.rank is None for hit in hits)
    assert all(hit.rank is not None for hit in best)


async def test_the_best_come_first(store: Store, session: SessionRecord) -> None:
    texts = ["tea " * 5, "coffee and tea and more words that have nothing to do with it " * 20]
    await store.write(tree.append, session.key, drafts(*texts))
    hits = await store.read(search.search, "tea", SearchScope(session=session.key), best_first=True)
    assert [hit.depth for hit in hits] == [1, 2]
    assert [hit.rank for hit in hits] == sorted((hit.rank or 0 for hit in hits), reverse=True)


async def test_a_hit_says_where(store: Store, talk: SessionRecord) -> None:
    (hit,) = await store.read(search.search, "brown fox", SearchScope(session=talk.key))
    assert (hit.session, hit.session_id, hit.role) == (talk.key, talk.id, "user")
    assert TEXTS[0][hit.start : hit.end] == "brown"
    assert hit.snippet == TEXTS[0]
    (message,) = await store.read(tree.path, talk.key, hit.message, above_depth=hit.depth - 1)
    assert message.created_at == hit.created_at


async def test_pages_of_hits(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, numbered(25))
    depths: list[int] = []
    last = None
    while hits := await store.read(
        search.search, "message", SearchScope(session=session.key), limit=7, after=last
    ):
        depths += [hit.depth for hit in hits]
        last = hits[-1]
    assert depths == list(range(25, 0, -1))


async def test_search_finds_old_messages(store: Store, session: SessionRecord) -> None:
    """More messages than PostgreSQL looks at before it asks its index."""
    await store.write(tree.append, session.key, drafts("a needle", *["some hay"] * 1_200))
    (hit,) = await store.read(search.search, "needle", SearchScope(session=session.key))
    assert hit.depth == 1
    depths: list[int] = []
    last = None
    while hits := await store.read(
        search.search, "hay", SearchScope(session=session.key), limit=500, after=last
    ):
        depths += [hit.depth for hit in hits]
        last = hits[-1]
    assert depths == list(range(1_201, 1, -1))


async def test_the_scope_limits_a_search(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, drafts("tea one", "tea two", "tea three"))
    branch = await store.write(tree.append, session.key, drafts("tea elsewhere"), line[0].id)
    other = await store.write(sessions.get_or_create, "ours", "other")
    theirs = await store.write(sessions.get_or_create, "theirs", "other")
    await store.write(tree.append, other.key, drafts("tea of another"))
    await store.write(tree.append, theirs.key, drafts("tea of theirs"))

    async def found(where: SearchScope, limit: int = 20) -> list[tuple[str, int]]:
        hits = await store.read(search.search, "tea", where, limit=limit)
        return [(hit.session_id, hit.depth) for hit in hits]

    mine = session.id
    assert await found(SearchScope(session=session.key)) == [
        (mine, 2),
        (mine, 3),
        (mine, 2),
        (mine, 1),
    ]
    assert await found(SearchScope(session=session.key, tip=branch[0].id)) == [(mine, 2), (mine, 1)]
    assert await found(SearchScope(session=session.key, tip=line[1].id)) == [(mine, 2), (mine, 1)]
    assert await found(SearchScope(session=session.key, tip=line[0].id), limit=1) == [(mine, 1)]
    assert await found(SearchScope(session=session.key, on_branch=True)) == [(mine, 2), (mine, 1)]
    ours = await found(SearchScope(namespace="ours"))
    assert ours == [("other", 1), (mine, 2), (mine, 3), (mine, 2), (mine, 1)]
    assert await found(SearchScope(namespace="nobody's")) == []
    of_many = (
        SearchScope(namespace="ours", tip=line[0].id),
        SearchScope(namespace="ours", on_branch=True),
    )
    for unclear in (SearchScope(), *of_many):
        with pytest.raises(InputError):
            await found(unclear)


async def test_a_huge_message_is_searched_to_its_end(store: Store, session: SessionRecord) -> None:
    words = [f"word{number}" for number in range(90_000)]
    words[70_000:70_003] = ["a", "needle", "here"]
    text = "needle " + "hay " * 3_000 + " ".join(words) + " 東京"
    assert len(text) > 900_000
    await store.write(tree.append, session.key, [draft(text)])
    for query in (
        "word89999",
        '"a needle here"',
        '"word69999 a"',
        "word1 word89999 word40000",
        "東京",
        f'"{" ".join(words[40_000:40_100])}"',
    ):
        (hit,) = await store.read(search.search, query, SearchScope(session=session.key))
        assert hit.end > hit.start
        assert text[hit.start : hit.end] in hit.snippet
    for query in ('"needle a"', "word90000", '"word1 word3"'):
        assert not await store.read(search.search, query, SearchScope(session=session.key))


async def test_every_phrase_of_a_long_text_is_found(store: Store, session: SessionRecord) -> None:
    """Also where a row of PostgreSQL's index ends and the next begins."""
    words = [f"w{number}" for number in range(600)]
    await store.write(tree.append, session.key, [draft(" ".join(words))])
    for at in range(0, 570, 13):
        query = f'"{" ".join(words[at : at + 30])}"'
        assert await store.read(search.search, query, SearchScope(session=session.key)), at


async def test_a_very_frequent_word_is_found(store: Store, session: SessionRecord) -> None:
    text = "the cat " * 1_000 + "the dog"
    await store.write(tree.append, session.key, [draft(text)])
    assert await store.read(search.search, '"the dog"', SearchScope(session=session.key))
    assert not await store.read(search.search, '"dog the"', SearchScope(session=session.key))


async def test_words_next_to_unstorable_characters_are_found(
    store: Store, session: SessionRecord
) -> None:
    await store.write(tree.append, session.key, [draft("zero\x00one half\ud83d two")])
    (hit,) = await store.read(search.search, "one two", SearchScope(session=session.key))
    assert hit.snippet == "zero\ufffdone half\ufffd two"


@given(query=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_query_is_an_error(store: Store, talk: SessionRecord, query: str) -> None:
    await store.read(search.search, query, SearchScope(session=talk.key), limit=1)


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("a b c", "b", "b"),
        ("a b c", '"b c"', "b c"),
        ("say café", "cafe", "café"),
        ("我们使用数据库", "数据库", "数据库"),
        ("我们使用数据库", "库", "库"),
        ("call getUserName()", "user", "getUserName"),
        ("The cat. The hat, the-end", '"the end" "the hat"', "The hat"),
        ("A catalogue of cats, not concatenated", "cats", "cats"),
        ("The theory of the thing", '"the thing"', "the thing"),
        ("nothing of it", "else", ""),
        ("src/a.pyx and src/a.py", "src/a.py", "src/a.py"),
        ("xsrc/a.py and src / a.py", "src/a.py", "src / a.py"),
        ("src a and py", "src/a.py", ""),
        ("srca.py", "src/a.py", ""),
    ],
)
def test_locating(text: str, query: str, found: str) -> None:
    start, end = locate(text, phrases_of(query))
    assert text[start:end] == found
