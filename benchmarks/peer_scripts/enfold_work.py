"""enfold: the same works, started like the others."""

import asyncio
import json
import tempfile

from stopwatch import KEEP_TOKENS, KEPT, SUMMARY, orphans, peak, start, timed, turns

import enfold
from enfold import tokens
from enfold.testing import ScriptedSummarizer

MODEL = "bench:model"
BATCH = 10_000
TOKENS_OF_A_MESSAGE = 60


def count(messages):
    """Count the whole history, with nothing counted before."""
    tokens.warm()
    again = iter([json.loads(json.dumps(messages).replace("a", each, 1)) for each in "abc"])
    seconds, counted = timed(lambda _number: enfold.count(next(again)), rounds=3)
    return {"seconds": seconds, "tokens": counted}


def one_turn(messages):
    """Measure a turn: the file has everything, the view has the summary and newer messages."""
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        runner.run(_write(folder, messages))
        opened = _open(folder)
        engine = runner.run(opened.__aenter__())
        session = runner.run(engine.find("bench"))

        async def go(question, answer):
            await session.append(question, answer)
            return (await session.prepare("And now?")).messages

        result = turns(lambda *arguments: runner.run(go(*arguments)), "file")
        runner.run(opened.__aexit__(None, None, None))
    return result


def _open(folder, summary=SUMMARY):
    return enfold.open(
        f"sqlite:///{folder}/s.db",
        sink=_ignore,
        summarizers={"instant": ScriptedSummarizer(summary)},
    )


async def _write(folder, messages):
    """Store the history and compress it; the closed engine has no work left."""
    async with _open(folder, _summary_of(messages)) as engine:
        await engine.models.edit(MODEL, max_input=200_000, max_output=50_000)
        await engine.set("summarizer", "instant")
        session = await engine.session("bench", model=MODEL)
        for first in range(0, len(messages), BATCH):
            await session.append(*messages[first : first + BATCH])
        if len(messages) > KEPT:
            await session.compress(keep_tokens=KEPT * TOKENS_OF_A_MESSAGE)


async def _ignore(_deliveries):
    """A memory that stores nothing, because it is not measured."""


def _summary_of(messages):
    """Return a text of about the length of `SUMMARY`; enfold refuses one that is no summary."""
    parts = (str(each["content"])[:70] for each in messages[1 : -1 : max(1, len(messages) // 20)])
    return "\n".join(parts)[: len(SUMMARY)]


def compress(messages):
    """Measure one compression with validation, ledger and receipt."""
    summary = _summary_of(messages)

    def step(_number=0):
        return enfold.condense_sync(
            messages,
            "native",
            keep_tokens=KEEP_TOKENS,
            summarizer=ScriptedSummarizer(summary),
        )

    seconds, done = timed(step)
    if enfold.restore(done.messages, done.ledger) != messages:
        raise SystemExit("not restored")
    sent = done.messages
    return {"seconds": seconds, "sent": len(sent), "orphans": orphans(sent), "peak": peak(step)}


def prune(strategy, **options):
    """Condense a transcript and restore it."""

    def contender(messages):
        def step(_number):
            return enfold.condense_sync(messages, strategy, **options)

        seconds, done = timed(step, rounds=3)
        restored = enfold.restore(done.messages, done.ledger) == messages
        return {"seconds": seconds, "after": done.messages, "restored": restored}

    return contender


start(
    {
        "count": {"enfold": count},
        "turn": {"enfold": one_turn},
        "compress": {"enfold": compress},
        "prune": {
            "enfold lossless": prune("lossless"),
            "enfold truncation": prune("truncation"),
            "enfold smart, balanced": prune(None, preset="balanced"),
        },
    }
)
