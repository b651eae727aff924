"""No conversation raises or blocks: every strategy and preset on every recorded conversation.

    python benchmarks/sweep.py [--json FILE] [--every N]

Without a store: each strategy and preset, without a goal, with a target of a fifth of the tokens,
and with a window of half of them. With a store: a session whose model's window is half of the
conversation (at least 4,000 tokens) gets all messages, then `prepare` and `compress` are called;
and once more with the messages in two parts and a compression between them. The built-in summarizer
writes all summaries. A run is wrong if it raises or blocks, is larger than before, parts a tool
call from its result, or cannot be restored exactly. Where the system messages and the last user
message alone are larger than the window, nothing can be done; those sessions are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from recorded import all_sets, conversations
from targets import fixed_tokens

import enfold
from enfold import wire
from enfold.messages import Conversation, Message, ToolCall, ToolResult
from enfold.tokens import count_conversation

TOKENIZER = "o200k_base"
PRESETS = ("speed", "quality", "cost", "balanced", "agent")
STRATEGIES = ("native", "lossless", "truncation", "smart")
LEAST_WINDOW = 4_000


@dataclass(frozen=True, slots=True)
class Run:
    """One conversation, one way."""

    case: str
    way: str
    is_stored: bool
    problem: str = ""
    """Empty if nothing is wrong."""
    is_possible: bool = True


def main() -> None:
    """Print the runs that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write every run")
    parser.add_argument("--every", type=int, default=1, help="take every Nth conversation")
    options = parser.parse_args()
    chosen = list(conversations(all_sets()))[:: options.every]
    runs = [run for id, each in chosen if each.messages for run in condense_all(id, each)]
    runs += asyncio.run(store_all(chosen))
    print(f"{len(chosen)} conversations.\n")
    print("| door | runs | wrong | share | not possible |")
    print("|---|--:|--:|--:|--:|")
    for name, is_stored in (("stateless", False), ("stored", True)):
        rows = [each for each in runs if each.is_stored == is_stored]
        possible = [each for each in rows if each.is_possible]
        wrong = sum(bool(each.problem) for each in possible)
        print(
            f"| {name} | {len(possible):,} | {wrong} | {wrong / len(possible):.2%} | "
            f"{len(rows) - len(possible)} |"
        )
    problems = [each for each in runs if each.problem and each.is_possible]
    counts = Counter((each.way, _kind(each.problem)) for each in problems)
    for (way, kind), count in counts.most_common(20):
        example = next(e for e in problems if (e.way, _kind(e.problem)) == (way, kind))
        print(f"\n{count} × {way}: {kind}\n    {example.case}: {example.problem[:300]}")
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in runs], indent=1))


def condense_all(id: str, conversation: Conversation) -> Iterator[Run]:
    """Condense a conversation in every way."""
    tokens = count_conversation(conversation, TOKENIZER).total
    body = wire.render(conversation)
    pairs = unpaired(conversation.messages)
    for way in (*STRATEGIES, *PRESETS):
        strategy, preset = (way, None) if way in STRATEGIES else (None, way)
        goals: tuple[dict[str, int], ...] = (
            {},
            {"target": max(1, tokens // 5)},
            {"window": max(2, tokens // 2)},
        )
        for goal in goals:
            name = f"{way} {' '.join(goal)}".strip()
            try:
                done = enfold.condense_sync(body, strategy, preset=preset, **goal)
            except enfold.NotFoundError:  # versions without this preset
                break
            except Exception as error:  # noqa: BLE001 - any error is what is looked for
                yield Run(id, name, is_stored=False, problem=f"{type(error).__name__}: {error}")
                continue
            view = wire.parse(done.messages, conversation.dialect)
            problem = ""
            if count_conversation(view, TOKENIZER).total > tokens:
                problem = "larger than before"
            elif not unpaired(view.messages) <= pairs:
                problem = "a tool call without its result"
            elif enfold.restore(done.messages, done.ledger) != body:
                problem = "not restored"
            yield Run(id, name, is_stored=False, problem=problem)


async def store_all(chosen: list[tuple[str, Conversation]]) -> list[Run]:
    """Compress every conversation as a stored session with each strategy."""
    async with enfold.open("sqlite:///:memory:") as engine:
        return [
            run
            for id, conversation in chosen
            if conversation.messages
            async for run in store(engine, id, conversation)
        ]


async def store(engine: enfold.Engine, id: str, conversation: Conversation) -> AsyncIterator[Run]:
    """Compress one conversation as sessions, at once and in two parts."""
    tokens = count_conversation(conversation, TOKENIZER).total
    window = max(LEAST_WINDOW, tokens // 2)
    model = f"sweep:window-{window}"
    await engine.models.edit(model, max_input=window, max_output=window)
    messages = conversation.messages
    is_possible = fixed_tokens(conversation) < window
    half = len(messages) // 2
    for strategy in STRATEGIES:
        for name, parts in (
            ("at once", (messages,)),
            ("in parts", (messages[:half], messages[half:])),
        ):
            session = await engine.session(f"{id} {strategy} {name}", model=model)
            await session.configure(strategy=strategy)
            problem = ""
            try:
                for part in parts:
                    if part:
                        await session.append(*part)
                        await session.prepare()
                        await session.compress(force=True)
                view = (await session.prepare()).messages
                if not unpaired(view) <= unpaired(messages):
                    problem = "a tool call without its result"
            except Exception as error:  # noqa: BLE001 - any error is what is looked for
                problem = f"{type(error).__name__}: {error}"
            way = f"{strategy} {name}"
            yield Run(id, way, is_stored=True, problem=problem, is_possible=is_possible)


def unpaired(messages: tuple[Message, ...]) -> set[str]:
    """Return the ids of calls without a result and of results without a call."""
    parts = [part for message in messages for part in message.parts]
    calls = {part.id for part in parts if isinstance(part, ToolCall)}
    results = {part.call_id for part in parts if isinstance(part, ToolResult)}
    return calls ^ results


def _kind(problem: str) -> str:
    return problem.partition(":")[0]


if __name__ == "__main__":
    main()
