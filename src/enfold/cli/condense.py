"""`enfold condense`: one conversation made smaller, and a ledger of what was taken out."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from enfold import tokens
from enfold.cli.options import Dialect, File, Out, Tokenizer
from enfold.cli.reading import STANDARD_INPUT, Input, open_input
from enfold.cli.screen import say, working
from enfold.cli.writing import put_value, save
from enfold.dialects import AUTO
from enfold.errors import InputError
from enfold.jsontext import dumps
from enfold.messages import Conversation
from enfold.settings import Settings
from enfold.stateless import Condensed, Options
from enfold.stateless import condense as condense_conversation
from enfold.wiring import STRATEGIES, local_summarizer, make_strategy

app = App(
    name="condense",
    usage="enfold condense [OPTIONS] [FILE]",
    help_epilogue="""\
The condensed conversation goes to standard output, in the dialect and the
shape in which it came; the report goes to standard error. Without --window
and --target it becomes as small as the strategy makes it.

Examples:
  enfold condense chat.json --window 128000 --ledger chat.ledger > small.json
  enfold restore small.json --ledger chat.ledger > chat.json""",
)


@app.default
async def condense(
    file: File = STANDARD_INPUT,
    /,
    *,
    strategy: Annotated[
        str,
        Parameter(
            help=f"How: {', '.join(STRATEGIES)}; native folds what is old into a summary.",
            metavar="NAME",
        ),
    ] = "native",
    window: Annotated[
        int | None,
        Parameter(help="The model's window in tokens: end at or below 60 % of what it takes."),
    ] = None,
    target: Annotated[
        int | None, Parameter(help="End at or below so many tokens, whatever the window.")
    ] = None,
    keep_tokens: Annotated[
        int | None,
        Parameter(
            help="So many of the newest tokens stay as they are. If unset: what the strategy keeps."
        ),
    ] = None,
    dialect: Dialect = AUTO,
    tokenizer: Tokenizer = tokens.DEFAULT,
    out: Out = None,
    ledger: Annotated[
        Path | None, Parameter(help="Write here what was taken out, for `enfold restore`.")
    ] = None,
    json: Annotated[
        bool, Parameter(help="Print messages, report and ledger as one JSON object.")
    ] = False,
) -> None:
    """Make a conversation smaller, with a ledger to restore it from."""
    options = Options(
        tokenizer=tokens.get(tokenizer).name, target=target, window=window, keep_tokens=keep_tokens
    )
    chosen = make_strategy(Settings(strategy=strategy), local_summarizer())
    given = open_input(file)
    with working(f"Condensing {given.name}"):
        result = await condense_conversation(_only(given, dialect), chosen, options)
    _write(result, out, ledger, json=json)
    if not json:
        say(str(result.report))


def _only(given: Input, dialect: str) -> Conversation:
    transcripts = list(islice(given.transcripts(dialect=dialect), 2))
    if len(transcripts) != 1:
        found = "several" if transcripts else "no"
        raise InputError(f"{found} conversations, where one is expected", place=given.name)
    return transcripts[0].conversation()


def _write(result: Condensed, out: Path | None, ledger: Path | None, *, json: bool) -> None:
    """The ledger first: a condensed conversation without its ledger could not be restored."""
    value = result.messages
    if json:
        value = {
            "messages": result.messages,
            "report": result.report.as_json(),
            "ledger": result.ledger.as_json(),
        }
    contents = ((ledger, result.ledger.as_json()), (out, value))
    save(*((place, dumps(content) + b"\n") for place, content in contents if place is not None))
    if out is None:
        put_value(value, None)
