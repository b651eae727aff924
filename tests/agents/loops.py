"""A tool loop that a scripted model drives, and the checks of what reached the model.

The model reads files, reads some again, runs commands that fail, writes notes, and the provider
once says that a request is too long. Each agent has its own names for these tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enfold.messages import Message, ToolCall
from enfold.testing import assistant, call
from enfold.testing.provider import Overflow, ProviderRequest

RULES = (
    "Never rename the module `harbour_master` without a migration note.",
    "Every amount of money is an integer number of øre, never a float.",
    "Tests of the tide tables must not touch the network.",
)
"""What the project's instructions say; each must be in every request."""
PROMPT = "Please audit all parts of the ferry planner, take notes, and keep the quay numbers exact."
SUMMARY = (
    "Goal: audit all parts of the ferry planner and take notes. Parts that were read contain tide "
    "tables with quay numbers. Notes were written to notes.md. Next: read the remaining parts."
)
_LINES = 90

MakeCall = Callable[[str, Path], tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Tools:
    """How an agent's tools are called: each returns a name and arguments."""

    read: Callable[[Path], tuple[str, Mapping[str, Any]]]
    shell: Callable[[str], tuple[str, Mapping[str, Any]]]


@dataclass
class LoopScript:
    """A model that works through a number of steps, then says that it is done."""

    tools: Tools
    project: Path
    steps: int
    overflow_at: int = 7
    thinks: bool = True
    step: int = 0
    main: list[ProviderRequest] = field(default_factory=list)
    """Requests of the conversation; others ask for titles and summaries."""

    def __call__(self, request: ProviderRequest) -> Message:
        """Return the next step of the loop."""
        if not is_main(request):
            return assistant(_side_answer(request))
        if self.step + 1 == self.overflow_at:
            self.overflow_at = 0
            raise Overflow
        self.main.append(request)
        self.step += 1
        if self.step > self.steps:
            return assistant("The audit is done.")
        calls = tuple(self._calls())
        thought = f"Step {self.step}: continue with the next part." if self.thinks else ""
        return assistant(f"Step {self.step}.", *calls, thinking=thought)

    @property
    def is_finished(self) -> bool:
        return self.step > self.steps

    def _calls(self) -> Iterator[ToolCall]:
        number = self.step
        part = part_path(self.project, number)
        match number % 5:
            case 0:
                text = f"note {number}: quay {number * 7} checked"
                yield self._call(*self.tools.shell(f"echo '{text}' >> notes.md && cat notes.md"))
            case 1:
                yield self._call(*self.tools.read(part))
            case 2:
                # Two calls in one reply.
                yield self._call(*self.tools.shell(f"cat {part.name}"), suffix="a")
                yield self._call(*self.tools.shell("ls | head -20"), suffix="b")
            case 3:
                yield self._call(*self.tools.read(part_path(self.project, number - 2)))
            case _:
                yield self._call(*self.tools.shell(f"cat missing_{number}.txt; exit 3"))

    def _call(self, name: str, arguments: Mapping[str, Any], *, suffix: str = "") -> ToolCall:
        return call(f"call_{self.step:04}{suffix}", name, arguments)


def is_main(request: ProviderRequest) -> bool:
    """True if the request is the agent's next turn: its last message is a prompt or a result."""
    if not _has_tools(request):
        return False
    # Reminders of the client may come after the result.
    spoken = [each for each in _objects(request.messages) if each.get("role") != "system"]
    last = json.dumps(spoken[-1], ensure_ascii=False)
    kinds = ('"tool_result"', '_output"', '"functionResponse"', '"role": "tool"')
    return any(kind in last for kind in kinds) or PROMPT in "\n".join(strings(spoken[-2:]))


def _has_tools(request: ProviderRequest) -> bool:
    if request.body.get("tools"):
        return True
    return any(item.get("type") == "additional_tools" for item in _objects(request.messages))


def _objects(values: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, dict))


def _side_answer(request: ProviderRequest) -> str:
    config = request.body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    if schema is None:
        return SUMMARY
    values = {"string": "user", "boolean": False, "number": 0, "integer": 0, "array": []}
    fields = schema.get("properties", {})
    return json.dumps(
        {name: values.get(str(about.get("type")).lower(), {}) for name, about in fields.items()}
    )


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def part_path(project: Path, number: int) -> Path:
    """Return the file of a step."""
    return project / f"part_{number:03}.py"


def make_project(project: Path, steps: int) -> None:
    """Write the project: rules for every agent, and files of about 2,000 tokens."""
    project.mkdir(parents=True)
    rules = "# Project rules\n\n" + "".join(f"- {rule}\n" for rule in RULES)
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
        (project / name).write_text(rules, "utf-8")
    for number in range(1, steps + 2):
        lines = [
            f"QUAY_{number}_{line} = ({number * 1000 + line}, 'tide table {line} of part {number}')"
            for line in range(_LINES)
        ]
        part_path(project, number).write_text("\n".join(lines) + "\n", "utf-8")


@dataclass(frozen=True)
class Findings:
    """The findings in the requests of a run."""

    requests: int
    breaks: int
    """Number of requests that do not begin with the whole request before them."""
    without_rule: list[tuple[int, str]]
    without_prompt: list[int]


def examine(requests: Sequence[ProviderRequest], prompt: str = PROMPT) -> Findings:
    """Check what every request of a conversation must contain, and count changes of the prefix."""
    without_rule: list[tuple[int, str]] = []
    without_prompt: list[int] = []
    breaks = 0
    previous: list[str] = []
    for place, request in enumerate(requests):
        text = "\n".join(strings(request.body))
        without_rule += ((place, rule) for rule in RULES if rule not in text)
        if prompt not in text:
            without_prompt.append(place)
        current = [json.dumps(_without_marks(each), sort_keys=True) for each in request.messages]
        if current[: len(previous)] != previous:
            breaks += 1
        previous = current
    return Findings(len(requests), breaks, without_rule, without_prompt)


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_marks(each) for name, each in value.items()}
        kept.pop("cache_control", None)
        if isinstance(kept.get("content"), str):
            # A cache mark needs a block, so clients write the same text in two ways.
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    return value
