"""Pydantic AI: keeps a history inside the model's window, message by message.

    history = HistoryProcessor(window=128_000)
    agent = Agent("openai:gpt-4o", capabilities=[history.capability()])

So what the model is sent fits, and `result.all_messages()` still has everything. Pydantic AI's own
`ProcessHistory(history)` works too, but puts what is sent in the place of the run's history.

Messages that stay are the same objects; of a very long prompt only the rules may stay. A summary
replaces the other messages. It is one request of the user, because some providers give a system
prompt in the middle more authority than a summary may have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from enfold import wire
from enfold.adapters.engines import of_extra
from enfold.budget import DEFAULT_THRESHOLD, SAFETY_MARGIN
from enfold.engine.stateless import Condensed, CondenseOptions, condense
from enfold.errors import ConfigError
from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    text_of,
)
from enfold.settings import Settings
from enfold.summaries import HEADING, Summarizer
from enfold.tokens import DEFAULT, count_conversation
from enfold.wire import estimate
from enfold.wiring import NATIVE, local_summarizer, make_strategy

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition

_ROLES: Mapping[str, Role] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "retry-feedback": "user",
    "tool-return": "tool",
    "retry-prompt": "tool",
}
"""Roles of the parts of a request. Parts of other kinds are not summarized."""
_ERRORS = ("failed", "retried")


@dataclass(frozen=True, slots=True)
class TranslatedMessage:
    """A message of ours for some parts of one of theirs."""

    owner: int
    """The index of their message."""
    parts: tuple[int, ...]
    """The indexes of its parts."""
    message: Message | None
    """None for a message that always stays."""


def translate(messages: Sequence[ModelMessage]) -> list[TranslatedMessage]:
    """Every message in entries, which have their own numbers as ids.

    The last message is one entry: it is what the model is asked now, and stays as it is.
    """
    last = len(messages) - 1
    made: list[TranslatedMessage] = []
    for owner, message in enumerate(messages):
        parts = message.parts
        if message.kind == "request":
            made += _request(owner, parts, whole=owner == last)
        else:
            contents = tuple(each for part in parts for each in _parts_of(part))
            places = tuple(range(len(parts)))
            made.append(TranslatedMessage(owner, places, Message("assistant", contents)))
    return [
        entry
        if entry.message is None
        else replace(entry, message=replace(entry.message, id=str(number)))
        for number, entry in enumerate(made)
    ]


def instructions_of(messages: Sequence[ModelMessage]) -> str:
    """The instructions that are sent with the messages."""
    found = (each.instructions for each in reversed(messages) if each.kind == "request")
    return next(found, None) or ""


def _request(owner: int, parts: Sequence[Any], *, whole: bool) -> Iterator[TranslatedMessage]:
    roles = [_role(part) for part in parts]
    if whole or not parts:
        contents = tuple(each for part in parts for each in _parts_of(part))
        message = Message("tool" if set(roles) == {"tool"} else "user", contents)
        yield TranslatedMessage(owner, tuple(range(len(parts))), message if contents else None)
        return
    for role, run in groupby(range(len(parts)), roles.__getitem__):
        indexes = tuple(run)
        if role is None:
            yield TranslatedMessage(owner, indexes, None)
        else:
            contents = tuple(each for index in indexes for each in _parts_of(parts[index]))
            yield TranslatedMessage(owner, indexes, Message(role, contents))


def _role(part: Any) -> Role | None:
    if part.part_kind == "user-prompt" and str(part.content).startswith(HEADING):
        return "system"
    if part.part_kind == "retry-prompt" and part.tool_name is None:
        return "user"
    return _ROLES.get(part.part_kind)


def _parts_of(part: Any) -> tuple[Part, ...]:
    read = _READERS.get(part.part_kind)
    return () if read is None else read(part)


def _text(part: Any) -> tuple[Part, ...]:
    return (Text(part.content or ""),)


def _prompt(part: Any) -> tuple[Part, ...]:
    content = [part.content] if isinstance(part.content, str) else part.content
    return tuple(each for item in content for each in _content(item))


def _content(item: Any) -> tuple[ResultPart, ...]:
    """Return the part for a content of a user: a text, or the known facts of a file."""
    if isinstance(item, str):
        return (Text(item),)
    if isinstance(text := getattr(item, "content", None), str):
        return (Text(text),)
    if isinstance(data := getattr(item, "data", None), bytes):
        return (Attachment(mime=item.media_type, size=len(data)),)
    if hasattr(item, "url"):
        return (Attachment(mime=item.media_type, url=item.url),)
    if hasattr(item, "file_id"):
        return (Attachment(mime=item.media_type, name=item.file_id),)
    return ()


def _result(part: Any) -> tuple[Part, ...]:
    text, files = part.model_response_str_and_user_content()
    inner = (Text(text), *(each for file in files for each in _content(file)))
    is_error = part.outcome in _ERRORS
    return (ToolResult(part.tool_call_id, inner, is_error, part.tool_name),)


def _retry(part: Any) -> tuple[Part, ...]:
    contents = Text(part.model_response())
    if getattr(part, "tool_name", None) is None:
        return (contents,)
    return (ToolResult(part.tool_call_id, (contents,), is_error=True, name=part.tool_name),)


_READERS: Mapping[str, Callable[[Any], tuple[Part, ...]]] = {
    "system-prompt": _text,
    "user-prompt": _prompt,
    "tool-return": _result,
    "retry-prompt": _retry,
    "retry-feedback": _retry,
    "text": _text,
    "compaction": _text,
    "thinking": lambda part: (Reasoning(part.content, {"signature": part.signature or ""}),),
    "tool-call": lambda part: (ToolCall(part.tool_call_id, part.tool_name, part.args or {}),),
    # Tools that the provider ran within its answer.
    "builtin-tool-call": lambda part: (Text(f"{part.tool_name} {part.args_as_json_str()}"),),
    "builtin-tool-return": lambda part: (Text(part.model_response_str()),),
    "file": lambda part: _content(part.content),
    "speech": lambda part: (Text(part.transcript or ""),),
}
"""Text of a part of each kind; empty for kinds without a row."""


_REMEMBERED = 64
"""Number of condensed conversations that are remembered at once."""


@dataclass(frozen=True, slots=True)
class _CondensedBeginning:
    """The condensed beginning of a conversation."""

    covered: list[ModelMessage]
    shown: list[ModelMessage]


class HistoryProcessor:
    """Keeps histories inside a window; one processor may serve many conversations.

    `keep_tokens` of the newest stay verbatim, else the first message and the last three.
    `summarizer` writes summaries, the built-in one if none is given. `on_condensed` is told of
    every condensation: its report, and the ledger that leads back.

    A condensed beginning stays the same while the conversation goes on, so
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
        self._options = CondenseOptions(tokenizer, window=window, keep_tokens=keep_tokens)
        self._allowed = int(window * (1 - SAFETY_MARGIN) * DEFAULT_THRESHOLD)
        self._strategy = make_strategy(Settings(strategy=NATIVE), summarizer or local_summarizer())
        self._on_condensed = on_condensed
        self._beginnings: deque[_CondensedBeginning] = deque(maxlen=_REMEMBERED)

    async def __call__(self, messages: list[Any]) -> list[Any]:
        """The messages to send, for `ProcessHistory`."""
        return await self._fit(messages, _static_conversation(instructions_of(messages), ()))

    def capability(self) -> AbstractCapability[Any]:
        """For `Agent(capabilities=[…])`: requests fit, and the run's own history stays whole."""
        with of_extra("pydantic-ai"):
            from pydantic_ai.capabilities import Hooks

        async def fit(_: Any, request: ModelRequestContext) -> ModelRequestContext:
            found = request.model_request_parameters
            prompts = "\n\n".join(part.content for part in found.instruction_parts or ())
            static = _static_conversation(prompts, (*found.function_tools, *found.output_tools))
            return replace(request, messages=await self._fit(list(request.messages), static))

        return Hooks(before_model_request=fit)

    async def _fit(self, messages: list[ModelMessage], static: Conversation) -> list[ModelMessage]:
        # The condensed beginning that reaches furthest into this conversation.
        fitting = (e for e in self._beginnings if messages[: len(e.covered)] == e.covered)
        nothing = _CondensedBeginning([], [])
        beginning = max(fitting, key=lambda each: len(each.covered), default=nothing)
        view = [*beginning.shown, *messages[len(beginning.covered) :]]
        entries = translate(view)
        contents = tuple(entry.message for entry in entries if entry.message is not None)
        conversation = replace(static, messages=contents)
        counted = count_conversation(conversation, self._options.tokenizer).total
        if counted + sum(map(estimate, conversation.messages)) <= self._allowed:
            return view
        done = await condense(conversation, self._strategy, self._options)
        outcome = _outcome(conversation, done)
        changed = [each.owner for each in entries if outcome.changes(each)]
        if not changed:
            return view
        if self._on_condensed is not None:
            self._on_condensed(done)
        reach = 1 + max(changed)
        shown = _shown(view[:reach], [each for each in entries if each.owner < reach], outcome)
        covered = len(beginning.covered) + max(0, reach - len(beginning.shown))
        opening = [*shown, *view[reach : len(beginning.shown)]]
        self._beginnings.append(_CondensedBeginning(messages[:covered], opening))
        return [*shown, *view[reach:]]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Return the messages that stay, by id, and the summary of the others."""

    kept: frozenset[str | None]
    edited: Mapping[str | None, Message]
    """The messages that are shown in part."""
    summary: str | None

    def drops(self, entry: TranslatedMessage) -> bool:
        """True if the summary replaces the entry."""
        return entry.message is not None and entry.message.id not in self.kept

    def edit_of(self, entry: TranslatedMessage) -> Message | None:
        """The message that is shown in place of the entry's, if there is one."""
        return None if entry.message is None else self.edited.get(entry.message.id)

    def changes(self, entry: TranslatedMessage) -> bool:
        """True if the entry is dropped or edited."""
        return self.drops(entry) or self.edit_of(entry) is not None


def _shown(
    view: Sequence[ModelMessage], entries: Sequence[TranslatedMessage], outcome: _Outcome
) -> list[ModelMessage]:
    """Return the kept messages, with the summary in place of the first removed one."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    first_dropped = next((each for each in entries if outcome.drops(each)), None)
    left = [each for each in entries if each is first_dropped or not outcome.drops(each)]
    shown: list[ModelMessage] = []
    for (owner, is_summary), run in groupby(left, lambda e: (e.owner, e is first_dropped)):
        if is_summary:
            shown.append(ModelRequest(parts=[UserPromptPart(outcome.summary or "")]))
            continue
        message = view[owner]
        parts = [part for entry in run for part in _shown_parts(message, entry, outcome)]
        if [*map(id, parts)] == [*map(id, message.parts)]:
            shown.append(message)
        else:
            # Theirs is a union of classes, so no type says that it has parts to replace.
            shown.append(replace(cast("Any", message), parts=parts))
    return shown


def _shown_parts(
    message: ModelMessage, entry: TranslatedMessage, outcome: _Outcome
) -> Sequence[Any]:
    """Return the parts of an entry; an edited one has its text in one part, before its files."""
    from pydantic_ai.messages import SystemPromptPart, UserPromptPart

    parts = [message.parts[index] for index in entry.parts]
    edit = outcome.edit_of(entry)
    if edit is None:
        return parts
    text = text_of(edit.parts)
    if edit.role == "system":
        return [SystemPromptPart(text)]
    prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
    files = [item for each in prompts if not isinstance(each, str) for item in each if _file(item)]
    has_files = any(isinstance(part, Attachment) for part in edit.parts)
    return [UserPromptPart([text, *files] if files and has_files else text)]


def _file(item: Any) -> bool:
    return any(isinstance(part, Attachment) for part in _content(item))


def _outcome(conversation: Conversation, done: Condensed) -> _Outcome:
    """Return the messages after the compression; kept ones have an id, the summary has none."""
    before = {message.id: wire.enfold.render_message(message) for message in conversation.messages}
    left = done.messages["messages"]
    kept = {each["id"]: each for each in left if "id" in each}
    edited = {
        id: wire.enfold.parse_message(each)
        for id, each in kept.items()
        # Parts of responses are checked by providers, and the strategy leaves them alone.
        if each != before[id] and each["role"] in {"system", "user"}
    }
    summary = next((each["content"] for each in left if "id" not in each), None)
    return _Outcome(frozenset(kept), edited, summary)


def _static_conversation(instructions: str, tools: Iterable[ToolDefinition]) -> Conversation:
    """Return system prompt and tools as a conversation without messages."""
    system = Message("system", (Text(instructions),)) if instructions else None
    offered = (Tool(t.name, t.description or "", t.parameters_json_schema) for t in tools)
    return Conversation((), system=system, tools=tuple(offered), extras={})
