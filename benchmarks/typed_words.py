"""Typed messages: the share of their sentences in view at a fifth of the tokens, and in chains.

    python benchmarks/typed_words.py [--json FILE] [--no-chains]

`typed_text.py` says what counts as typed; a sentence is in view if the view's text has it word for
word, tool calls and results left out. Every conversation of 2,000 tokens or more with typed
sentences is condensed to a fifth of its tokens by the built-in summarizer. No sentence of a run
that fails, or that ends more than a tenth above its target, counts as in view. The row `fitting`
leaves out conversations in which the typed sentences take more than half of the target, or more
than it together with the system messages and the last user message; the row `all` does not. The
column `possible` counts the shortest sentences that fit the target together with these messages,
as if a view needed nothing else.

Chains: a stored session gets a third of the conversation, then nine parts, and is compressed after
each; its window is a fifth of the conversation, at least 4,000 tokens. No sentence counts as in
view where the session is blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

from recorded import all_sets, conversations
from standing_rules import parts
from targets import fixed_tokens
from typed_text import CHATS, CODING, ViewText, typed_sentences

import enfold
from enfold import wire
from enfold.messages import Conversation
from enfold.tokens import count_conversation, get

TOKENIZER = "o200k_base"
BUDGET = 0.2
FITTING = 0.5
LEAST_TOKENS = 2_000
LEAST_WINDOW = 4_000
OVER = 1.1
WAYS = (("native", None), ("smart", "agent"), ("smart", "balanced"), ("smart", "quality"))
AFTER = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation with what a person typed in it."""

    kind: str
    id: str
    conversation: Conversation
    typed: list[str]
    tokens: int
    fits: bool
    """True if a fifth of the tokens has room for the typed sentences."""
    possible: int
    """The sentences that a fifth of the tokens has room for, the shortest first."""


@dataclass(frozen=True, slots=True)
class TypedSentences:
    """The sentences of one conversation that one view has."""

    kind: str
    case: str
    way: str
    fits: bool
    sentences: int
    possible: int
    in_view: int
    tokens: int
    tokens_after: int
    missing: tuple[str, ...] = ()
    failure: str = ""


def main() -> None:
    """Print the shares for coding sessions and chats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write what was found, case by case")
    parser.add_argument("--no-chains", dest="chains", action="store_false")
    options = parser.parse_args()
    found = list(condense_all())
    print_shares(found, "at a fifth of the tokens")
    if options.chains:
        chained = asyncio.run(chain_all())
        print()
        print_shares(chained, "in chains")
        found += chained
    if options.json:
        rows = [asdict(each) for each in found]
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1))


def cases() -> Iterator[Case]:
    """Yield the conversations that are measured."""
    names = set(all_sets())
    for kind, sets in (("coding", CODING), ("chat", CHATS)):
        for id, conversation in conversations(name for name in sets if name in names):
            tokens = count_conversation(conversation, TOKENIZER).total
            typed = typed_sentences(conversation.messages)
            if typed and tokens >= LEAST_TOKENS:
                target = BUDGET * tokens
                counts = sorted(get(TOKENIZER).count_many(typed))
                room = target - fixed_tokens(conversation)
                fits = sum(counts) <= min(FITTING * target, room)
                possible = bisect_right(list(accumulate(counts)), room)
                yield Case(kind, id, conversation, typed, tokens, fits, possible)


def condense_all() -> Iterator[TypedSentences]:
    """Condense every conversation to a fifth in each way."""
    for case in cases():
        body = wire.render(case.conversation)
        for strategy, preset in WAYS:
            name = None if preset else strategy
            try:
                done = enfold.condense_sync(
                    body, name, preset=preset, target=int(BUDGET * case.tokens)
                )
            except enfold.NotFoundError:  # versions without this preset
                continue
            except enfold.EnfoldError as error:
                view, after, failure = case.conversation, case.tokens, str(error)
            else:
                view = wire.parse(done.messages, case.conversation.dialect)
                after = count_conversation(view, TOKENIZER).total
                failure = "over the target" if after > OVER * BUDGET * case.tokens else ""
            yield _measured(case, preset or strategy, view, after, failure)


async def chain_all() -> list[TypedSentences]:
    """Compress every conversation ten times, as it grows."""
    async with enfold.open("sqlite:///:memory:") as engine:
        return [each for case in cases() async for each in chain(engine, case)]


async def chain(engine: enfold.Engine, case: Case) -> AsyncIterator[TypedSentences]:
    """Yield the sentences in view after the compressions that are looked at."""
    window = max(LEAST_WINDOW, int(BUDGET * case.tokens))
    model = f"words:window-{window}"
    await engine.models.edit(model, max_input=window, max_output=window)
    session = await engine.session(case.id, model=model)
    messages = case.conversation.messages
    for number, (start, end) in enumerate(pairwise(parts(messages)), start=1):
        await session.append(*messages[start:end])
        failure = ""
        try:
            await session.compress(force=True)
            view = Conversation((await session.prepare()).messages)
        except enfold.EnfoldError as error:
            failure = str(error)
            view = Conversation(())
        if number in AFTER and (so_far := typed_sentences(messages[:end])):
            after = count_conversation(view, TOKENIZER).total
            yield _measured(replace(case, typed=so_far), f"after {number}", view, after, failure)


def _measured(case: Case, way: str, view: Conversation, after: int, failure: str) -> TypedSentences:
    text = ViewText(view.messages)
    missing = tuple(each for each in case.typed if failure or not text.has(each))
    return TypedSentences(
        case.kind,
        case.id,
        way,
        case.fits,
        len(case.typed),
        min(case.possible, len(case.typed)),
        len(case.typed) - len(missing),
        case.tokens,
        after,
        missing,
        failure,
    )


def print_shares(found: Sequence[TypedSentences], title: str) -> None:
    """Print the pooled share of sentences for each kind and way."""
    print(
        f"| sentences that people typed, {title} | conversations | sentences | possible | "
        "in view | failed |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for kind in ("coding", "chat"):
        for fitting in (True, False):
            for way in dict.fromkeys(each.way for each in found):
                rows = [e for e in found if e.kind == kind and e.way == way]
                rows = [each for each in rows if each.fits or not fitting]
                total = sum(each.sentences for each in rows)
                if total:
                    share = sum(each.in_view for each in rows) / total
                    failed = sum(bool(each.failure) for each in rows)
                    name = f"{kind}, {'fitting' if fitting else 'all'}, {way}"
                    possible = sum(each.possible for each in rows) / total
                    print(
                        f"| {name} | {len(rows)} | {total:,} | {possible:.1%} | {share:.1%} | "
                        f"{failed} |"
                    )


if __name__ == "__main__":
    main()
