"""What can be set of the smart strategy: the prelude, and passes in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from enfold.errors import ConfigError
from enfold.messages import Role
from enfold.strategies.configs import Checked, Fault, Option
from enfold.summaries.prompts import validate

Operation: TypeAlias = Literal["keep", "suppress", "truncate", "summarize"]
ContentType: TypeAlias = Literal["message_text", "tool_parameters", "tool_results"]


@dataclass(frozen=True, slots=True)
class Truncate(Checked):
    """How much of a text stays."""

    max_chars: Annotated[int | None, Option("Characters that stay", least=0)] = None
    max_lines: Annotated[int | None, Option("Lines that stay", least=0)] = None
    add_ellipsis: Annotated[bool, Option("Say how much is missing")] = True

    def contradictions(self) -> Iterator[Fault]:
        """No limit at all."""
        if self.max_chars is None and self.max_lines is None:
            yield Fault("", "give maxChars, maxLines or both")


@dataclass(frozen=True, slots=True)
class Summarize(Checked):
    """Who summarizes a text, and how."""

    api_profile: Annotated[str | None, Option("The profile whose model writes")] = None
    max_tokens: Annotated[int, Option("Tokens that the summary may take", least=16)] = 150
    custom_prompt: Annotated[str | None, Option("A prompt of your own")] = None

    def contradictions(self) -> Iterator[Fault]:
        """A prompt that cannot be used."""
        return _prompt_faults("customPrompt", self.custom_prompt)


@dataclass(frozen=True, slots=True)
class Params:
    """What an operation needs to know."""

    truncate: Annotated[Truncate | None, Option("For truncate")] = None
    summarize: Annotated[Summarize | None, Option("For summarize")] = None


@dataclass(frozen=True, slots=True)
class OperationConfig:
    """What becomes of content of one type; a bare name stands for the operation."""

    SHORTHAND: ClassVar[str] = "operation"

    operation: Annotated[Operation, Option("What is done")]
    params: Annotated[Params | None, Option("How")] = None

    @property
    def truncate(self) -> Truncate:
        """How far to truncate."""
        given = self.params.truncate if self.params is not None else None
        return given or _TRUNCATE

    @property
    def summarize(self) -> Summarize:
        """How to summarize."""
        given = self.params.summarize if self.params is not None else None
        return given or _SUMMARIZE


_TRUNCATE = Truncate(max_chars=500, max_lines=10)
_SUMMARIZE = Summarize()
_KEEP = OperationConfig("keep")


@dataclass(frozen=True, slots=True)
class Operations:
    """An operation for each type of content."""

    message_text: Annotated[OperationConfig, Option("What users and the model said")] = _KEEP
    tool_parameters: Annotated[OperationConfig, Option("What tools were called with")] = _KEEP
    tool_results: Annotated[OperationConfig, Option("What tools gave back")] = _KEEP


@dataclass(frozen=True, slots=True)
class SomeOperations:
    """Operations for some types of content; the others are as usual."""

    message_text: Annotated[OperationConfig | None, Option("What was said")] = None
    tool_parameters: Annotated[OperationConfig | None, Option("What tools were called with")] = None
    tool_results: Annotated[OperationConfig | None, Option("What tools gave back")] = None


@dataclass(frozen=True, slots=True)
class Override:
    """Other operations for one message."""

    message_index: Annotated[int, Option("Which message, counted from 0", least=0)]
    operations: Annotated[SomeOperations, Option("What is done to it")]


@dataclass(frozen=True, slots=True)
class IndividualConfig:
    """How messages are processed one by one."""

    defaults: Annotated[Operations, Option("What is done to every message selected")]
    overrides: Annotated[tuple[Override, ...], Option("What is done to some instead")] = ()


@dataclass(frozen=True, slots=True)
class SummarizationConfig(Checked):
    """How the messages of a batch become one summary."""

    api_profile: Annotated[str | None, Option("The profile whose model writes")] = None
    custom_prompt: Annotated[str | None, Option("A prompt of your own")] = None
    keep_first: Annotated[int, Option("First messages that stay", least=0)] = 1
    keep_last: Annotated[int, Option("Last of the messages selected that stay", least=0)] = 3

    def contradictions(self) -> Iterator[Fault]:
        """A prompt that cannot be used."""
        return _prompt_faults("customPrompt", self.custom_prompt)


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """How messages are processed together."""

    operation: Annotated[Literal["keep", "summarize"], Option("What is done")]
    summarization_config: Annotated[SummarizationConfig, Option("How")] = SummarizationConfig()


@dataclass(frozen=True, slots=True)
class Selection(Checked):
    """Which messages a pass processes: all but the newest, or those that are named."""

    type: Annotated[Literal["preserve_recent", "preserve_percent", "custom"], Option("How")]
    keep_recent_count: Annotated[int | None, Option("Newest messages left alone", least=0)] = None
    keep_percentage: Annotated[
        float | None, Option("Newest messages left alone, in percent", least=0, most=100)
    ] = None
    indexes: Annotated[tuple[int, ...] | None, Option("Messages, counted from 0")] = None
    roles: Annotated[tuple[Role, ...] | None, Option("Messages of these roles")] = None

    def contradictions(self) -> Iterator[Fault]:
        """What the type needs is not there."""
        needed = {
            "preserve_recent": ("keepRecentCount", self.keep_recent_count),
            "preserve_percent": ("keepPercentage", self.keep_percentage),
            "custom": ("indexes", self.indexes if self.indexes is not None else self.roles),
        }
        name, value = needed[self.type]
        if value is None:
            other = " or roles" if self.type == "custom" else ""
            yield Fault(name, f"is missing; {self.type} needs it{other}")


@dataclass(frozen=True, slots=True)
class Condition:
    """When a pass runs."""

    token_threshold: Annotated[int, Option("Only with more tokens than this", least=0)]


@dataclass(frozen=True, slots=True)
class Execution(Checked):
    """Whether a pass runs."""

    type: Annotated[Literal["always", "conditional"], Option("When")] = "always"
    condition: Annotated[Condition | None, Option("For conditional")] = None

    def contradictions(self) -> Iterator[Fault]:
        """A condition is announced and not given."""
        if self.type == "conditional" and self.condition is None:
            yield Fault("condition", "is missing; conditional needs it")


@dataclass(frozen=True, slots=True)
class Pass(Checked):
    """One pass over the messages."""

    id: Annotated[str, Option("Its name in the report's operations")]
    name: Annotated[str, Option("Its name for people")]
    selection: Annotated[Selection, Option("Which messages")]
    mode: Annotated[Literal["batch", "individual"], Option("Together, or one by one")]
    description: Annotated[str, Option("What it is for")] = ""
    batch_config: Annotated[BatchConfig | None, Option("For batch")] = None
    individual_config: Annotated[IndividualConfig | None, Option("For individual")] = None
    execution: Annotated[Execution, Option("When it runs")] = Execution()

    def contradictions(self) -> Iterator[Fault]:
        """The mode's config is not there."""
        if self.mode == "batch" and self.batch_config is None:
            yield Fault("batchConfig", "is missing; the mode batch needs it")
        if self.mode == "individual" and self.individual_config is None:
            yield Fault("individualConfig", "is missing; the mode individual needs it")
        if not self.id.strip():
            yield Fault("id", "is empty")


@dataclass(frozen=True, slots=True)
class PreludeOperations:
    """What the lossless prelude does."""

    deduplicate_file_reads: Annotated[bool, Option("Point to what is in view already")] = True
    consolidate_tool_results: Annotated[bool, Option("One outcome for repeated calls")] = True
    remove_obsolete_state: Annotated[bool, Option("Take out what is superseded")] = False


@dataclass(frozen=True, slots=True)
class Prelude:
    """The lossless strategy, run before the first pass."""

    enabled: Annotated[bool, Option("Whether it runs")] = True
    operations: Annotated[PreludeOperations, Option("What it does")] = PreludeOperations()


_OLD_OUTPUT = Pass(
    "shorten_old_output",
    "Shorten old tool output",
    Selection("preserve_recent", keep_recent_count=10),
    "individual",
    "Old results and parameters keep their beginning; what was said stays.",
    individual_config=IndividualConfig(
        Operations(
            tool_parameters=OperationConfig("truncate", Params(Truncate(max_chars=300))),
            tool_results=OperationConfig("truncate", Params(Truncate(1_000, 15))),
        )
    ),
)
_SUMMARY = Pass(
    "summarize_old",
    "Summarize what is old",
    Selection("preserve_recent", keep_recent_count=0),
    "batch",
    "If that is not enough, old messages become one summary.",
    batch_config=BatchConfig("summarize", SummarizationConfig(keep_first=1, keep_last=6)),
)


@dataclass(frozen=True, slots=True)
class SmartConfig(Checked):
    """What can be set of the smart strategy."""

    lossless_prelude: Annotated[Prelude, Option("First, without loss")] = Prelude()
    passes: Annotated[tuple[Pass, ...], Option("Then, in this order")] = (_OLD_OUTPUT, _SUMMARY)

    def contradictions(self) -> Iterator[Fault]:
        """Two passes of one id, which the report could not tell apart."""
        times = Counter(each.id for each in self.passes)
        for index, each in enumerate(self.passes):
            if times[each.id] > 1:
                yield Fault(f"passes[{index}].id", f"{each.id!r} is the id of {times[each.id]}")


def _prompt_faults(name: str, prompt: str | None) -> Iterator[Fault]:
    if prompt is not None:
        try:
            validate(prompt)
        except ConfigError as error:
            yield Fault(name, str(error))
