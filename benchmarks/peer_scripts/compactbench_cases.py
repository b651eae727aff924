"""compactbench's public cases with enfold as the compactor, at 4 and 8 times fewer tokens.

compactbench (PyPI) is no dependency of enfold: give it an environment of its own, and its source
archive, which has the cases.

    python -m venv /tmp/compactbench
    /tmp/compactbench/bin/pip install . compactbench
    pip download --no-deps --no-binary :all: -d /tmp/compactbench compactbench==0.1.0
    tar xzf /tmp/compactbench/compactbench-0.1.0.tar.gz -C /tmp/compactbench
    /tmp/compactbench/bin/python benchmarks/peer_scripts/compactbench_cases.py \
        /tmp/compactbench/compactbench-0.1.0/benchmarks/public

compactbench asks a model each question with the artifact as its only context, and searches the
reply for a phrase. There is no model here, so a perfect reader takes its place: it answers with the
phrase if the artifact has it. Asked about something that must not be done or is no longer true, it
answers rightly if the artifact has all that the case asks for, with an overridden decision before
the one that replaces it wherever the transcript has them in this order, and else names the
forbidden phrase. With the whole transcript as the artifact its score is 1. Its scores are the most
that a model could reach. All else is compactbench's own: cases, drift cycles, weights, penalties,
cl100k_base.

The artifact is the text of the messages that enfold gives back. The ratio is given with the fixed
words of the fence, which a model is sent too, and without them; the target counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

from compactbench.compactors import Compactor
from compactbench.contracts import CompactionArtifact, GeneratedCase, Transcript
from compactbench.dsl import DifficultyLevel, load_suite
from compactbench.engine import derive_case_seed, generate_case
from compactbench.providers import CompletionRequest, CompletionResponse, Provider
from compactbench.runner.cycle import execute_cycle
from compactbench.scoring import compression

import enfold
from enfold.tokens import get

SUITES = (("elite_practice", DifficultyLevel.ELITE), ("starter", DifficultyLevel.HARD))
RATIOS = (4, 8)
CASES = 3
CYCLES = 2
FENCE = re.compile(
    r"^\[Previous conversation summary\]\n.*?^<[\w-]+>\n|^</[\w-]+>$", re.DOTALL | re.MULTILINE
)
LONGEST = 8_000
"""Characters that compactbench allows for a summary."""


class Cl100k:
    """The tokenizer of compactbench's ratios, without a download."""

    def encode(self, text: str) -> range:
        """Return as many values as the text has tokens."""
        return range(get("cl100k_base").count(text))


class Enfold(Compactor):
    """enfold's native strategy with the built-in summarizer."""

    name: ClassVar[str] = "enfold"
    version: ClassVar[str] = "native"
    ratio: ClassVar[int] = 4

    async def compact(
        self,
        transcript: Transcript,
        config: dict[str, Any] | None = None,  # noqa: ARG002 - compactbench's interface
        previous_artifact: CompactionArtifact | None = None,  # noqa: ARG002
    ) -> CompactionArtifact:
        """Condense the transcript to the ratio's share of its tokens."""
        messages = [{"role": str(turn.role), "content": turn.content} for turn in transcript.turns]
        target = compression.transcript_tokens(transcript) // self.ratio
        done = await enfold.condense(messages, "native", target=target, tokenizer="cl100k_base")
        whole = "\n".join(each["content"] for each in done.messages)
        text = FENCE.sub("", whole)
        return CompactionArtifact(
            summaryText=text[:LONGEST],
            methodMetadata={"with fence": compression.count_tokens(whole)},
        )


class PerfectReader(Provider):
    """Answers from the artifact whatever can be answered from it."""

    key: ClassVar[str] = "reader"

    def __init__(self, case: GeneratedCase) -> None:
        self._case = case

    async def complete(self, request: CompletionRequest) -> CompletionResponse:
        """Answer a question of the case; anything else is a request to go on."""
        asked = (each for each in self._case.evaluation_items if each.prompt in request.prompt)
        item = next(asked, None)
        text = "Let us go on." if item is None else self._answer(request.prompt, item.expected)
        return CompletionResponse(text, 1, 1, request.model)

    def _answer(self, prompt: str, expected: dict[str, Any]) -> str:
        context = _plain(prompt.rpartition("QUESTION:")[0])
        phrase = str(expected["value"])
        if expected["check"] == "contains_normalized":
            return phrase if _plain(phrase) in context else "I do not know."
        return "No." if self._is_settled(context, _plain(phrase)) else phrase

    def _is_settled(self, context: str, forbidden: str) -> bool:
        """True if the artifact tells that the forbidden phrase does not hold."""
        items = self._case.evaluation_items
        values = [
            _plain(str(each.expected["value"]))
            for each in items
            if each.expected["check"] == "contains_normalized"
        ]
        if not all(value in context for value in values):
            return False
        transcript = _plain("\n".join(turn.content for turn in self._case.transcript.turns))
        return self._is_replaced(context, forbidden) or not self._is_replaced(transcript, forbidden)

    def _is_replaced(self, text: str, forbidden: str) -> bool:
        """True if a decision of the case follows the forbidden phrase in a text."""
        decisions = map(_plain, self._case.ground_truth.locked_decisions)
        last = [text.rfind(each) for each in decisions if each in text]
        return text.rfind(forbidden) < max(last, default=-1)


def main() -> None:
    """Print a row per suite and ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", type=Path, help="benchmarks/public of compactbench's archive")
    options = parser.parse_args()
    compression._ENCODER_CACHE["cl100k_base"] = Cl100k()  # noqa: SLF001 - spares a download
    print("| suite | asked | cases | score | after drift | ratio | with the fence |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for suite, difficulty in SUITES:
        for ratio in RATIOS:
            rows = asyncio.run(run(options.suites, suite, difficulty, ratio))
            first, last, plain, fenced = (mean(row) for row in zip(*rows, strict=True))
            print(
                f"| {suite} | {ratio}x | {len(rows)} | {first:.3f} | {last:.3f} | "
                f"{plain:.1f}x | {fenced:.1f}x |"
            )


async def run(
    folder: Path, suite: str, difficulty: DifficultyLevel, ratio: int
) -> list[tuple[float, float, float, float]]:
    """Return score, score after the last cycle and both ratios of every case."""
    Enfold.ratio = ratio
    rows: list[tuple[float, float, float, float]] = []
    for template in load_suite(folder / suite):
        for slot in range(CASES):
            seed = derive_case_seed(f"{suite}@{template.version}", "default", slot)
            case = generate_case(template, seed, difficulty)
            reader = PerfectReader(case)
            transcript, artifact = case.transcript, None
            scores: list[float] = []
            for cycle in range(CYCLES + 1):
                done = await execute_cycle(
                    case=case,
                    transcript=transcript,
                    cycle_number=cycle,
                    previous_artifact=artifact,
                    compactor=Enfold(reader, "reader"),
                    provider=reader,
                    model="reader",
                    case_seed=seed,
                )
                if artifact is None:
                    plain = done.scorecard.compression_ratio
                    fenced = compression.transcript_tokens(case.transcript) / max(
                        1, done.artifact.method_metadata["with fence"]
                    )
                scores.append(done.scorecard.penalized_cycle_score)
                transcript, artifact = done.extended_transcript, done.artifact
            rows.append((scores[0], scores[-1], plain, fenced))
    return rows


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


if __name__ == "__main__":
    main()
