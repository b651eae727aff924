"""The lexicon: what single runs of characters are taken for."""

from __future__ import annotations

import pytest

from enfold.summaries.local.lexicon import Cue, Kind, Lexicon, understand


@pytest.mark.parametrize(
    ("raw", "kind", "core"),
    [
        ("house,", Kind.WORD, "house"),
        ("(Lucca)", Kind.NAME, "Lucca"),
        ("HTTP", Kind.ACRONYM, "HTTP"),
        ("seventeen", Kind.COUNT, "seventeen"),
        ("4,180.", Kind.NUMBER, "4,180"),
        ("$7,222", Kind.NUMBER, "$7,222"),
        ("45ms", Kind.NUMBER, "45ms"),
        ("2024-05-15", Kind.NUMBER, "2024-05-15"),
        ("`with_retry`", Kind.IDENTIFIER, "with_retry"),
        ("parseTree()", Kind.IDENTIFIER, "parseTree()"),
        ("--dry-run", Kind.IDENTIFIER, "--dry-run"),
        ("PAY-2317", Kind.IDENTIFIER, "PAY-2317"),
        ("uuid5", Kind.IDENTIFIER, "uuid5"),
        ("os.path.join", Kind.IDENTIFIER, "os.path.join"),
        ("src/app/main.py:", Kind.PLACE, "src/app/main.py"),
        ("/etc/hosts", Kind.PLACE, "/etc/hosts"),
        ("notes.md", Kind.PLACE, "notes.md"),
        ("https://x.io/a?b=1", Kind.PLACE, "https://x.io/a?b=1"),
        ("dana@example.org", Kind.PLACE, "dana@example.org"),
        ("/home/dev/{a.py,", Kind.PLACE, "/home/dev/"),
        ("e.g.", Kind.WORD, "e.g"),
        ("and/or", Kind.WORD, "and/or"),
        ("---", Kind.MARK, ""),
        ("Zm9v" * 200, Kind.MARK, ""),
    ],
)
def test_kinds(raw: str, kind: Kind, core: str) -> None:
    chunk = understand(raw)
    assert (chunk.kind, chunk.core) == (kind, core)


def test_common_words_are_no_concepts() -> None:
    assert understand("the").concepts == understand("It's").concepts == ()


def test_plain_variants_are_one_concept() -> None:
    assert understand("refunds").concepts == understand("Refund").concepts == ("refund",)
    assert understand("glass").concepts == ("glass",)


def test_a_setting_is_its_value() -> None:
    chunk = understand("cabin=economy")
    assert chunk.core == "cabin=economy"
    assert chunk.concepts == ("economy",)
    assert understand("id=JG7FMM").items == ("JG7FMM",)


def test_unspaced_scripts_are_read_in_pairs_with_their_amounts() -> None:
    chunk = understand("预算是7万2千元，12月20日在“黄龙”用Redis部署")  # noqa: RUF001 - a Chinese comma
    assert {"7万2千元", "12月20日", "黄龙", "Redis"} <= set(chunk.items)
    assert {"预算", "部署", "redis"} <= set(chunk.concepts)
    assert chunk.cues & Cue.DEMAND


def test_a_capital_inside_a_text_makes_a_name_unless_it_is_written_small_too() -> None:
    lexicon = Lexicon()
    texts = ("Gravel hurts", "my mother Teresa says", "all Friction here", "no friction", "PAY-9")
    counts = lexicon.learn([text.split() for text in texts])
    kinds = {word: lexicon.kind(word) for word in ("gravel", "teresa", "friction", "pay-9")}
    assert kinds == {
        "gravel": Kind.WORD,
        "teresa": Kind.NAME,
        "friction": Kind.WORD,
        "pay-9": Kind.IDENTIFIER,
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
    assert understand(word).cues & cue
