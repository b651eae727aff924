"""`enfold recall`: the passages of a session that answer a question."""

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
  enfold recall festival 'What was decided about the mooring plan?' --tokens 500""",
)


@app.default
async def recall(
    name: Annotated[str, Parameter(help="The session.")],
    question: Annotated[str, Parameter(help="A question in plain words.")],
    /,
    *,
    tokens: Annotated[int, Parameter(help="Tokens of the answer, at most.")] = RECALL_TOKENS,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the messages of a session that answer a question."""
    async with open_engine(db) as engine:
        session = await engine.find(name)
        answer = await session.recall(question, tokens=tokens)
    if json:
        put_json(answer)
        return
    for line in show_lines(answer.passages):
        put(line)
    if answer.fits:
        say(f"{number(len(answer.passages), 'message')} found")
    elif answer.passages:
        say("nothing fits the question; these are the nearest messages")
    else:
        say("nothing fits the question")
