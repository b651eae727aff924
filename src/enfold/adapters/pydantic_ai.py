"""Pydantic AI: a history that is kept inside the model's window, message by message.

    history = HistoryProcessor(window=128_000)
    agent = Agent("openai:gpt-4o", capabilities=[history.capability()])

So what the model is sent fits, and `result.all_messages()` still has everything. Pydantic AI's own
`ProcessHistory(history)` works too, but puts what is sent in the place of the run's history.

What is kept is kept as the same objects. What is folded becomes one request with a summary that a
user could have said, because some providers give a system prompt in the middle more authority than
a summary may have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from enfold.adapters.extras import of_extra
from enfold.adapters.pydantic_ai_messages import Entry, instructions_of, translate
from enfold.budget import DEFAULT_THRESHOLD, SAFETY_MARGIN
from enfold.errors import ConfigError
from enfold.estimates import estimate
from enfold.messages import Conversation, Message, Text, Tool
from enfold.settings import Settings
from enfold.stateless import Condensed, Options, condense
from enfold.summaries import Summarizer
from enfold.tokens import DEFAULT, count_conversation
from enfold.wiring import NATIVE, local_summarizer, make_strategy

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition

_REMEMBERED = 64
"""So many conversations that were folded are remembered at once."""


@dataclass(frozen=True, slots=True)
class _Fold:
    """What stands for the beginning of a conversation from now on."""

    covered: list[ModelMessage]
    shown: list[ModelMessage]


class HistoryProcessor:
    """Keeps histories inside a window of so many tokens; one may serve many conversations.

    `keep_tokens` of the newest stay verbatim, else the first message and the last three.
    `summarizer` writes summaries, the built-in one if none is given. `on_condensed` is told of
    every condensation: its report, and the ledger that leads back.

    A beginning that was folded stays folded the same way as long as the conversation goes on, so
    that the provider's prompt cache keeps hitting.
    """

    def __init__(
        self,
        window: int,
        *,
        keep_tokens: int | None = None,
        tokenizer: str = DEFAULT,
        summarizer: Summarizer | None = None,
        on_condensed: Callable[[Condensed], None] | None = None,
    ) -> None:
        if window < 1:
            raise ConfigError(f"window is {window}, at least 1 expected")
        self._options = Options(tokenizer, window=window, keep_tokens=keep_tokens)
        self._allowed = int(window * (1 - SAFETY_MARGIN) * DEFAULT_THRESHOLD)
        self._strategy = make_strategy(Settings(strategy=NATIVE), summarizer or local_summarizer())
        self._on_condensed = on_condensed
        self._folds: deque[_Fold] = deque(maxlen=_REMEMBERED)

    async def __call__(self, messages: list[Any]) -> list[Any]:
        """The messages to send, for `ProcessHistory`."""
        return await self._fit(messages, _beside(instructions_of(messages), ()))

    def capability(self) -> AbstractCapability[Any]:
        """For `Agent(capabilities=[…])`: requests fit, and the run's own history stays whole."""
        with of_extra("pydantic-ai"):
            from pydantic_ai.capabilities import Hooks

        async def fit(_: Any, request: ModelRequestContext) -> ModelRequestContext:
            asked = request.model_request_parameters
            prompts = [part.content for part in asked.instruction_parts or ()]
            beside = _beside("\n\n".join(prompts), (*asked.function_tools, *asked.output_tools))
            return replace(request, messages=await self._fit(list(request.messages), beside))

        return Hooks(before_model_request=fit)

    async def _fit(self, messages: list[ModelMessage], beside: Conversation) -> list[ModelMessage]:
        fold = self._fold_of(messages)
        view = [*fold.shown, *messages[len(fold.covered) :]]
        entries = translate(view)
        said = tuple(entry.message for entry in entries if entry.message is not None)
        conversation = replace(beside, messages=said)
        if self._tokens(conversation) <= self._allowed:
            return view
        done = await condense(conversation, self._strategy, self._options)
        outcome = _outcome(done)
        if outcome is None:
            return view
        if self._on_condensed is not None:
            self._on_condensed(done)
        reach = 1 + max(each.owner for each in entries if outcome.drops(each))
        shown = _shown(view[:reach], [each for each in entries if each.owner < reach], outcome)
        covered = len(fold.covered) + max(0, reach - len(fold.shown))
        self._folds.append(_Fold(messages[:covered], [*shown, *view[reach : len(fold.shown)]]))
        return [*shown, *view[reach:]]

    def _tokens(self, conversation: Conversation) -> int:
        counted = count_conversation(conversation, self._options.tokenizer).total
        return counted + sum(map(estimate, conversation.messages))

    def _fold_of(self, messages: list[ModelMessage]) -> _Fold:
        """The fold that reaches furthest into this conversation."""
        fitting = (each for each in self._folds if messages[: len(each.covered)] == each.covered)
        return max(fitting, key=lambda each: len(each.covered), default=_Fold([], []))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Which of our messages stay, by id, and the summary of the others."""

    kept: frozenset[str | None]
    summary: ModelMessage

    def drops(self, entry: Entry) -> bool:
        """True if the entry is part of what the summary stands for."""
        return entry.message is not None and entry.message.id not in self.kept


def _shown(
    view: Sequence[ModelMessage], entries: Sequence[Entry], outcome: _Outcome
) -> list[ModelMessage]:
    """What is left of the messages, with the summary in the place of the first that is gone."""
    first_dropped = next(each for each in entries if outcome.drops(each))
    left = [each for each in entries if each is first_dropped or not outcome.drops(each)]
    shown: list[ModelMessage] = []
    for (owner, is_summary), run in groupby(left, lambda e: (e.owner, e is first_dropped)):
        message = view[owner]
        parts = [message.parts[index] for entry in run for index in entry.parts]
        if is_summary:
            shown.append(outcome.summary)
        elif len(parts) == len(message.parts):
            shown.append(message)
        else:
            # Theirs is a union of classes, so no type says that it has parts to replace.
            shown.append(replace(cast("Any", message), parts=parts))
    return shown


def _outcome(done: Condensed) -> _Outcome | None:
    """Read from what came of it: what stays has the id it was given, the new summary has none."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    left = done.messages["messages"]
    kept = frozenset(each.get("id") for each in left)
    written = [each["content"] for each in left if "id" not in each]
    if not written:
        return None
    return _Outcome(kept, ModelRequest(parts=[UserPromptPart(written[0])]))


def _beside(instructions: str, tools: Iterable[ToolDefinition]) -> Conversation:
    """What is sent beside the messages, as a request body that lacks them."""
    return Conversation(
        (),
        system=Message("system", (Text(instructions),)) if instructions else None,
        tools=tuple(
            Tool(each.name, each.description or "", each.parameters_json_schema) for each in tools
        ),
        extras={},
    )
