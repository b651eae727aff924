"""The config of the smart strategy: a lossless prelude, then passes in order."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from enfold.fields import CamelModel, ContradictionError, Fault, described
from enfold.messages import Role
from enfold.strategies.native import PromptText

Operation: TypeAlias = Literal["keep", "suppress", "truncate", "summarize"]


class Truncate(CamelModel):
    """Limits of a truncated text."""

    max_chars: int | None = Field(
        default=None, description="Characters that stay", ge=0, examples=[500]
    )
    max_lines: int | None = Field(default=None, description="Lines that stay", ge=0, examples=[10])
    add_ellipsis: bool = Field(default=True, description="Add a marker with the size of the cut")
    head_and_tail: bool = Field(
        default=False, description="Keep the beginning and the end, not only the beginning"
    )
    keep_errors: bool = Field(default=False, description="Keep lines that report errors")

    @model_validator(mode="after")
    def _has_limit(self) -> Truncate:
        if self.max_chars is None and self.max_lines is None:
            raise ContradictionError(Fault("", "give maxChars, maxLines or both"))
        return self


class Summarize(CamelModel):
    """Options for summarizing a text."""

    api_profile: str | None = Field(
        default=None, description="Profile of the model that summarizes"
    )
    max_tokens: int = Field(default=150, description="Maximum tokens of the summary", ge=16)
    custom_prompt: PromptText | None = Field(
        default=None, description="Prompt in place of the built-in one"
    )


class Params(CamelModel):
    """The parameters of an operation."""

    truncate: Truncate | None = described(
        "Limits", "For truncate", default=None, shown_if={"operation": ["truncate"]}
    )
    summarize: Summarize | None = described(
        "Summary", "For summarize", default=None, shown_if={"operation": ["summarize"]}
    )


def _allow_bare_name(schema: dict[str, Any]) -> None:
    """Let the schema of `OperationConfig` accept the name of an operation too."""
    whole = dict(schema)
    name = whole["properties"]["operation"]
    schema.clear()
    schema["anyOf"] = [{"type": "string", "enum": name["enum"]}, whole]


class OperationConfig(CamelModel):
    """The operation for content of one type; a bare name stands for the operation."""

    model_config = ConfigDict(json_schema_extra=_allow_bare_name)

    operation: Operation = described(
        "Operation",
        "The operation",
        examples=["keep"],
        choices={
            "keep": "Keep: unchanged",
            "suppress": "Suppress: replaced by a marker",
            "truncate": "Truncate: shortened to its start",
            "summarize": "Summarize: by a model or the built-in summarizer",
        },
    )
    params: Params | None = described(
        "Parameters",
        "Its parameters",
        default=None,
        shown_if={"operation": ["truncate", "summarize"]},
    )

    @model_validator(mode="before")
    @classmethod
    def _from_bare_name(cls, value: Any) -> Any:
        return {"operation": value} if isinstance(value, str) else value

    @property
    def truncate(self) -> Truncate:
        """The limits for truncate."""
        given = self.params.truncate if self.params is not None else None
        return given or _TRUNCATE

    @property
    def summarize(self) -> Summarize:
        """The parameters for summarize."""
        given = self.params.summarize if self.params is not None else None
        return given or _SUMMARIZE


_TRUNCATE_JSON = {"maxChars": 500, "maxLines": 10, "addEllipsis": True}
_TRUNCATE = Truncate.model_validate(_TRUNCATE_JSON)
_SUMMARIZE = Summarize()
_KEEP = OperationConfig(operation="keep")


class Operations(CamelModel):
    """An operation for each type of content."""

    message_text: OperationConfig = Field(default=_KEEP, description="Text of user and model")
    tool_parameters: OperationConfig = Field(default=_KEEP, description="Parameters of tool calls")
    tool_results: OperationConfig = Field(
        default=_KEEP,
        description="Results of tools",
        examples=[{"operation": "truncate", "params": {"truncate": _TRUNCATE_JSON}}],
    )


class SomeOperations(CamelModel):
    """Operations for some types of content; the defaults apply to the others."""

    message_text: OperationConfig | None = Field(default=None, description="Text of user and model")
    tool_parameters: OperationConfig | None = Field(
        default=None, description="Parameters of tool calls"
    )
    tool_results: OperationConfig | None = Field(default=None, description="Results of tools")


class Override(CamelModel):
    """Other operations for one message."""

    message_index: int = Field(
        description="Index of the message, counted from 0", ge=0, examples=[0]
    )
    operations: SomeOperations = Field(description="Its operations")


class IndividualConfig(CamelModel):
    """Options for processing messages one by one."""

    defaults: Operations = Field(description="Operations for every selected message")
    overrides: tuple[Override, ...] = Field(
        default=(), description="Other operations for single messages", strict=False
    )


class SummarizationConfig(CamelModel):
    """Options for the summary of a batch."""

    api_profile: str | None = Field(
        default=None, description="Profile of the model that summarizes"
    )
    custom_prompt: PromptText | None = Field(
        default=None, description="Prompt in place of the built-in one"
    )
    keep_first: int = Field(default=1, description="First messages that stay", ge=0)
    keep_last: int = Field(default=3, description="Last selected messages that stay", ge=0)
    keep_user_messages: bool = Field(default=False, description="Messages of users stay in place")


class BatchConfig(CamelModel):
    """Options for processing messages together."""

    operation: Literal["keep", "summarize"] = Field(
        description="The operation", examples=["summarize"]
    )
    summarization_config: SummarizationConfig = Field(
        default=SummarizationConfig(), description="How the messages are summarized"
    )


class Selection(CamelModel):
    """The messages that a pass processes: all but the newest, or those that are listed."""

    type: Literal["preserve_recent", "preserve_percent", "custom"] = described(
        "Selection",
        "How messages are selected",
        examples=["preserve_recent"],
        choices={
            "preserve_recent": "All but the most recent, by number",
            "preserve_percent": "All but the most recent, by share",
            "custom": "Selected messages",
        },
    )
    keep_recent_count: int | None = described(
        "Keep recent count",
        "Number of newest messages left out",
        default=None,
        ge=0,
        examples=[10],
        shown_if={"type": ["preserve_recent"]},
    )
    keep_percentage: float | None = described(
        "Keep percentage",
        "Percentage of newest messages left out",
        default=None,
        ge=0,
        le=100,
        examples=[30],
        shown_if={"type": ["preserve_percent"]},
    )
    roles: tuple[Role, ...] | None = described(
        "Roles",
        "Roles of messages",
        default=None,
        strict=False,
        examples=[["tool"]],
        shown_if={"type": ["custom"]},
    )
    indexes: tuple[int, ...] | None = described(
        "Indexes",
        "Indexes of messages, counted from 0",
        default=None,
        strict=False,
        shown_if={"type": ["custom"]},
    )

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Selection:
        needed = {
            "preserve_recent": ("keepRecentCount", self.keep_recent_count),
            "preserve_percent": ("keepPercentage", self.keep_percentage),
            "custom": ("indexes", self.indexes if self.indexes is not None else self.roles),
        }
        name, value = needed[self.type]
        if value is None:
            other = " or roles" if self.type == "custom" else ""
            raise ContradictionError(Fault(name, f"is missing; {self.type} needs it{other}"))
        return self


class Condition(CamelModel):
    """The condition of a conditional pass."""

    token_threshold: int | None = Field(
        default=None,
        description="The pass runs above this number of tokens",
        ge=0,
        examples=[40_000],
    )
    target_share: float | None = Field(
        default=None,
        description="The pass runs above this share of the target, which is a share of the window",
        ge=0,
    )

    @model_validator(mode="after")
    def _has_limit(self) -> Condition:
        if self.token_threshold is None and self.target_share is None:
            raise ContradictionError(Fault("tokenThreshold", "is missing; or give targetShare"))
        return self


class Execution(CamelModel):
    """When a pass runs."""

    type: Literal["always", "conditional"] = described(
        "Execution",
        "Passes run in order until the target is reached",
        default="always",
        choices={
            "always": "Always, until the target is reached",
            "conditional": "Only above a number of tokens or a share of the target",
        },
    )
    condition: Condition | None = described(
        "Condition", "For conditional", default=None, shown_if={"type": ["conditional"]}
    )

    @model_validator(mode="after")
    def _has_condition(self) -> Execution:
        if self.type == "conditional" and self.condition is None:
            raise ContradictionError(Fault("condition", "is missing; conditional needs it"))
        return self


class Pass(CamelModel):
    """One pass over the messages."""

    id: str = Field(description="Name in the operations of the report", examples=["new_pass"])
    name: str = Field(description="Name that is shown", examples=["New pass"])
    description: str = Field(default="", description="Purpose of the pass")
    selection: Selection = described("Which messages", "Messages that the pass processes")
    execution: Execution = described("When", "When the pass runs", default=Execution())
    mode: Literal["batch", "individual"] = described(
        "Mode",
        "Together, or one by one",
        examples=["individual"],
        choices={
            "batch": "Batch: one summary of many messages",
            "individual": "Individual: each message is shortened",
        },
    )
    batch_config: BatchConfig | None = described(
        "Batch", "How the messages are summarized", default=None, shown_if={"mode": ["batch"]}
    )
    individual_config: IndividualConfig | None = described(
        "Operations",
        "How each message is shortened",
        default=None,
        shown_if={"mode": ["individual"]},
    )

    @model_validator(mode="after")
    def _has_what_its_mode_needs(self) -> Pass:
        faults: list[Fault] = []
        if self.mode == "batch" and self.batch_config is None:
            faults.append(Fault("batchConfig", "is missing; the mode batch needs it"))
        if self.mode == "individual" and self.individual_config is None:
            faults.append(Fault("individualConfig", "is missing; the mode individual needs it"))
        if not self.id.strip():
            faults.append(Fault("id", "is empty"))
        if faults:
            raise ContradictionError(*faults)
        return self


class PreludeOperations(CamelModel):
    """The steps of the lossless prelude."""

    deduplicate_file_reads: bool = Field(
        default=True, description="Point to results that are in view"
    )
    consolidate_tool_results: bool = Field(
        default=True, description="Keep one result of repeated calls"
    )
    remove_obsolete_state: bool = Field(default=False, description="Take out superseded results")


class Prelude(CamelModel):
    """The lossless strategy, run before the first pass."""

    enabled: bool = Field(default=True, description="Run the prelude")
    operations: PreludeOperations = Field(
        default=PreludeOperations(), description="Steps of the prelude"
    )


_OLD_OUTPUT = Pass(
    id="shorten_old_output",
    name="Shorten old tool output",
    selection=Selection(type="preserve_recent", keep_recent_count=10),
    mode="individual",
    description="Old results and parameters keep their beginning; messages stay.",
    individual_config=IndividualConfig(
        defaults=Operations(
            tool_parameters=OperationConfig(
                operation="truncate", params=Params(truncate=Truncate(max_chars=300))
            ),
            tool_results=OperationConfig(
                operation="truncate",
                params=Params(truncate=Truncate(max_chars=1_000, max_lines=15)),
            ),
        )
    ),
)
_SUMMARY = Pass(
    id="summarize_old",
    name="Summarize old messages",
    selection=Selection(type="preserve_recent", keep_recent_count=0),
    mode="batch",
    description="If that is not enough, old messages become one summary.",
    batch_config=BatchConfig(
        operation="summarize",
        summarization_config=SummarizationConfig(keep_first=1, keep_last=6),
    ),
)


class SmartConfig(CamelModel):
    """The config of the smart strategy."""

    lossless_prelude: Prelude = Field(
        default=Prelude(), description="Lossless steps that run first"
    )
    passes: tuple[Pass, ...] = Field(
        default=(_OLD_OUTPUT, _SUMMARY), description="Passes, in this order", strict=False
    )

    @model_validator(mode="after")
    def _has_unique_ids(self) -> SmartConfig:
        """Refuse two passes of one id: the report could not tell them apart."""
        times = Counter(each.id for each in self.passes)
        faults = [
            Fault(f"passes[{index}].id", f"{each.id!r} is the id of {times[each.id]} passes")
            for index, each in enumerate(self.passes)
            if times[each.id] > 1
        ]
        if faults:
            raise ContradictionError(*faults)
        return self
