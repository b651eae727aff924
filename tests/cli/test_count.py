"""`enfold count`: the contract's keys, and the same numbers as the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import enfold as library
from enfold import tokens
from enfold.jsontext import dumps, loads
from tests.cli.conftest import Enfold

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather in Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Four degrees, and rain."},
]
KEYS = ["tokenizer", "total", "messages", "by_role", "by_part"]
PARTS = ["text", "tool_call", "tool_result", "attachment"]


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base"])
def test_the_json_is_as_agreed(tokenizer: str, enfold: Enfold) -> None:
    counted = enfold("count", "--json", "--tokenizer", tokenizer, stdin=dumps(CHAT)).json
    assert list(counted) == KEYS
    assert list(counted["by_part"]) == PARTS
    assert list(counted["by_role"]) == ["system", "user", "assistant", "tool"]
    assert counted["tokenizer"] == tokenizer
    assert counted["messages"] == 4
    assert counted["total"] == library.count(CHAT, tokenizer) == sum(counted["by_role"].values())
    parts = sum(counted["by_part"].values())
    assert counted["total"] == parts + 4 * tokens.STRUCTURE_TOKENS


def test_definitions_of_tools_are_counted_where_there_are_any(enfold: Enfold) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    body = {"model": "gpt-4o", "messages": CHAT, "tools": tools}
    counted = enfold("count", "--json", stdin=dumps(body)).json
    assert list(counted) == [*KEYS, "tools"]
    assert counted["tools"] > 0
    assert counted["total"] == library.count(body)


def test_a_text_is_counted_alone(enfold: Enfold, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("hello world", encoding="utf-8")
    assert enfold("count", "--text", "--json", file).json == {
        "tokenizer": "o200k_base",
        "total": 2,
    }
    assert enfold("count", "--text", file).text == "2 tokens (o200k_base)\n"
    assert enfold("count", "--text", stdin=b"").text == "0 tokens (o200k_base)\n"


def test_a_text_is_every_byte_of_the_file(enfold: Enfold) -> None:
    text = "\ufeffa\0b\r\n<|endoftext|> 🎉\n"
    counted = enfold("count", "--text", "--json", stdin=text.encode()).json
    assert counted["total"] == library.count(text)
    enfold("count", "--text", stdin=b"a\xff").refused("standard input: not UTF-8: byte 0xff")


def test_all_conversations_of_a_file_are_counted(enfold: Enfold) -> None:
    lines = b"".join(dumps({"id": str(n), "messages": CHAT}) + b"\n" for n in range(3))
    counted = enfold("count", "--json", stdin=lines).json
    assert counted["messages"] == 12
    assert counted["total"] == 3 * library.count(CHAT)
    assert "in 12 messages of 3 conversations" in enfold("count", stdin=lines).text


def test_people_get_a_table_that_adds_up(enfold: Enfold) -> None:
    title, head, *rows = enfold("count", stdin=dumps(CHAT)).text.splitlines()
    total = library.count(CHAT)
    assert title == f"{total} tokens in 4 messages (o200k_base)"
    assert head.split() == ["by", "tokens", "share"]
    for kind in ("role", "part"):
        amounts = [row.split()[-2] for row in rows if row.startswith(kind)]
        assert sum(map(int, amounts)) == total


def test_nothing_is_counted_as_nothing(enfold: Enfold) -> None:
    assert enfold("count", "--json", stdin=b"[]").json["total"] == 0
    assert enfold("count", stdin=b"[]").text.startswith("0 tokens in 0 messages")


def test_a_tokenizer_that_is_none_is_named_before_anything_is_read(enfold: Enfold) -> None:
    enfold("count", "missing.json", "--tokenizer", "gpt").refused("no tokenizer 'gpt'", "cl100k")


@pytest.mark.parametrize(
    ("messages", "warning"),
    [
        (
            [{"role": "tool", "tool_call_id": "c9", "content": "x"}],
            "messages[0]: a tool result without its call 'c9' before it",
        ),
        (
            [
                {"id": "m1", "role": "user", "content": [{"type": "text", "text": "a"}]},
                {"id": "m1", "role": "user", "content": [{"type": "text", "text": "b"}]},
            ],
            "messages[1]: the id 'm1' is that of messages[0] too",
        ),
    ],
    ids=["a result without a call", "duplicate ids"],
)
def test_a_history_that_a_provider_would_refuse_is_a_warning(
    messages: list[object], warning: str, enfold: Enfold
) -> None:
    outcome = enfold("count", "--json", stdin=dumps(messages))
    assert outcome.json["messages"] == len(messages)
    assert outcome.stderr_text == f"warning: standard input: {warning}\n"


def test_many_warnings_are_cut_short(enfold: Enfold) -> None:
    orphan = {"role": "tool", "tool_call_id": "x", "content": "r"}
    outcome = enfold("count", stdin=dumps([orphan] * 12))
    assert outcome.code == 0
    assert len(outcome.stderr_text.splitlines()) == 6
    assert outcome.stderr_text.endswith("and 7 more\n")


def test_real_conversations_count_alike_in_parts_and_as_a_whole(
    enfold: Enfold, data_dir: Path
) -> None:
    file = data_dir / "tau_airline.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)[:20]
    whole = enfold("count", "--json", stdin=b"".join(lines)).json
    parts = [enfold("count", "--json", stdin=line).json for line in lines]
    assert whole["total"] == sum(part["total"] for part in parts)
    assert whole["messages"] == sum(len(loads(line)["messages"]) for line in lines)
