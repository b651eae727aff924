"""The truncation strategy: old tool output and parameters are cut short, mechanically and at once.

Messages stay where they are, with their ids, calls, results and attachments; only words go. What
the user and the model said stays too, unless the config says otherwise. No model is called, and the
same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal, TypeAlias

from pydantic import Field

from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    Step,
    unchanged,
)
from enfold.fields import CamelModel
from enfold.messages import Data, Message, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult
from enfold.retention import Retention
from enfold.standing_instructions import is_instruction
from enfold.strategies.contract import Capabilities, Estimate, Prices, StrategyKind, Summarizers
from enfold.strategies.shortened_text import (
    SUPPRESSED,
    Edit,
    TextLimits,
    map_arguments,
    map_texts,
    suppress,
    truncate,
)
from enfold.tokens import Tokenizer, count_messages, get

_FEWEST_RECENT = 4
"""Newest messages that stay also where the target needs more."""

Mode: TypeAlias = Literal["suppress", "truncate"]
TypeMode: TypeAlias = Literal["keep", "suppress", "truncate"]


class TruncationConfig(CamelModel):
    """The config of the truncation strategy."""

    preserve_recent_count: int = Field(default=10, description="Newest messages that stay", ge=0)
    preserve_first_count: int = Field(default=1, description="First messages that stay", ge=0)
    truncation_mode: Mode = Field(default="truncate", description="Operation for old content")
    tool_result_mode: TypeMode | None = Field(
        default=None, description="Operation for tool results, in place of truncationMode"
    )
    tool_param_mode: TypeMode | None = Field(
        default=None, description="Operation for tool parameters, in place of truncationMode"
    )
    message_text_mode: TypeMode | None = Field(
        default=None, description="Operation for text, in place of truncationMode"
    )
    max_tool_result_lines: int = Field(default=10, description="Lines kept of a tool result", ge=0)
    max_tool_result_chars: int = Field(
        default=1_000, description="Characters kept of a tool result", ge=0
    )
    max_tool_param_chars: int = Field(
        default=200, description="Characters kept of a tool parameter", ge=0
    )
    max_message_chars: int = Field(default=1_000, description="Characters kept of a text", ge=0)
    preserve_user_messages: bool = Field(default=True, description="Keep the text of users")
    preserve_assistant_text: bool = Field(default=True, description="Keep the text of the model")
    preserve_errors: bool = Field(default=True, description="Keep results that are errors")
    suppress_if_needed: bool = Field(
        default=False,
        description="Remove old results and parameters if the target is not reached otherwise",
    )
    head_and_tail: bool = Field(
        default=False,
        description="Keep the beginning and the end (for logs and errors), not only the beginning",
    )


@dataclass(frozen=True, slots=True)
class Truncation:
    """Cut old content short."""

    config: TruncationConfig
    means: Summarizers

    id = "truncation"

    @property
    def retention(self) -> Retention:
        """The first and the newest messages."""
        config = self.config
        return Retention("messages", config.preserve_recent_count, config.preserve_first_count)

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Old messages with something in them that is too long."""
        return tuple(_edits(plan, self.config))

    async def condense(self, plan: Plan) -> Condensation:
        """The plan with old content cut short, where that saves tokens."""
        return cut_short(plan, self.config)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:  # noqa: ARG002
        """Exactly what it will be: it costs nothing to try."""
        return Estimate.by_trying(plan, await self.condense(plan))


def cut_short(plan: Plan, config: TruncationConfig) -> Condensation:
    """The plan with old content cut short, where that saves tokens."""
    smaller: dict[int, EditedMessage] = {}
    left = _cut(plan, config, smaller, plan.tokens)
    if config.suppress_if_needed and plan.target is not None and left > plan.target:
        harder = {"truncation_mode": "suppress", "preserve_recent_count": _FEWEST_RECENT}
        _cut(plan, config.model_copy(update=harder), smaller, left)
    if not smaller:
        return unchanged(plan, Truncation.id, "nothing old is long enough to be cut short")
    entries: tuple[CondensationEntry, ...] = tuple(
        smaller.get(index) or KeptMessage(index) for index in range(len(plan.messages))
    )
    step = config.truncation_mode
    answer = Condensation(Truncation.id, entries, operations=(f"{step}_completed",))
    return replace(answer, steps=(Step(step, plan.tokens, answer.tokens(plan)),))


def _cut(
    plan: Plan, config: TruncationConfig, smaller: dict[int, EditedMessage], tokens: int
) -> int:
    """Add the edits of a config to those so far and return the tokens of the view after them.

    The oldest content goes first, and only as far as the target needs.
    """
    edits = _edits(plan, config)
    counts = count_messages(list(edits.values()), plan.tokenizer)
    for (index, message), count in zip(edits.items(), counts, strict=True):
        if plan.target is not None and tokens <= plan.target:
            break
        before = smaller[index].tokens if index in smaller else plan.counts[index]
        if count < before:
            smaller[index] = EditedMessage(index, message, count)
            tokens += count - before
    return tokens


def _edits(plan: Plan, config: TruncationConfig) -> dict[int, Message]:
    leading = sum(1 for _ in takewhile(is_instruction, plan.messages))
    first = leading + config.preserve_first_count
    recent = len(plan.messages) - config.preserve_recent_count
    cutter = _Cutter(config, get(plan.tokenizer))
    edited = {
        index: cutter.message(plan.messages[index])
        for index in plan.editable
        if first <= index < recent
    }
    return {index: message for index, message in edited.items() if message is not None}


class _Cutter:
    """The config's modes as functions on texts, one for each type of content."""

    def __init__(self, config: TruncationConfig, tokenizer: Tokenizer) -> None:
        def edit(mode: TypeMode | None, limits: TextLimits) -> Edit | None:
            edits: Mapping[TypeMode, Edit | None] = {
                "keep": None,
                "suppress": lambda text: suppress(text, tokenizer),
                "truncate": lambda text: truncate(text, limits, tokenizer),
            }
            return edits[mode or config.truncation_mode]

        both = config.head_and_tail
        result_limits = TextLimits(
            config.max_tool_result_lines, config.max_tool_result_chars, head_and_tail=both
        )
        param_limits = TextLimits(chars=config.max_tool_param_chars, head_and_tail=both)
        text_limits = TextLimits(chars=config.max_message_chars, head_and_tail=both)
        self._result = edit(config.tool_result_mode, result_limits)
        self._param = edit(config.tool_param_mode, param_limits)
        text = edit(config.message_text_mode, text_limits)
        self._text: Mapping[str, Edit | None] = {
            "user": None if config.preserve_user_messages else text,
            "assistant": None if config.preserve_assistant_text else text,
        }
        is_cut = (config.tool_param_mode or config.truncation_mode) == "truncate"
        self._shortest_param = config.max_tool_param_chars if is_cut else len(SUPPRESSED)
        """Texts up to this length stay, so arguments that are no longer need not be read."""
        self._keeps_errors = config.preserve_errors
        self._items = max(1, config.max_tool_result_lines)

    def message(self, message: Message) -> Message | None:
        """The message cut short, without its reasoning; None if there is nothing to cut."""
        parts = tuple(self._part(part, message.role) for part in message.parts)
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return None
        return replace(message, parts=tuple(p for p in parts if not isinstance(p, Reasoning)))

    def _part(self, part: Part, role: str) -> Part:
        match part:
            case ToolResult():
                return part if self._result is None else self._cut_result(part, self._result)
            case ToolCall():
                return part if self._param is None else self._cut_call(part, self._param)
            case Text(text):
                edit = self._text.get(role)
                shorter = text if edit is None else edit(text)
                return part if shorter is text else replace(part, text=shorter)
        return part

    def _cut_call(self, call: ToolCall, edit: Edit) -> ToolCall:
        if isinstance(call.arguments, str) and len(call.arguments) <= self._shortest_param:
            return call
        return map_arguments(call, edit) or call

    def _cut_result(self, result: ToolResult, edit: Edit) -> ToolResult:
        if result.is_error and self._keeps_errors:
            return result
        inner = tuple(self._cut_inner(part, edit) for part in result.parts)
        if all(new is old for new, old in zip(inner, result.parts, strict=True)):
            return result
        return replace(result, parts=inner)

    def _cut_inner(self, part: ResultPart, edit: Edit) -> ResultPart:
        match part:
            case Text(text):
                shorter = edit(text)
                return part if shorter is text else replace(part, text=shorter)
            case Data(value):
                smaller = map_texts(value, edit, most_items=self._items)
                return part if smaller is value else replace(part, value=smaller)
        return part


KIND = StrategyKind(
    id="truncation",
    name="Truncation",
    description="Shortens old tool output and parameters. No model is called.",
    capabilities=Capabilities(individual=True, speed="fast"),
    config=TruncationConfig,
    make=Truncation,
)
