"""Learn the weights of `enfold.text.likeness` from sentences that are rules, and from others.

    python benchmarks/train_rules.py [--check]

The sentences are those of `rules/training.tsv` and `tests/text/rule_sentences.toml`. Sentences that
people typed in every other recorded conversation of `ENFOLD_DATA` are taken for no rules if they
have few cues of one. The other files of `rules/`, and `rule_sentences_unseen.toml` and
`rule_sentences_later.tsv` beside the tests, measure the classifier and are not read here. The
result is the same on every machine. `--check` learns from four fifths of `training.tsv`, prints how
many sentences of the last fifth are judged rightly, and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import struct
import tomllib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

from recorded import MEETINGS, all_sets, conversations
from typed_text import typed_texts

from enfold.text import likeness
from enfold.text.rules import cue_score, find_rules, words_of
from enfold.text.sentences import whole_sentences

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests" / "text"
ROUNDS = 12
RATE = 0.6
SHRINK = 2e-5
"""Share of a weight that is lost with each sentence that uses it."""


LEAST_LENGTH, MOST_LENGTH = 8, 300
"""Characters of a typed sentence."""
RULE_CUES = 2.0
"""Score of cues from which a typed sentence may be a rule."""
RULES_COUNT = 3.0
"""How often a rule counts: there are more other sentences."""


class Example(NamedTuple):
    """A sentence whose kind is known."""

    text: str
    is_rule: bool


def main() -> None:
    """Write the weights, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    own, cued = own_examples(), [*cued_examples(), *typed_examples()]
    if options.check:
        for part in range(5):
            weights = learn([*cued, *(each for n, each in enumerate(own) if n // 2 % 5 != part)])
            check(weights, [each for n, each in enumerate(own) if n // 2 % 5 == part])
        return
    path = Path(likeness.__file__).with_name(likeness.WEIGHTS)
    path.write_bytes(struct.pack(f"{likeness.BUCKETS}b", *steps(learn([*cued, *own]))))


def own_examples() -> list[Example]:
    """Return the sentences that were written for this."""
    lines = (HERE / "rules" / "training.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return [Example(text, kind == "rule") for kind, _, text in rows]


def cued_examples() -> list[Example]:
    """Return the sentences that the cues of rules were written with."""
    path = TESTS / "rule_sentences.toml"
    languages = tomllib.loads(path.read_text(encoding="utf-8")).values()
    return [
        Example(text, kind == "rules")
        for language in languages
        for kind in ("rules", "others")
        for text in language[kind]
    ]


def typed_examples() -> list[Example]:
    """Return sentences that people typed in every other recorded conversation."""
    names = [name for name in all_sets() if name not in MEETINGS]
    texts = {
        sentence.strip()
        for id, conversation in conversations(names)
        if int(sha256(id.encode()).hexdigest(), 16) % 2
        for _, text in typed_texts(conversation.messages)
        for line in text.splitlines()
        for sentence in whole_sentences(line)
    }
    typed = sorted(text for text in texts if LEAST_LENGTH < len(text) < MOST_LENGTH)
    return [Example(text, is_rule=False) for text in typed if cue_score(text) < RULE_CUES]


def learn(examples: Sequence[Example]) -> list[float]:
    """Return the weights: logistic regression, one sentence at a time."""
    random = Random(13)
    weights = [0.0] * likeness.BUCKETS
    prepared = [(likeness.buckets(words_of(text)), is_rule) for text, is_rule in examples]
    for number in range(ROUNDS):
        random.shuffle(prepared)
        rate = RATE / (1 + number / 2)
        for places, is_rule in prepared:
            error = is_rule - 1 / (1 + math.exp(-value(weights, places)))
            error *= RULES_COUNT if is_rule else 1
            step = rate * error / math.sqrt(len(places))
            for place in places:
                weights[place] += step - SHRINK * weights[place]
            weights[0] += rate * error / 10
    return weights


def value(weights: Sequence[float], places: Sequence[int]) -> float:
    """Return the likeness of a sentence."""
    return sum(weights[place] for place in places) / math.sqrt(len(places)) + weights[0]


def steps(weights: Sequence[float]) -> list[int]:
    """Return the weights as they are stored."""
    return [max(-127, min(127, round(weight / likeness.SCALE))) for weight in weights]


def check(weights: Sequence[float], examples: Sequence[Example]) -> None:
    """Print the share of rules and of other sentences above a few limits."""
    rules = [value(weights, likeness.buckets(words_of(e.text))) for e in examples if e.is_rule]
    others = [value(weights, likeness.buckets(words_of(e.text))) for e in examples if not e.is_rule]
    cued = sum(bool(find_rules(e.text)) for e in examples if e.is_rule) / len(rules)
    shares = (
        f"{limit}: {_above(rules, limit):.0%} of rules, {_above(others, limit):.0%} of others"
        for limit in (-0.5, 0, 0.5, 1)
    )
    print(f"{'; '.join(shares)}; found by find_rules now: {cued:.0%}")


def _above(values: Sequence[float], limit: float) -> float:
    return sum(value >= limit for value in values) / len(values)


if __name__ == "__main__":
    main()
