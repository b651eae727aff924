"""Which messages a question is about: those with its words, and those near them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from enfold.engine.relevance import MAX_RANKED, RANKED_WHOLE, has_answer, ranges, rank
from enfold.records import MessageLocation, PhraseOccurrences
from enfold.text.words import Phrase

TEA, POT, COMMON = (Phrase((word,)) for word in ("tea", "pot", "common"))


def branch(
    length: int, *, tokens: int = 20, names: dict[int, str] | None = None
) -> list[MessageLocation]:
    named = names or {}
    return [
        MessageLocation(depth, str(depth), depth, "user", named.get(depth), tokens)
        for depth in range(1, length + 1)
    ]


def order(found: PhraseOccurrences, spots: list[MessageLocation]) -> list[int]:
    ranked = rank(found.depths, found, [spots])
    best = sorted(ranked, key=lambda each: each.relevance, reverse=True)
    return [each.location.depth for each in best]


def test_messages_with_the_word_come_first_then_their_neighbours() -> None:
    found = PhraseOccurrences({TEA: [50]}, 100)
    ranked = order(found, branch(100))
    assert ranked[:2] == [50, 51]
    assert ranked.index(49) < ranked.index(48) < ranked.index(20)
    assert ranked[-1] == 1


def test_later_neighbours_rank_above_earlier_ones() -> None:
    ranked = order(PhraseOccurrences({TEA: [50]}, 100), branch(100))
    assert all(ranked.index(50 + n) < ranked.index(50 - n) for n in range(1, 50))


def test_rare_words_weigh_more_than_frequent_ones() -> None:
    found = PhraseOccurrences({TEA: [20], COMMON: [*range(60, 100)]}, 100)
    assert order(found, branch(100))[0] == 20


def test_different_words_weigh_more_than_repetitions() -> None:
    found = PhraseOccurrences({TEA: [20, 70, 71, 72], POT: [21, 150, 151, 152]}, 200)
    ranked = order(found, branch(200))
    assert ranked[0] == 21
    assert ranked.index(22) < min(ranked.index(73), ranked.index(153))


def test_a_discussion_counts_more_than_a_word_in_passing() -> None:
    found = PhraseOccurrences({TEA: [*range(20, 40, 2), 180]}, 200)
    ranked = order(found, branch(200))
    assert ranked.index(29) < ranked.index(180)


def test_a_word_counts_more_where_it_is_new() -> None:
    found = PhraseOccurrences({TEA: [20, *range(50, 150, 2), 180]}, 200)
    ranked = order(found, branch(200, tokens=200))
    assert ranked.index(20) < ranked.index(180)


def test_words_fit_if_several_messages_have_them() -> None:
    words = [TEA, POT, *(Phrase((word,)) for word in ("cup", "milk", "sugar", "spoon"))]
    once = PhraseOccurrences({TEA: [20], POT: [20]}, 1_000)
    often = PhraseOccurrences({TEA: [20, 40, 60], POT: [20, 40, 60]}, 1_000)
    assert not has_answer(words, once, [branch(1_000)])
    assert has_answer(words, often, [branch(1_000)])


def test_one_message_must_have_some_words_of_a_short_question() -> None:
    words = [TEA, POT, Phrase(("cup",)), Phrase(("milk",))]
    scattered = PhraseOccurrences({each: [20 + at] for at, each in enumerate(words[:3])}, 1_000)
    together = PhraseOccurrences({TEA: [20], POT: [20], words[2]: [22]}, 1_000)
    assert not has_answer(words, scattered, [branch(1_000)])
    assert has_answer(words, together, [branch(1_000)])


def test_half_of_the_words_on_a_date_are_no_answer() -> None:
    one, both = PhraseOccurrences({TEA: [20]}, 100), PhraseOccurrences({TEA: [20], POT: [20]}, 100)
    assert not has_answer([TEA, POT], one, [branch(100)], is_dated=True)
    assert has_answer([TEA, POT], both, [branch(100)], is_dated=True)


def test_a_vague_word_counts_less() -> None:
    found = PhraseOccurrences({TEA: [20], POT: [80]}, 100)
    ranked = {
        each.location.depth: each.relevance
        for each in rank(found.depths, found, [branch(100)], vague={POT})
    }
    assert ranked[20] > ranked[80]


def test_the_name_of_a_speaker_counts() -> None:
    ada = Phrase(("ada",))
    found = PhraseOccurrences({TEA: [50], ada: [90]}, 100)
    silent = rank(found.depths, found, [branch(100)])
    named = rank(found.depths, found, [branch(100, names={52: "Ada B", 48: "Bob C"})])
    before = {each.location.depth: each.relevance for each in silent}
    after = {each.location.depth: each.relevance for each in named}
    assert after[52] > before[52]
    assert after[52] > after[48]


def test_a_long_message_does_not_separate_its_neighbours() -> None:
    spots = branch(9)
    spots[4] = MessageLocation(5, "5", 5, "tool", None, 50_000)
    found = PhraseOccurrences({TEA: [4]}, 9)
    near = {each.location.depth: each.relevance for each in rank([TEA], found, [spots])}
    assert near[6] > 0.3 * near[3]


def test_the_newest_of_equals_comes_first() -> None:
    found = PhraseOccurrences({TEA: [10, 90]}, 99)
    assert order(found, branch(99))[:2] == [90, 10]


@given(
    st.dictionaries(
        st.sampled_from([TEA, POT, COMMON]),
        st.lists(st.integers(1, 30_000), min_size=1, max_size=600, unique=True).map(sorted),
    )
)
def test_ranges_of_a_long_branch_are_few_and_do_not_overlap(
    depths: dict[Phrase, list[int]],
) -> None:
    stretches = ranges(PhraseOccurrences(depths, 30_000))
    assert all(1 <= first <= last <= 30_000 for first, last in stretches)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(stretches))
    assert sum(last - first + 1 for first, last in stretches) <= MAX_RANKED
    assert bool(stretches) == bool(depths)


@given(st.integers(1, RANKED_WHOLE), st.data())
def test_a_short_branch_is_ranked_whole(length: int, data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, length))
    assert ranges(PhraseOccurrences({TEA: [depth]}, length)) == [(1, length)]


@given(st.integers(1, 30_000), st.lists(st.integers(1, 30_000), max_size=600, unique=True))
def test_ranges_contain_the_place_where_all_words_are(place: int, others: list[int]) -> None:
    depths = {
        TEA: sorted({place, *others[::2]}),
        POT: sorted({place, *others[1::2]}),
        COMMON: [place],
    }
    stretches = ranges(PhraseOccurrences(depths, 30_000))
    assert any(first <= place <= last for first, last in stretches)


def test_a_phrase_whose_places_are_not_all_listed_weighs_by_its_estimated_number() -> None:
    found = PhraseOccurrences({TEA: [20], POT: [80]}, 100, counts={POT: 60})
    assert order(found, branch(100))[0] == 20
