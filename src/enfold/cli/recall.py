"""`enfold recall`: the passages of a session that answer a question, or a message by its place."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold.amounts import number
from enfold.cli.screen import Db, Json, put, put_json, say
from enfold.engine.recall import RECALL_TOKENS, show_lines
from enfold.wiring import open_engine

app = App(
    name="recall",
    help_epilogue="""\
Examples:
  enfold recall festival 'Who brings the lanterns?'
  enfold recall festival 'What was decided about the mooring plan?' --tokens 500
  enfold recall festival 'What did we do on 7 May?'
  enfold recall festival --reference 12 --around 2""",
)


@app.default
async def recall(
    name: Annotated[str, Parameter(help="The session.")],
    question: Annotated[str, Parameter(help="A question in plain words.")] = "",
    /,
    *,
    reference: Annotated[
        str,
        Parameter(
            help="Instead of a question: a message id or position, a marker or a tool call id."
        ),
    ] = "",
    start: Annotated[int, Parameter(help="With --reference: the character to go on from.")] = 0,
    around: Annotated[
        int, Parameter(help="With --reference: neighbours to show on each side.")
    ] = 0,
    tokens: Annotated[int, Parameter(help="Tokens of the answer, at most.")] = RECALL_TOKENS,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the messages of a session that answer a question."""
    async with open_engine(db) as engine:
        session = await engine.find(name)
        answer = await session.recall(
            question, reference=reference, start=start, around=around, tokens=tokens
        )
    if json:
        put_json(answer)
        return
    for line in show_lines(answer.passages):
        put(line)
    for part in answer.unanswered:
        say(f"nothing fits: {part}")
    if reference:
        for passage in answer.passages:
            if not around and passage.end < passage.length:
                say(f"the message goes on; use --start {passage.end}")
    elif answer.fits:
        say(f"{number(len(answer.passages), 'message')} found")
    elif answer.passages:
        say("nothing fits the question; these are the nearest messages")
    else:
        say("nothing fits the question")
