"""One grammar: the receipt and the built-in summarizer give every token the same class."""

from __future__ import annotations

import pytest

from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.units import read
from enfold.text.grammar import ITEM_CLASSES, ItemClass
from enfold.text.items import extract

EXACT: dict[ItemClass, tuple[str, ...]] = {
    "path": (
        *("src/app/main.py", "/etc/hosts", "./build", "~/notes/todo.md", "notes.md", "README.md"),
        *("tests/unit", "node_modules/react", "package.json", "Makefile", ".env", ".gitignore"),
        *("C:\\Users\\ann\\notes.txt", "../lib/x.rs"),
    ),
    "url": (
        *("https://x.io/a?b=1", "github.com", "www.example.org", "api.acme.io"),
        *("localhost:8080", "http://localhost:3000/x", "10.0.0.1:5432", "postgres://db.acme/x"),
    ),
    "identifier": (
        *("with_retry", "parseTree", "useState", "HTTPServer", "MAX_RETRIES", "os.path.join"),
        *("--dry-run", "PAY-2317", "CVE-2024-1234", "#4711", "f3e2551a", "HAT136", "JG7FMM"),
        *("uuid5", "V7", "S3", "sha256", "gpt-4o-mini", "std::vector", "x86_64", "12A", "$HOME"),
        *("@types/node", "id_ed25519", "v1.2.3", "1.2.3", "v2", "192.168.0.1", "0x1F", "B-52"),
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    ),
    "number": (
        *("45ms", "1.5s", "80%", "16GB", "10k", "€4.80", "$7,222", "4,180", "1.59", "3.14"),
        *("45 ms", "16 GB", "24-bit", "port 8080", "PID 4123", "30 minutes", "1e-5"),
    ),
    "date": (
        *("2024-05-15", "14:30", "9:15pm", "15/06/2024", "2024-05-14T06:33:04Z"),
        *("15 June", "March 5, 2026", "7th of May"),
    ),
    "name": ("dana@example.org",),
    "error": (
        *("E-4031", "E4031", "TS2345", "ORA-00942", "ERR_TIMEOUT", "ValueError", "ENOENT"),
        *("SIGKILL", "sqlite3.OperationalError", "HTTP 404", "Exit code 1"),
    ),
    "command": (),
}
"""Tokens and short phrases, by class."""
PLAIN = (
    *("house", "the", "Lucca", "HTTP", "and/or", "he/she", "km/h", "e.g.", "well-known", "42"),
    *("4180", "1984", "3rd", "seventeen", "Node.js", "O'Brien", "self.name", "1/2", "TODO", "src/"),
)
"""Tokens that are not exact items."""
CASES = [(token, kind) for kind, tokens in EXACT.items() for token in tokens]
SENTENCES = ("{}", "we looked at {} before lunch", "is it ({}), or not?", "it was “{}”.")

Found = set[tuple[ItemClass, str]]


def by_receipt(text: str) -> Found:
    return {(kind, item) for kind, items in extract(text).items() for item in items}


def by_summarizer(text: str) -> Found:
    items = read(text, Lexicon()).items
    return {(kind, item.shown) for item in items for kind in ITEM_CLASSES if kind == item.kind}


def test_the_table_is_long_enough() -> None:
    assert len(CASES) + len(PLAIN) >= 60
    assert len(dict(CASES)) == len(CASES)


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize(("token", "kind"), CASES, ids=ascii)
def test_exact_items_have_one_class(token: str, kind: ItemClass, sentence: str) -> None:
    text = sentence.format(token)
    assert by_receipt(text) == by_summarizer(text) == {(kind, token)}


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("token", PLAIN)
def test_other_tokens_are_not_items(token: str, sentence: str) -> None:
    text = sentence.format(token)
    assert by_receipt(text) == by_summarizer(text) == set()


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("then run `git push --force` again", ("command", "git push --force")),
        ("please call Ada Lovelace today", ("name", "Ada Lovelace")),
    ],
)
def test_phrases_need_their_sentence(text: str, item: tuple[ItemClass, str]) -> None:
    assert item in by_receipt(text)
    shown = {found.shown for found in read(text, Lexicon()).items}
    assert item[1] in shown
