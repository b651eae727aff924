"""`enfold count`: exact token counts of conversations or of a text."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold import tokens
from enfold.amounts import number
from enfold.cli.files import STANDARD_INPUT, Dialect, Tokenizer, open_input
from enfold.cli.screen import File, Json, put, put_json, put_table, say, working
from enfold.tokens import STRUCTURE_TOKENS, Count, count_conversation
from enfold.transcripts import problems
from enfold.wire import AUTO

app = App(
    name="count",
    usage="enfold count [OPTIONS] [FILE]",
    help_epilogue=f"""\
All conversations of the file are counted, with all their branches.
A message, a tool call and a tool result count {STRUCTURE_TOKENS} tokens of structure each, in
addition to their content.

Examples:
  enfold count chat.json
  enfold count --json < request.json
  enfold count --text README.md""",
)

_WARNINGS = 5
"""Warnings shown per file."""


@app.default
def count(
    file: File = STANDARD_INPUT,
    /,
    *,
    text: Annotated[bool, Parameter(help="Count the file as one raw text.")] = False,
    tokenizer: Tokenizer = tokens.DEFAULT,
    dialect: Dialect = AUTO,
    json: Json = False,
) -> None:
    """Count tokens, exactly and offline."""
    counter = tokens.get(tokenizer)
    given = open_input(file)
    if text:
        tokens_of_text = counter.count(given.text())
        if json:
            put_json({"tokenizer": tokenizer, "total": tokens_of_text})
        else:
            put(f"{number(tokens_of_text, 'token')} ({tokenizer})")
        return
    total = Count.nothing(tokenizer)
    conversations = 0
    warnings: list[str] = []
    with working(f"Counting {given.name}") as progress:
        for transcript in given.transcripts(dialect=dialect):
            whole = transcript.whole()
            total += count_conversation(whole, counter)
            conversations += 1
            place = f"{given.name}: {transcript.id}" if transcript.id else given.name
            warnings += [f"{place}: {problem}" for problem in problems(whole.messages)]
            progress(number(conversations, "conversation"))
    if json:
        put_json(total)
    else:
        _show(total, conversations)
    for warning in warnings[:_WARNINGS]:
        say(f"warning: {warning}")
    if len(warnings) > _WARNINGS:
        say(f"warning: and {len(warnings) - _WARNINGS:,} more")


def _show(counted: Count, conversations: int) -> None:
    title = f"{number(counted.total, 'token')} in {number(counted.messages, 'message')}"
    if conversations != 1:
        title += f" of {number(conversations, 'conversation')}"
    structure = counted.total - counted.tools - sum(counted.by_part.values())
    extra = [("structure", structure), ("definitions", counted.tools)]
    counts: list[tuple[str, str, int]] = [("role", *each) for each in counted.by_role.items()]
    counts += [("part", *each) for each in (*counted.by_part.items(), *extra)]
    rows = [
        (kind, name.replace("_", " "), f"{amount:,}", f"{amount / counted.total:.1%}")
        for kind, name, amount in counts
        if amount
    ]
    put_table(f"{title} ({counted.tokenizer})", ("by", "", "tokens", "share"), rows)
