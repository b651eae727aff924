"""compactbench's public cases: `compactbench_cases.py SUITES NAME PYTHON [--quick]`.

`python benchmarks/compaction_cases.py` makes the environments and calls this for each compactor.
It runs inside the environment of compactbench. SUITES is the folder `benchmarks/public` of
compactbench's archive. NAME is a compactor of `compactors.py`, and PYTHON the interpreter that has
its library. The script prints one JSON object.

compactbench asks a model each question with the artifact as its only context, and searches the
reply for a phrase. There is no model here, so a perfect reader takes its place: it answers with the
phrase if the artifact has it. Asked about something that must not be done or is no longer true, it
answers rightly if the artifact has all that the case asks for, with an overridden decision before
the one that replaces it wherever the transcript has them in this order, and else names the
forbidden phrase. With the whole transcript as the artifact its score is 1. Its scores are the most
that a model could reach. All else is compactbench's own: cases, drift cycles, weights, penalties,
cl100k_base.

The artifact is the text of the messages that a library gives back. The ratio is given with the
fixed words of enfold's fence, which a model is sent too, and without them; the target counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
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
from splintr import Tokenizer

SUITES = (("elite_practice", DifficultyLevel.ELITE), ("starter", DifficultyLevel.HARD))
RATIOS = (4, 8)
CASES = 3
CYCLES = 2
FENCE = re.compile(
    r"^\[Previous conversation summary\]\n.*?^<[\w-]+>\n|^</[\w-]+>$", re.DOTALL | re.MULTILINE
)
LONGEST = 8_000
"""Characters that compactbench allows for a summary."""


class Process:
    """A compactor in the environment of its library."""

    def __init__(self, python: str, name: str) -> None:
        script = Path(__file__).parent / "compactors.py"
        self._process = subprocess.Popen(
            [python, str(script), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def compact(self, messages: list[dict[str, Any]], target: int) -> list[dict[str, Any]]:
        """Return the messages that the library leaves."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"messages": messages, "target": target}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the compactor ended with {self._process.wait()}")
        return json.loads(line)


class PeerCompactor(Compactor):
    """The library of the process."""

    name: ClassVar[str] = "peer"
    version: ClassVar[str] = "1"
    ratio: ClassVar[int] = 4
    process: ClassVar[Process]

    async def compact(
        self,
        transcript: Transcript,
        config: dict[str, Any] | None = None,  # noqa: ARG002 - compactbench's interface
        previous_artifact: CompactionArtifact | None = None,  # noqa: ARG002
    ) -> CompactionArtifact:
        """Compact the transcript to the ratio's share of its tokens."""
        messages = [
            {
                "role": str(turn.role),
                "content": turn.content,
                "tokens": compression.count_tokens(turn.content),
            }
            for turn in transcript.turns
        ]
        target = compression.transcript_tokens(transcript) // self.ratio
        left = self.process.compact(messages, target)
        whole = "\n".join(str(each["content"]) for each in left)
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
        items = (each for each in self._case.evaluation_items if each.prompt in request.prompt)
        item = next(items, None)
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
    """Print the scores of one compactor, by suite and ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", type=Path, help="benchmarks/public of compactbench's archive")
    parser.add_argument("name", help="a compactor of compactors.py")
    parser.add_argument("python", help="the interpreter that has its library")
    parser.add_argument("--quick", action="store_true", help="one case of each template")
    options = parser.parse_args()
    # Spares the download of tiktoken.
    compression._ENCODER_CACHE["cl100k_base"] = Tokenizer.from_pretrained("cl100k_base")  # noqa: SLF001
    PeerCompactor.process = Process(options.python, options.name)
    found: list[dict[str, Any]] = []
    for suite, difficulty in SUITES:
        for ratio in RATIOS:
            cases = 1 if options.quick else CASES
            rows = asyncio.run(run(options.suites, suite, difficulty, ratio, cases))
            means = [mean(row) for row in zip(*rows, strict=True)]
            scores = dict(zip(("score", "drift", "ratio", "fenced"), means, strict=True))
            found.append({"suite": suite, "asked": ratio, "cases": len(rows), **scores})
    print(json.dumps({"rows": found}))


async def run(
    folder: Path, suite: str, difficulty: DifficultyLevel, ratio: int, cases: int
) -> list[tuple[float, float, float, float]]:
    """Return score, score after the last cycle and both ratios of every case."""
    PeerCompactor.ratio = ratio
    rows: list[tuple[float, float, float, float]] = []
    for template in load_suite(folder / suite):
        for slot in range(cases):
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
                    compactor=PeerCompactor(reader, "reader"),
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
