"""Targets: the share of runs that end between 80 and 100 % of the target, and windows that fit.

    python benchmarks/targets.py [--json FILE] [--every N]

Every conversation of 4,000 tokens or more is condensed to 10, 25, 50 and 75 % of its tokens by the
built-in summarizer. Tokens after are counted here, from the messages that come back. A target
cannot be reached if system messages and the last user message, which may not change, take more
than it; such runs are counted apart. A window of 1.25 and 2 times a conversation, and one of
200,000 tokens, must leave it exactly as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from recorded import all_sets, conversations

import enfold
from enfold import wire
from enfold.messages import Conversation, Text
from enfold.tokens import count_conversation, count_messages

TOKENIZER = "o200k_base"
LEAST_TOKENS = 4_000
TARGETS = (0.1, 0.25, 0.5, 0.75)
LOWEST = 0.8
WAYS = (("native", None), ("smart", "agent"), ("smart", "balanced"), ("smart", "quality"))
WINDOWS = (1.25, 2.0)
LARGE = 200_000


@dataclass(frozen=True, slots=True)
class TargetRun:
    """One conversation, one way, one target."""

    case: str
    way: str
    share: float
    tokens: int
    target: int
    fixed: int
    """Tokens of the system messages and of the last user message."""
    after: int
    failure: str = ""

    @property
    def is_possible(self) -> bool:
        """True if what must stay fits the target."""
        return self.fixed <= self.target

    @property
    def hits(self) -> bool:
        """True if it ends between 80 and 100 % of the target."""
        return not self.failure and LOWEST * self.target <= self.after <= self.target


def main() -> None:
    """Print the shares per way and target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write every run")
    parser.add_argument("--every", type=int, default=1, help="take every Nth conversation")
    options = parser.parse_args()
    chosen = [
        (id, conversation, tokens)
        for id, conversation in conversations(all_sets())
        if (tokens := count_conversation(conversation, TOKENIZER).total) >= LEAST_TOKENS
    ][:: options.every]
    runs = list(run_all(chosen))
    print_targets(runs)
    print_windows(chosen)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in runs], indent=1))


def run_all(chosen: Sequence[tuple[str, Conversation, int]]) -> Iterator[TargetRun]:
    """Condense every conversation to every target in each way."""
    for id, conversation, tokens in chosen:
        body = wire.render(conversation)
        fixed = fixed_tokens(conversation)
        for strategy, preset in WAYS:
            for share in TARGETS:
                target = int(share * tokens)
                way = preset or strategy
                try:
                    done = enfold.condense_sync(
                        body, None if preset else strategy, preset=preset, target=target
                    )
                except enfold.NotFoundError:  # versions without this preset
                    break
                except enfold.EnfoldError as error:
                    yield TargetRun(id, way, share, tokens, target, fixed, tokens, str(error))
                else:
                    view = wire.parse(done.messages, conversation.dialect)
                    after = count_conversation(view, TOKENIZER).total
                    yield TargetRun(id, way, share, tokens, target, fixed, after)


def fixed_tokens(conversation: Conversation) -> int:
    """Return the tokens of system messages and of the last message that a person typed."""
    counts = count_messages(conversation.messages, TOKENIZER)
    indexes = {i for i, m in enumerate(conversation.messages) if m.role == "system"}
    users = (
        index
        for index, message in reversed(list(enumerate(conversation.messages)))
        if message.role == "user" and any(isinstance(part, Text) for part in message.parts)
    )
    if (last := next(users, None)) is not None:
        indexes.add(last)
    return sum(counts[index] for index in indexes)


def print_targets(runs: Sequence[TargetRun]) -> None:
    """Print the share of runs that end in the range, and where the others end."""
    print("| way | target | runs | 80–100 % of it | below | above | failed | not possible |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for way in (*dict.fromkeys(each.way for each in runs), ""):
        for share in (*TARGETS, 0.0):
            rows = [r for r in runs if way in ("", r.way) and share in (0.0, r.share)]
            if not way and share:
                continue
            possible = [each for each in rows if each.is_possible]
            if possible:
                hits = sum(each.hits for each in possible)
                failed = sum(bool(each.failure) for each in possible)
                above = sum(each.after > each.target and not each.failure for each in possible)
                below = len(possible) - hits - failed - above
                print(
                    f"| {way or 'all'} | {f'{share:.0%}' if share else 'all'} | {len(possible)} | "
                    f"{hits / len(possible):.1%} | {below} | {above} | {failed} | "
                    f"{len(rows) - len(possible)} |"
                )


def print_windows(chosen: Sequence[tuple[str, Conversation, int]]) -> None:
    """Print the share of conversations that a window they fit leaves as they are."""
    tried = untouched = 0
    for _, conversation, tokens in chosen:
        body = wire.render(conversation)
        for window in (*(int(times * tokens) for times in WINDOWS), LARGE):
            if window < tokens * WINDOWS[0]:
                continue
            for strategy in ("native", "smart"):
                tried += 1
                try:
                    done = enfold.condense_sync(body, strategy, window=window)
                except enfold.EnfoldError:
                    continue
                untouched += done.messages == body
    print(f"\nWindows that fit: {untouched / max(1, tried):.1%} of {tried} runs left untouched.")


if __name__ == "__main__":
    main()
