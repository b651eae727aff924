"""The exact items of texts and messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.messages import Attachment, Data, Message, Reasoning, Text, ToolCall, ToolResult
from enfold.testing import assistant, call, result, user
from enfold.text.grammar import ITEM_CLASSES, ItemClass
from enfold.text.items import extract, extract_all, items_of


def found(text: str, kind: ItemClass) -> list[str]:
    return list(extract(text)[kind])


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("see src/enfold/view.py and tests/", ["src/enfold/view.py"]),
        ("at /etc/nginx/nginx.conf, line 3", ["/etc/nginx/nginx.conf"]),
        ("in ./build and ~/notes/todo.md.", ["./build", "~/notes/todo.md"]),
        ("src/a.py:12:5: error", ["src/a.py"]),
        ("cmd/main.go-45-\tfoo", ["cmd/main.go"]),
        ("cmd/main.go-116-func x", ["cmd/main.go"]),
        ("\x1b[32msrc/a.py\x1b[0m \x1b[39m02", ["src/a.py"]),
        ("open C:\\Users\\ann\\notes.txt now", ["C:\\Users\\ann\\notes.txt"]),
        ("`pyproject.toml`, (README.md)", ["pyproject.toml", "README.md"]),
        ('{"path":"lib/x.rs","n":1}', ["lib/x.rs"]),
        ("first\\nsrc/a.ts\\nsrc/b.ts", ["src/a.ts", "src/b.ts"]),
        ("打开src/app.py文件", ["src/app.py"]),
        ("and/or, he/she, 1/2, km/h, text, Node.js, e.g. this", []),
    ],
)
def test_paths(text: str, items: list[str]) -> None:
    assert found(text, "path") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("See https://a.example/x?y=1#z.", ["https://a.example/x?y=1#z"]),
        ("(http://localhost:8787/docs)", ["http://localhost:8787/docs"]),
        ("on github.com or api.acme.io", ["github.com", "api.acme.io"]),
        ("postgres://ann:hunter2secret@db.example/x", []),
        ("http:// nothing, logger.info", []),
    ],
)
def test_addresses(text: str, items: list[str]) -> None:
    assert found(text, "url") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("call parse_line or ParseTree.build", ["parse_line", "ParseTree.build"]),
        ("useState and HTTPServer, MAX_RETRIES", ["useState", "HTTPServer", "MAX_RETRIES"]),
        ("commit f3e2551a, flight HAT136", ["f3e2551a", "HAT136"]),
        ("id 7c9e6679-7425-40de-944b-e07fc1f90ae7", ["7c9e6679-7425-40de-944b-e07fc1f90ae7"]),
        ("PROJ-123, #4711, v1.2.3, gpt-4o-mini", ["PROJ-123", "#4711", "v1.2.3", "gpt-4o-mini"]),
        ("with --no-cache set", ["--no-cache"]),
        ("key=user_id&x=1", ["user_id"]),
        ("uuid5, valve V7, seat 12A, std::vector", ["uuid5", "V7", "12A", "std::vector"]),
        ("plain words, Title Case, UPPER, 12345", []),
    ],
)
def test_identifiers(text: str, items: list[str]) -> None:
    assert found(text, "identifier") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("took 45 ms, then 1.5s", ["1.5s", "45 ms"]),
        ("80% of 16 GB for $1,234.50", ["80%", "$1,234.50", "16 GB"]),
        ("in 30 minutes or 2 Stunden", ["30 minutes", "2 Stunden"]),
        ("花了3天和1,200元", ["3天", "1,200元"]),
        ("up to 24-bit", ["24-bit"]),
        ("0.3 of 1.59, then 4,180 rows in 1.5 GB", ["0.3", "1.59", "4,180", "1.5 GB"]),
        ("on port 8080, PID 4123, PORT=443", ["port 8080", "PID 4123", "PORT=443"]),
        ("import 8080, report 77, port 8", []),
        ("\x1b[33m12\x1b[0m ms", []),
        ("5 apples, $1 is a variable, chapter 3, 4.x", []),
    ],
)
def test_numbers_with_a_unit(text: str, items: list[str]) -> None:
    assert found(text, "number") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("on 2026-03-05 at 14:30", ["2026-03-05", "14:30"]),
        ("2024-05-14T06:33:04Z [x]", ["2024-05-14T06:33:04Z"]),
        ("by March 5, 2026 or 7th of May", ["March 5, 2026", "7th of May"]),
        ("el 3 de mayo de 2026, 9:15 pm", ["9:15", "3 de mayo de 2026", "9:15 pm"]),
        ("2023年2月19日开始", ["2023年2月19日"]),
        ("lines 42:78, 99:12, in 1984", []),
    ],
)
def test_dates_and_times(text: str, items: list[str]) -> None:
    assert found(text, "date") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("I met Ada Lovelace in New York", ["Ada Lovelace", "New York"]),
        ("Hello Jack Miller, ask ann@acme.example", ["ann@acme.example", "Jack Miller"]),
        ("Zoë Müller-Lüdenscheidt y José de la Cruz", ["Zoë Müller-Lüdenscheidt"]),
        ("reviewed by @octocat today", ["@octocat"]),
        ("## Next Steps\nthe next steps are", []),
        ("* @param name, undici@7.18.2", []),
    ],
)
def test_names(text: str, items: list[str]) -> None:
    assert set(items) <= set(found(text, "name"))
    assert items or not found(text, "name")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("raised ValueError, then ENOENT", ["ValueError", "ENOENT"]),
        ("error TS2345 and E0308", ["TS2345", "E0308"]),
        ("code E-4031, ERR-77", ["E-4031", "ERR-77"]),
        ("exited with code 137", ["exited with code 137"]),
        ("Exit code 1; HTTP 404", ["Exit code 1", "HTTP 404"]),
        (
            "sqlite3.OperationalError: no such table: users",
            ["sqlite3.OperationalError", "sqlite3.OperationalError: no such table: users"],
        ),
        ("onError: boolean, an error occurred", []),
    ],
)
def test_errors(text: str, items: list[str]) -> None:
    assert found(text, "error") == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("$ make test\nok", ["make test"]),
        ("run `git push --force` and `foo bar`", ["git push --force"]),
        ("costs $ 5, the `git` command", []),
    ],
)
def test_commands(text: str, items: list[str]) -> None:
    assert found(text, "command") == items


@pytest.mark.parametrize(
    "text",
    [
        "export OPENAI_API_KEY=sk-proj-abcDEF123456abcDEF123456",
        "Authorization: Bearer abc123DEF456ghi789",
        'token: "ghp_0123456789abcdef0123456789abcdef0123"',
        "AKIAIOSFODNN7EXAMPLE",
        "password = Tr0ub4dor_and_3",
        "https://api.example/v1?api_key=Zx81Kq29Lm55Pw07",
        "curl -H 'x-api-key: Zx81Kq29Lm55Pw07' https://a.example",
        "$ curl -u admin:S3cretPass99 --header 'Authorization: Basic QWxhZGRpbjpvcGVu' x",
        "mongodb://root:S3cretPass99@db.example:27017/app",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
    ],
)
def test_keys_and_passwords_are_not_items(text: str) -> None:
    shown = " ".join(item for items in extract(text).values() for item in items)
    for secret in ("sk-proj", "abc123DEF", "ghp_", "AKIA", "Tr0ub4dor", "Zx81Kq29", "S3cretPass"):
        assert secret not in shown
    assert "eyJ" not in shown
    assert "QWxhZGRpbj" not in shown


PIECES = st.sampled_from(
    [
        *("src/a.py", "https://a.example/b", "foo_bar", "45 ms", "2026-01-02", "Ada Lovelace"),
        *("ValueError: bad", "$ make test", "漢字", "é", "key=", "`git status -s`", "\\n", "12:30"),
        *("C:\\a\\b.txt", "@octocat", "a@b.example", "1.2.3", "--flag", "3天", "word", "The", "\n"),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.tuples(PIECES, st.sampled_from([" ", "", "\n", ", ", ": ", "(", '"'])), max_size=30
    ).map(lambda pairs: "".join(piece + joint for piece, joint in pairs)),
)


@given(TEXTS)
def test_every_item_is_in_the_text_and_in_one_line(text: str) -> None:
    items = extract(text)
    assert tuple(items) == ITEM_CLASSES
    for kind in items.values():
        for item in kind:
            assert item in text
            assert "\n" not in item
            assert item.strip()


@given(TEXTS)
def test_reading_twice_finds_the_same(text: str) -> None:
    assert extract(text) == extract(text)
    assert extract(f"{text}\n{text}") == extract(text)


@pytest.mark.parametrize(
    "piece",
    [
        *("1", ".", "a", "A", "Aa", "a/", "/", "\\", "\\n", "key=", "password=", "`a ", "a@", "1,"),
        *("Error: ", "John Smith ", "3个", "1:", "_", "a_", "a1B_-.", "$ a", " @a", "http://", " "),
    ],
)
def test_extraction_takes_linear_time(piece: str) -> None:
    """Were one of the expressions quadratic, this would run for hours."""
    extract(piece * (300_000 // len(piece)))


def test_items_of_all_parts_of_messages() -> None:
    messages = [
        user(
            "look at src/one.py",
            Attachment("scan.pdf", "application/pdf", url="https://a.example/b"),
        ),
        assistant("", call("1", "bash", {"command": "pytest -x tests/two.py\nmore", "n": 3})),
        assistant("", ToolCall("2", "edit", '{"path": "src/three.py", "old_text": "x"}')),
        result("1", '{"output": "line one\\nsrc/four.py\\n", "exit_code": 1}'),
        Message("tool", (ToolResult("2", (Data({"file": "src/five.py"}), Text("src/six.py"))),)),
        Message("assistant", (Reasoning("src/seven.py"),)),
    ]
    items = items_of(messages)
    assert list(items["path"]) == [
        *("src/one.py", "scan.pdf", "tests/two.py", "src/three.py", "src/four.py", "src/five.py"),
        "src/six.py",
    ]
    assert list(items["command"]) == ["pytest -x tests/two.py"]
    assert list(items["url"]) == ["https://a.example/b"]
    assert not items["identifier"], "names of fields are no items"


@given(st.lists(TEXTS, max_size=6))
def test_several_texts_have_the_items_of_one_text_with_all_of_them(texts: list[str]) -> None:
    assert extract_all(texts) == extract("\n".join(texts))


def test_a_name_is_a_heading_if_another_text_writes_it_small() -> None:
    assert extract_all(["Ask Release Notes.", "Hi"])["name"]
    assert not extract_all(["Ask Release Notes.", "the notes of a release"])["name"]


_WORDS = ("Makefile", "LICENSE", "ENOENT", "fooBar", "Foo", "foo", "FOO", "É", "中文", "v1")


@given(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=3).map("".join),
    st.text(".,:;!?", max_size=3),
)
def test_punctuation_after_a_word_changes_no_item(word: str, marks: str) -> None:
    assert extract(f"before {word}{marks} after") == extract(f"before {word} after")


def test_lines_of_a_private_key_are_no_items() -> None:
    lines = ("MIIEpAIBAAKCAQEAabcdefgh1jkl", "q83/src+Zk1p0aWx9Qm7v2bR4tY6u")
    key = "\n".join(("-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"))
    for text in (f"Take {key} to src/gate.py", f"{key[:-32]}\n", key.replace("\n", "\\n")):
        shown = str(extract(text))
        assert "MIIEpAIB" not in shown, text
        assert "src+Zk1p" not in shown, text
    mentioned = extract("It begins with -----BEGIN PRIVATE KEY----- as in src/gate.py says.")
    assert "src/gate.py" in mentioned["path"]
