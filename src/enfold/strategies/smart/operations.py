"""Operations: what becomes of each type of a message's content.

Keep leaves it, suppress puts a marker in its place, truncate keeps its beginning, summarize puts a
summary in its place. Each works on the texts inside the content, so parameters stay objects and
results keep their shape. A result that is an error is not suppressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from enfold.messages import Message, Role, ToolResult
from enfold.strategies.shortening import SUPPRESSED, Edit, Limits, map_texts, suppress, truncate
from enfold.strategies.smart.config import IndividualConfig, OperationConfig, Operations, Summarize
from enfold.strategies.smart.decomposition import Decomposed, decompose, recompose
from enfold.tokens import Tokenizer

SUMMARIZED = "⟨ Summary, not the original words ⟩"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A text that is to be summarized, whose it is, and how."""

    text: str
    role: Role
    how: Summarize


Summaries: TypeAlias = Mapping[Wanted, str]


@dataclass(frozen=True, slots=True)
class Editor:
    """Applies operations to messages."""

    tokenizer: Tokenizer
    summaries: Summaries

    def edit(self, message: Message, operations: Operations) -> Message:
        """The message with the operations applied; the very same if nothing changes."""
        content = decompose(message)
        return recompose(
            message,
            Decomposed(
                _mapped(content.message_text, self._edit(operations.message_text, message.role)),
                _mapped(content.tool_parameters, self._edit(operations.tool_parameters, "tool")),
                self._results(message, content, operations.tool_results),
            ),
        )

    def _results(
        self, message: Message, content: Decomposed, operation: OperationConfig
    ) -> tuple[tuple[Any, ...], ...] | None:
        if content.tool_results is None:
            return None
        edit = self._edit(operation, "tool")
        results = (part for part in message.parts if isinstance(part, ToolResult))
        return tuple(
            each if result.is_error and operation.operation == "suppress" else _mapped(each, edit)
            for result, each in zip(results, content.tool_results, strict=True)
        )

    def _edit(self, operation: OperationConfig, role: Role) -> Edit:
        edits: Mapping[str, Edit] = {
            "keep": lambda text: text,
            "suppress": lambda text: suppress(text, self.tokenizer),
            "truncate": lambda text: truncate(text, _limits(operation), self.tokenizer),
            "summarize": lambda text: self.summaries.get(
                Wanted(text, role, operation.summarize), text
            ),
        }
        return edits[operation.operation]


def operations_for(index: int, config: IndividualConfig) -> Operations:
    """The operations for a message: the defaults, with what is said of it alone laid over them."""
    found = config.defaults
    for override in config.overrides:
        if override.message_index == index:
            some = override.operations
            found = replace(
                found,
                message_text=some.message_text or found.message_text,
                tool_parameters=some.tool_parameters or found.tool_parameters,
                tool_results=some.tool_results or found.tool_results,
            )
    return found


def texts_to_summarize(
    message: Message, operations: Operations, tokenizer: Tokenizer
) -> Iterator[Wanted]:
    """The texts of a message that are to be summarized, and are longer than their summaries."""
    content = decompose(message)
    typed: tuple[tuple[OperationConfig, Any, Role], ...] = (
        (operations.message_text, content.message_text, message.role),
        (operations.tool_parameters, content.tool_parameters, "tool"),
        (operations.tool_results, content.tool_results, "tool"),
    )
    for operation, values, role in typed:
        if operation.operation != "summarize":
            continue
        for text in _texts(values):
            if _is_long(text, operation.summarize.max_tokens, tokenizer):
                yield Wanted(text, role, operation.summarize)


def marked(summary: str) -> str:
    """A summary as it stands in place of a text."""
    return f"{SUMMARIZED}\n{summary.strip()}"


def _is_long(text: str, tokens: int, tokenizer: Tokenizer) -> bool:
    if text.startswith((SUMMARIZED, SUPPRESSED)) or len(text) <= tokens:
        return False
    return tokenizer.count(text) > tokens + tokenizer.count(SUMMARIZED)


def _limits(operation: OperationConfig) -> Limits:
    how = operation.truncate
    return Limits(how.max_lines, how.max_chars, with_marker=how.add_ellipsis)


def _mapped(content: Any, edit: Edit) -> Any:
    """Content with its texts edited: a text, or arguments and results with texts inside."""
    if isinstance(content, tuple):
        return tuple(_mapped(each, edit) for each in content)
    return map_texts(content, edit)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from _texts(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value)
