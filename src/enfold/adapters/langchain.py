"""LangChain: a middleware that keeps an agent's conversation inside its model's window.

    agent = create_agent(model, tools, middleware=[EnfoldMiddleware()])

The agent's state keeps every message. What the model is sent is a view of them: when it grows too
large it is condensed, with any of enfold's strategies, and from then on only grows at its end, so
that a provider's prompt cache goes on hitting. The view is a small record in the agent's state, so
it is checkpointed with it; where the history was edited or cut back, it is made anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, NotRequired, TypeAlias, TypeVar

from enfold import tokens, wiring
from enfold.adapters.engines import of_extra
from enfold.budget import AUTO_FLOOR, Decision, Limits, Load, Policy, decide
from enfold.engine.stateless import CondenseOptions, condense
from enfold.errors import SummaryError
from enfold.flush import Hook, hand_over
from enfold.messages import Conversation, text_of
from enfold.modelconfig import FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT
from enfold.settings import Settings
from enfold.strategies import presets
from enfold.strategies.contract import Strategy
from enfold.summaries import Summary, SummaryRequest, Usage
from enfold.summaries.checks import refuse_no_summary
from enfold.summaries.prompts import build
from enfold.text.secrets import hide
from enfold.wire import estimate
from enfold.wire import langchain as dialect
from enfold.wire.langchain import parse_message

with of_extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import (
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.types import Command

Record: TypeAlias = dict[str, Any]
Result = TypeVar("Result")

_HIDDEN = "nostream"
"""The tag of calls whose tokens a graph does not stream."""


class ChatModelSummarizer:
    """A summarizer that calls a chat model with enfold's prompts; its errors are raised."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model
        profile: dict[str, Any] = getattr(model, "profile", None) or {}
        self.max_input: int | None = profile.get("max_input_tokens")
        self.name = model.get_name()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the summary of the request.

        A reply without text is a `SummaryError`, one that is no summary a `NoSummaryError`.
        """
        prompt = build(request)
        question = [SystemMessage(prompt.system), HumanMessage(prompt.user)]
        reply = await self._model.ainvoke(question, {"tags": [_HIDDEN]})
        text = hide(text_of(parse_message(reply).parts))
        if not text.strip():
            raise SummaryError(f"the model {self.name} gave no text as a summary")
        refuse_no_summary(text, request, self.name, cost=None)
        used = reply.usage_metadata
        usage = Usage() if used is None else Usage(used["input_tokens"], used["output_tokens"])
        return Summary(
            text, self.name, tokens.get(request.tokenizer).count(text), usage, is_checked=True
        )


def read_view(messages: Sequence[AnyMessage], record: Mapping[str, Any] | None) -> list[AnyMessage]:
    """Return the view that the record describes, or all messages if it does not match them."""
    if record is None:
        return list(messages)
    covered = record["covered"]
    if covered > len(messages) or record["digest"] != _digest(messages[:covered]):
        return list(messages)
    shown = [
        messages[entry] if isinstance(entry, int) else message_of(entry)
        for entry in record["entries"]
    ]
    return [*shown, *messages[covered:]]


def record_of(messages: Sequence[AnyMessage], shown: Sequence[AnyMessage]) -> Record | None:
    """Return the record of a view of these messages; None if they have no ids of their own."""
    if len({message.id for message in messages if message.id}) != len(messages):
        return None
    places = {id(message): place for place, message in enumerate(messages)}
    return {
        "covered": len(messages),
        "digest": _digest(messages),
        "entries": [places.get(id(message), dict_of(message)) for message in shown],
    }


def summarized_messages(
    messages: Sequence[AnyMessage], before: Sequence[AnyMessage], after: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """The messages that were shown before and are no longer, not even shortened."""
    ours = {id(message) for message in messages}
    still = {id(message) for message in after}
    shortened = {message.id for message in after if message.id}
    return [
        message
        for message in before
        if id(message) in ours and id(message) not in still and message.id not in shortened
    ]


def _digest(messages: Sequence[AnyMessage]) -> str:
    return sha256("\n".join(str(message.id) for message in messages).encode()).hexdigest()


def dict_of(message: AnyMessage) -> dict[str, Any]:
    """Return the message as JSON; other values, such as a tool's artifact, become text.

    No model is sent such a thing, and the message itself stays in the state.
    """
    return message.model_dump(mode="json", fallback=str)


def message_of(entry: Mapping[str, Any]) -> AnyMessage:
    """The message that `dict_of` wrote, or one that a strategy made in the same shape."""
    parsed = Conversation((dialect.parse_message(dict(entry)),), dialect=dialect.NAME)
    message: AnyMessage = dialect.render(parsed, "object")[0]
    return message


_VIEW = "enfold_view"
_log = logging.getLogger("enfold.langchain")


class EnfoldState(AgentState[Any]):
    """An agent's state, and which view of its messages the model is sent."""

    enfold_view: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One model call: the messages to send, and the decision about their size."""

    request: ModelRequest[Any]
    view: list[AnyMessage]
    conversation: Conversation
    decision: Decision
    by_dict: Mapping[int, AnyMessage]
    """The messages by the identity of their dicts: what a strategy keeps is the very same dict."""

    @property
    def is_due(self) -> bool:
        return self.decision.action == "must"


class EnfoldMiddleware(AgentMiddleware[EnfoldState, Any, Any]):
    """Condenses the messages for an agent's model if they do not fit; the state stays unchanged.

    Args:
        strategy: native, lossless, truncation or smart; native if none is named.
        config: The strategy's own settings, as its JSON schema says.
        preset: Strategy and config by name, in place of both.
        max_tokens: Condense above so many tokens of messages. None: near the end of the window.
        window: How many tokens the model takes. None: what the model's profile says, else 128,000.
        keep_tokens: So many of the newest tokens stay verbatim. None: what the strategy says.
        model: A chat model that writes summaries. None: the built-in summarizer, without a model.
        tokenizer: Counts tokens.
        memory_flush_hook: Receives the summarized messages, in a thread of its own.
    """

    state_schema = EnfoldState

    def __init__(  # noqa: PLR0913 - a door's options, all by name
        self,
        *,
        strategy: str | None = None,
        config: Mapping[str, Any] | None = None,
        preset: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        window: int | None = None,
        keep_tokens: int | None = None,
        model: BaseChatModel | None = None,
        tokenizer: str = tokens.DEFAULT,
        memory_flush_hook: Hook | None = None,
    ) -> None:
        super().__init__()
        name, settled = presets.choose(preset, strategy, config)
        writer = wiring.local_summarizer() if model is None else ChatModelSummarizer(model)
        settings = Settings(strategy=name, strategy_config={name: settled})
        self._strategy: Strategy = wiring.make_strategy(settings, writer)
        self._max_tokens = max_tokens
        self._window = window
        self._keep_tokens = keep_tokens
        self._tokenizer = tokens.get(tokenizer).name
        self._hook = memory_flush_hook

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The model's answer to the view."""
        turn = self._turn(request)
        shown = _wait_for(self._condense(turn)) if turn.is_due else turn.view
        return _answer(turn, shown, handler(request.override(messages=shown)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The model's answer to the view."""
        turn = self._turn(request)
        shown = await self._condense(turn) if turn.is_due else turn.view
        return _answer(turn, shown, await handler(request.override(messages=shown)))

    async def _condense(self, turn: _Turn) -> list[AnyMessage]:
        """Return the condensed messages, or the view itself if nothing could be condensed."""
        # The target is far enough below the trigger to delay the next run.
        goal = turn.decision.goal
        options = CondenseOptions(self._tokenizer, target=goal, keep_tokens=self._keep_tokens)
        done = await condense(turn.conversation, self._strategy, options)
        shown = [turn.by_dict.get(id(raw)) or message_of(raw) for raw in done.messages]
        report = done.report
        if report.tokens_after >= report.tokens_before:
            _log.warning("nothing was condensed: %s", "; ".join(report.warnings))
            return turn.view
        if self._hook is not None:
            hand_over(self._hook, summarized_messages(turn.request.messages, turn.view, shown))
        _log.info("%d tokens condensed to %d", report.tokens_before, report.tokens_after)
        return shown

    def _turn(self, request: ModelRequest[Any]) -> _Turn:
        """Return the call as it would be sent now, with system prompt and tools counted."""
        state: Mapping[str, Any] = request.state
        view = read_view(request.messages, state.get(_VIEW))
        written = [dict_of(message) for message in view]
        conversation = dialect.parse(written)
        system = request.system_message
        definitions = [convert_to_openai_tool(tool) for tool in request.tools]
        offered = dialect.parse({"messages": [], "tools": definitions})
        load = Load(
            history=sum(tokens.count_messages(conversation.messages, self._tokenizer)),
            system=tokens.count_message(parse_message(system), self._tokenizer) if system else 0,
            tools=tokens.count_conversation(offered, self._tokenizer).tools,
            estimate=sum(map(estimate, conversation.messages)),
        )
        floor = AUTO_FLOOR if self._max_tokens is None else 0
        policy = Policy(max_tokens=self._max_tokens, floor=floor)
        limits = self._limits(request.model)
        decision = decide(load, limits, policy, max_output=limits.max_output)
        by_dict = {id(raw): message for raw, message in zip(written, view, strict=True)}
        return _Turn(request, view, conversation, decision, by_dict)

    def _limits(self, model: BaseChatModel) -> Limits:
        """The model's, as far as its profile knows them."""
        profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
        window = self._window or profile.get("max_input_tokens") or FALLBACK_MAX_INPUT
        reply = profile.get("max_output_tokens") or min(FALLBACK_MAX_OUTPUT, window // 10)
        return Limits(window, reply)


def _answer(
    turn: _Turn, shown: list[AnyMessage], response: ModelResponse[Any]
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    """The response, and with it the new view for the agent's state."""
    record = None if shown is turn.view else record_of(turn.request.messages, shown)
    if record is None:
        return response
    return ExtendedModelResponse(response, Command(update={_VIEW: record}))


def _wait_for(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work in a thread: the caller may be inside an event loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="enfold") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
