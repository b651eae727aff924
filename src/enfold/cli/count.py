"""`enfold count`: exact tokens of a conversation, of a file of conversations, or of a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from enfold.cli.reading import STANDARD_INPUT, read_text, read_transcripts
from enfold.cli.screen import number, put, put_json, put_table, say, working
from enfold.messages import Conversation
from enfold.tokens import Count, count_conversation, get
from enfold.transcripts import problems

_WARNINGS = 5
"""So many are shown of one file."""


def count(
    file: str = STANDARD_INPUT,
    *,
    text: Annotated[bool, Parameter(negative=())] = False,
    tokenizer: str = "o200k_base",
    dialect: str = "auto",
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Count the tokens of FILE.

    FILE is a JSON array of messages, a request body, JSON Lines with one conversation a line, or
    an agent's session log. Every message counts 4 tokens of structure beside its content.

    Parameters
    ----------
    file
        The file to count; - is standard input.
    text
        Count the file as one raw text, without any structure.
    tokenizer
        o200k_base, cl100k_base, claude (with the extra enfold[claude]), or chars4.
    dialect
        auto, openai, openai-responses, anthropic, gemini, langchain or enfold.
    json
        Print the counts as JSON.
    """
    if text:
        _show_text(get(tokenizer).count(read_text(file)), tokenizer, json=json)
        return
    total = Count.nothing(tokenizer)
    conversations = 0
    warnings: list[str] = []
    with working(f"Counting {file}"):
        for conversation, noticed in _conversations(file, dialect):
            total += count_conversation(conversation, tokenizer)
            conversations += 1
            warnings.extend(noticed)
    if json:
        put_json(total.as_json())
    else:
        _show(total, conversations)
    _warn(warnings)


def _conversations(file: str, dialect: str) -> Iterator[tuple[Conversation, list[str]]]:
    """Every conversation with all its branches, and what a provider would refuse in it."""
    for transcript in read_transcripts(file, dialect=dialect):
        messages = tuple(entry.message for entry in transcript.entries)
        noticed = [f"{transcript.id or file}: {problem}" for problem in problems(messages)]
        yield (
            Conversation(messages, transcript.dialect, transcript.system, transcript.tools),
            noticed,
        )


def _show_text(total: int, tokenizer: str, *, json: bool) -> None:
    if json:
        put_json({"tokenizer": tokenizer, "total": total})
    else:
        put(f"{number(total, 'token')} ({tokenizer})")


def _show(counted: Count, conversations: int) -> None:
    title = f"{number(counted.total, 'token')} in {number(counted.messages, 'message')}"
    if conversations != 1:
        title += f" of {number(conversations, 'conversation')}"
    shown = [
        *counted.by_role.items(),
        *counted.by_part.items(),
        ("tool definitions", counted.tools),
    ]
    rows = [
        (name.replace("_", " "), f"{tokens:,}", f"{tokens / counted.total:.1%}")
        for name, tokens in shown
        if tokens
    ]
    put_table(f"{title} ({counted.tokenizer})", ("", "tokens", "share"), rows)


def _warn(warnings: list[str]) -> None:
    for warning in warnings[:_WARNINGS]:
        say(f"warning: {warning}")
    if len(warnings) > _WARNINGS:
        say(f"warning: and {len(warnings) - _WARNINGS:,} more of the kind")
