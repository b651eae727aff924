"""`enfold demo`: a short demonstration, without a key and without a network."""

from __future__ import annotations

from textwrap import shorten, wrap

from cyclopts import App

from enfold import wire
from enfold.amounts import number
from enfold.cli.screen import put
from enfold.engine import Engine, Session
from enfold.engine.results import Prepared
from enfold.engine.transfer import export_branch
from enfold.errors import IntegrityError
from enfold.events import CompressionFinished
from enfold.jsontext import dumps
from enfold.messages import Conversation, Message
from enfold.sample import TITLE, sample_messages
from enfold.wiring import open_engine

app = App(name="demo")

_MODEL = "demo:small"
_MAX_INPUT = 12_000
_MAX_OUTPUT = 4_000
_SUMMARY_LINES = 12
_WIDTH = 90


@app.default
async def demo() -> None:
    """Show what enfold does, without a key or a network."""
    messages = sample_messages()
    async with open_engine("sqlite:///:memory:") as engine:
        await engine.models.edit(_MODEL, max_input=_MAX_INPUT, max_output=_MAX_OUTPUT)
        session = await engine.session("demo", model=_MODEL, title=TITLE)
        await _fill(session, messages)
        prepared = await _compress(engine, session)
        await _find(session, prepared)
        await _undo(engine, session, messages)
    put("\nNext: enfold count FILE, enfold condense FILE, enfold import FILE, enfold --help")


async def _fill(session: Session, messages: tuple[Message, ...]) -> None:
    await session.append(*messages)
    status = await session.status()
    put(f"1. A conversation that no longer fits: {TITLE}")
    put(f"   {number(status.messages, 'message')} have {status.current_token_count:,} tokens.")
    put(f"   The model accepts {_MAX_INPUT:,}; a safety margin leaves {status.context_limit:,}.")
    put(f"   Decision: {status.decision}")


async def _compress(engine: Engine, session: Session) -> Prepared:
    put("\n2. Before the next request, old messages are summarized")
    stop = engine.events.subscribe(
        lambda event: put(f"   {event}") if isinstance(event, CompressionFinished) else None
    )
    prepared = await session.prepare("Where do we stand?")
    stop()
    verbatim = sum(shown.tokens for shown in prepared.view.shown)
    put(f"   The request has a summary of {prepared.view.summary_tokens:,} tokens and the last")
    put(f"   {number(len(prepared.view.shown), 'message')} verbatim, {verbatim:,} tokens.")
    put("   The summary, written without a model, starts with:\n")
    lines = [
        part
        for line in (prepared.view.summary or "").splitlines()
        for part in wrap(line, _WIDTH, subsequent_indent="  ") or [""]
    ]
    for line in (*lines[:_SUMMARY_LINES], "..."):
        put(f"   > {line}")
    return prepared


async def _find(session: Session, prepared: Prepared) -> None:
    put("\n3. Nothing is lost: summarized messages can be searched")
    visible = {shown.id for shown in prepared.view.shown}
    for query in ("E-4031", '"fire office" BR-114'):
        for hit in await session.search(query, limit=1):
            state = "in the view" if hit.message in visible else "summarized"
            put(f"   {query} is in message {hit.depth} ({state}):")
            put(f"   > {shorten(hit.snippet, _WIDTH, placeholder=' ...')}")


async def _undo(engine: Engine, session: Session, messages: tuple[Message, ...]) -> None:
    put("\n4. The compression can be undone")
    await session.undo()
    status = await session.status()
    exported = await export_branch(engine, session)
    if exported != dumps(wire.render(Conversation(messages))):
        raise IntegrityError("the exported messages differ from the input; please report it")
    put(f"   Undone: {status.current_token_count:,} tokens in the view again.")
    put(f"   Exported, all {number(len(messages), 'message')} equal the input, byte for byte.")
