"""The built-in presets on recorded sessions: size, model calls, cost, people's words, time.

    python benchmarks/presets.py [--share 0.4] [--sessions N] [--most-tokens N]

Sessions come from the folder that ENFOLD_DATA names. The built-in summarizer stands in for a model;
its calls are counted, at the prices of gpt-4o-mini. There is no profile, so `cost` calls no model.
A session is condensed to a share of its tokens; sessions whose system messages and last user
message take more than that do not count among the targets. Words kept: sentences of users, without
the text of agents around them, that are in the result word for word.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import enfold
from enfold import wire
from enfold.jsontext import loads
from enfold.llm.costs import BilledTokens, cost_of, prices
from enfold.messages import Conversation, Message, text_of
from enfold.strategies import presets
from enfold.summaries import Summary, SummaryRequest
from enfold.summaries.local import LocalSummarizer
from enfold.summaries.prompts import build
from enfold.text.harness import person_text
from enfold.tokens import count_conversation, get, warm

sys.path.insert(0, str(Path(__file__).parent))
from recorded import AGENTS, DATA
from targets import fixed_tokens

TOKENIZER = "o200k_base"
PRICES = prices("openai", "gpt-4o-mini")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class CountingSummarizer:
    """The built-in summarizer, with a count of its calls and the price of a model."""

    def __init__(self) -> None:
        self._local = LocalSummarizer()
        self.name = self._local.name
        self.max_input = self._local.max_input
        self.calls = 0

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Count the call and write the summary."""
        self.calls += 1
        written = await self._local.summarize(request)
        prompt = build(request)
        sent = sum(get(TOKENIZER).count_many([prompt.system, prompt.user]))
        return replace(written, cost=cost_of(PRICES, BilledTokens(sent, written.tokens)).total)


@dataclass
class PresetFigures:
    """The results of a preset over all sessions."""

    before: int = 0
    after: int = 0
    met: int = 0
    possible: int = 0
    calls: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    kept: int = 0
    sentences: int = 0
    failures: list[str] = field(default_factory=list)


def sessions(most: int, most_tokens: int) -> list[Conversation]:
    """Return the first sessions of each set of agents that are long enough to condense."""
    found: list[Conversation] = []
    for name in AGENTS:
        file = DATA / f"{name}.jsonl"
        taken = 0
        for line in file.open("rb") if file.is_file() else ():
            conversation = wire.parse(loads(line)["messages"])
            tokens = count_conversation(conversation, TOKENIZER).total
            if taken < most and 5_000 <= tokens <= most_tokens:
                found.append(conversation)
                taken += 1
    return found


def sentences(messages: Iterable[Message]) -> list[str]:
    """Return the sentences that people typed."""
    texts = (person_text(message) for message in messages)
    split = (each.strip() for text in texts for each in _SENTENCE.split(text))
    return [each for each in split if each]


async def measure(name: str, conversations: Sequence[Conversation], share: float) -> PresetFigures:
    """Condense all sessions with one preset."""
    figures = PresetFigures()
    for conversation in conversations:
        before = count_conversation(conversation, TOKENIZER).total
        writer = CountingSummarizer()
        target = int(before * share)
        done = await enfold.condense(conversation, preset=name, target=target, summarizer=writer)
        view = wire.parse(done.messages, conversation.dialect).messages
        text = "\n".join(text_of(message.parts) for message in view)
        typed = sentences(conversation.messages)
        figures.before += before
        figures.after += done.report.tokens_after
        figures.met += done.report.tokens_after <= target
        figures.possible += fixed_tokens(conversation) <= target
        figures.calls += writer.calls
        figures.cost += done.report.cost or 0.0
        figures.seconds += done.report.seconds
        figures.sentences += len(typed)
        figures.kept += sum(each in text for each in typed)
    return figures


async def main() -> None:
    """Print one row for each preset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--most-tokens", type=int, default=120_000)
    options = parser.parse_args()
    warm(TOKENIZER)
    found = sessions(options.sessions, options.most_tokens)
    print(f"{len(found)} sessions, target {options.share:.0%} of each.\n")
    print("| preset | reduction | target met | model calls | cost | words kept | seconds |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in presets.BUILT_IN:
        each = await measure(name, found, options.share)
        print(
            f"| {name} | {1 - each.after / max(1, each.before):.0%} | "
            f"{each.met} of {each.possible} | {each.calls} | ${each.cost:.3f} | "
            f"{each.kept / max(1, each.sentences):.0%} | {each.seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    asyncio.run(main())
