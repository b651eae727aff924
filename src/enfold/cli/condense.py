"""`enfold condense` and `enfold restore`: one conversation made smaller, and whole again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from enfold.cli.reading import STANDARD_INPUT, read_bytes, read_transcripts
from enfold.cli.screen import put_json, say, working
from enfold.errors import InputError
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger
from enfold.settings import Settings
from enfold.stateless import Condensed, Options
from enfold.stateless import condense as condense_conversation
from enfold.stateless import restore as restore_conversation
from enfold.wiring import local_summarizer, make_strategy


def condense(
    file: str = STANDARD_INPUT,
    *,
    strategy: str = "native",
    window: int | None = None,
    target: int | None = None,
    keep_tokens: int | None = None,
    dialect: str = "auto",
    tokenizer: str = "o200k_base",
    out: Path | None = None,
    ledger: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Condense the conversation in FILE.

    The condensed conversation goes to standard output, in the dialect and the shape in which it
    came; the report goes to standard error.

    Parameters
    ----------
    file
        The conversation; - is standard input.
    strategy
        How: native folds what is old into a summary.
    window
        The model's window in tokens: end at or below 60 % of what it takes.
    target
        Tokens to end at or below, instead of a window.
    keep_tokens
        How many of the newest tokens stay verbatim, instead of the last three messages.
    dialect
        auto, openai, openai-responses, anthropic, gemini, langchain or enfold.
    tokenizer
        o200k_base, cl100k_base, claude (with the extra enfold[claude]), or chars4.
    out
        Write the conversation here instead of standard output.
    ledger
        Write what was taken out here, for `enfold restore`.
    json
        Print messages, report and ledger as one JSON object.
    """
    options = Options(tokenizer, target, window, keep_tokens)
    chosen = make_strategy(Settings(strategy=strategy), local_summarizer())
    transcripts = list(read_transcripts(file, dialect=dialect))
    if len(transcripts) != 1:
        raise InputError(f"{len(transcripts)} conversations, where one is expected", place=file)
    with working("Condensing"):
        result = asyncio.run(condense_conversation(transcripts[0].conversation(), chosen, options))
    _write(result, out, ledger, json=json)


def restore(file: str, *, ledger: Path, out: Path | None = None) -> None:
    """Give back the conversation that FILE was condensed from.

    Parameters
    ----------
    file
        The condensed conversation; - is standard input.
    ledger
        What `enfold condense --ledger` wrote.
    out
        Write the conversation here instead of standard output.
    """
    value = _load(file)
    restored = restore_conversation(value, Ledger.from_json(_load(str(ledger))))
    _put(restored, out)


def _write(result: Condensed, out: Path | None, ledger: Path | None, *, json: bool) -> None:
    if ledger is not None:
        _save(ledger, result.ledger.as_json())
    if json:
        _put(
            {
                "messages": result.messages,
                "report": result.report.as_json(),
                "ledger": result.ledger.as_json(),
            },
            out,
        )
        return
    _put(result.messages, out)
    say(str(result.report))


def _load(file: str) -> Any:
    data = read_bytes(file)
    try:
        return loads(data)
    except InputError as error:
        raise error.at(file) from None


def _put(value: Any, out: Path | None) -> None:
    if out is None:
        put_json(value)
    else:
        _save(out, value)


def _save(place: Path, value: Any) -> None:
    try:
        place.write_bytes(dumps(value) + b"\n")
    except OSError as error:
        raise InputError(error.strerror or str(error), place=str(place)) from None
