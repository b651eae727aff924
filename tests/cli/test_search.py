"""`enfold search`: finds all messages, summarized or not."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Enfold


def test_words_are_found_with_their_place(festival: Enfold) -> None:
    outcome = festival("search", "E-4031")
    head, snippet = outcome.text.splitlines()
    assert outcome.stderr_text == "1 message found\n"
    assert head.startswith("festival #")
    assert " assistant " in head
    assert "error E-4031" in snippet


def test_search_finds_summarized_messages(festival: Enfold) -> None:
    before = festival("search", "--json", '"fire office"').json
    assert before
    festival("sessions", "compress", "festival")
    assert festival("search", "--json", '"fire office"').json == before


def test_phrases_stand_together(festival: Enfold) -> None:
    assert festival("search", "--json", "office fire").json
    assert festival("search", "--json", '"office fire"').json == []


def test_the_number_of_hits_is_limited(festival: Enfold) -> None:
    assert len(festival("search", "--json", "--limit", "2", "euros").json) == 2
    assert len(festival("search", "--json", "euros").json) > 2


def test_best_first_is_another_order(festival: Enfold) -> None:
    newest = [hit["message"] for hit in festival("search", "--json", "noise permit").json]
    best = [hit["message"] for hit in festival("search", "--json", "--best", "noise permit").json]
    assert sorted(newest) == sorted(best) != []


def test_a_search_can_stay_in_a_session(festival: Enfold) -> None:
    festival("import", "--session", "other", stdin=b'[{"role":"user","content":"Lindvik"}]')
    everywhere = {hit["session_id"] for hit in festival("search", "--json", "Lindvik").json}
    assert everywhere == {"festival", "other"}
    inside = festival("search", "--json", "--session", "other", "Lindvik").json
    assert [hit["session_id"] for hit in inside] == ["other"]
    festival("search", "--session", "nobody", "Lindvik").refused("no session 'nobody'")


def test_a_search_without_a_match_says_so(festival: Enfold) -> None:
    outcome = festival("search", "zebra")
    assert (outcome.code, outcome.out, outcome.stderr_text) == (0, b"", "0 messages found\n")


@pytest.mark.parametrize("query", ["", "  "], ids=["empty", "spaces"])
def test_a_query_without_a_word_is_refused(query: str, stored: Enfold) -> None:
    stored("search", query).refused("QUERY", "no search words")
