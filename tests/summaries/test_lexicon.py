"""The meaning of single tokens: kinds, concepts, items and cues."""

from __future__ import annotations

import pytest

from enfold.summaries.local.lexicon import Lexicon, TokenKind, read_token
from enfold.text.sentences import Cue


@pytest.mark.parametrize(
    ("raw", "kind", "core"),
    [
        ("house,", "word", "house"),
        ("(Lucca)", "capitalized", "Lucca"),
        ("HTTP", "acronym", "HTTP"),
        ("seventeen", "numeral", "seventeen"),
        ("4,180.", "integer", "4,180"),
        ("$7,222", "integer", "$7,222"),
        ("45ms", "number", "45ms"),
        ("2024-05-15", "date", "2024-05-15"),
        ("`with_retry`", "identifier", "with_retry"),
        ("parseTree()", "identifier", "parseTree"),
        ("--dry-run", "identifier", "--dry-run"),
        ("PAY-2317", "identifier", "PAY-2317"),
        ("uuid5", "identifier", "uuid5"),
        ("os.path.join", "identifier", "os.path.join"),
        ("self.name", "code", "self.name"),
        ("src/app/main.py:", "path", "src/app/main.py"),
        ("/etc/hosts", "path", "/etc/hosts"),
        ("./build", "path", "./build"),
        ("notes.md", "path", "notes.md"),
        ("https://x.io/a?b=1", "url", "https://x.io/a?b=1"),
        ("dana@example.org", "name", "dana@example.org"),
        ("e.g.", "word", "e.g"),
        ("and/or", "word", "and/or"),
        ("---", "mark", ""),
        ("Zm9v" * 200, "mark", ""),
    ],
)
def test_kinds(raw: str, kind: TokenKind, core: str) -> None:
    token = read_token(raw)
    assert (token.kind, token.core) == (kind, core)


def test_a_token_may_contain_several_items() -> None:
    token = read_token("/home/dev/{a.py,")
    assert token.items == (("path", "/home/dev/"), ("path", "a.py"))
    assert token.concepts == ("/home/dev/", "a.py")


def test_common_words_are_not_concepts() -> None:
    assert read_token("the").concepts == read_token("It's").concepts == ()


def test_a_plural_is_the_same_concept() -> None:
    assert read_token("refunds").concepts == read_token("Refund").concepts == ("refund",)
    assert read_token("glass").concepts == ("glass",)


def test_a_setting_counts_as_its_value() -> None:
    token = read_token("cabin=economy")
    assert token.core == "cabin=economy"
    assert token.concepts == ("economy",)
    assert read_token("id=JG7FMM").items == (("identifier", "JG7FMM"),)


def test_unspaced_scripts_are_read_in_pairs_with_their_amounts() -> None:
    token = read_token("预算是7万2千元，12月20日在“黄龙”用Redis部署")  # noqa: RUF001 - a Chinese comma
    assert {"7万2千元", "12月20日", "黄龙", "Redis"} <= {item for _, item in token.items}
    assert {"预算", "部署", "redis"} <= set(token.concepts)
    assert token.cues & Cue.DEMAND


def test_a_capitalized_word_is_a_name_unless_it_is_also_written_small() -> None:
    lexicon = Lexicon()
    texts = ("Gravel hurts", "my mother Teresa says", "all Friction here", "no friction", "PAY-9")
    counts = lexicon.learn([text.split() for text in texts])
    kinds = {word: lexicon.kind(word) for word in ("gravel", "teresa", "friction", "pay-9")}
    assert kinds == {
        "gravel": "word",
        "teresa": "capitalized",
        "friction": "word",
        "pay-9": "identifier",
    }
    assert counts["friction"] == 2


@pytest.mark.parametrize(
    ("word", "cue"),
    [
        ("decided", Cue.DECISION),
        ("decidimos", Cue.DECISION),
        ("قررنا", Cue.DECISION),
        ("instead", Cue.CORRECTION),
        ("must", Cue.DEMAND),
        ("erreur", Cue.FAULT),
        ("um", Cue.FILLER),
    ],
)
def test_cues(word: str, cue: int) -> None:
    assert read_token(word).cues & cue
