"""LlamaIndex: a memory that stores all messages and returns those that fit the model's window.

    memory = EnfoldMemory.from_defaults(session_id="user-42", url="sqlite:///chats.db")
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)

A memory is a plain value, the address of a conversation: it may be copied, pickled and kept in a
workflow's context, and any program that has the database goes on where another stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

from enfold.adapters import engines
from enfold.adapters.engines import of_extra
from enfold.engine import Engine, Session
from enfold.errors import InputError
from enfold.identity import content_hash
from enfold.jsontext import dumps
from enfold.messages import (
    Attachment,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)

with of_extra("llama-index"):
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ContentBlock,
        MessageRole,
        TextBlock,
        ThinkingBlock,
        ToolCallBlock,
    )
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory.types import BaseMemory

Result = TypeVar("Result")
Work: TypeAlias = Callable[[Session], Coroutine[Any, Any, Result]]
"""An operation on a session."""

_WHOLE = "llama_index"
"""The field of a stored message with its LlamaIndex form, if ours cannot hold all of it."""

_ROLES: Mapping[MessageRole, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}
_FILES = {
    "image": ("image", "image_mimetype"),
    "audio": ("audio", "format"),
    "video": ("video", "video_mimetype"),
    "document": ("data", "document_mimetype"),
}
"""Blocks that are files: where they have their content and its type."""


class EnfoldMemory(BaseMemory):
    """A memory of LlamaIndex over a session of enfold.

    What is reset or set anew is no longer given. It stays in the store, on a branch of its own.
    """

    session_id: str
    url: str | None = None
    """The database. None: the one that enfold's settings name."""
    namespace: str = ""
    model: str | None = None
    """The model whose window is kept, as provider:model. None: the model of enfold's settings."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of enfold that apply to the messages that this memory returns."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serializes it."""
        return "EnfoldMemory"

    @classmethod
    def from_defaults(
        cls,
        session_id: str = "default",
        chat_history: list[ChatMessage] | None = None,
        **options: Any,
    ) -> EnfoldMemory:
        """The memory of that session, which goes on unless a history is given."""
        memory = cls(session_id=session_id, **options)
        if chat_history is not None:
            memory.set(chat_history)
        return memory

    def get(
        self,
        input: str | None = None,  # noqa: A002, ARG002 - LlamaIndex calls it so
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """Return the messages to send; older ones become a summary once they no longer fit.

        `initial_token_count` are the tokens that are sent beside it. `input` was put already.
        """
        return self._run(lambda session: self._view(session, initial_token_count))

    async def aget(
        self,
        input: str | None = None,  # noqa: A002, ARG002 - LlamaIndex calls it so
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """As `get`."""
        return await self._arun(lambda session: self._view(session, initial_token_count))

    def get_all(self) -> list[ChatMessage]:
        """Return all messages, verbatim."""
        return self._run(_history)

    async def aget_all(self) -> list[ChatMessage]:
        """As `get_all`."""
        return await self._arun(_history)

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """As `put`."""
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, all or none."""
        self._run(_adding(messages))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """As `put_messages`."""
        await self._arun(_adding(messages))

    def set(self, messages: list[ChatMessage]) -> None:
        """Start a new branch with these messages; the earlier ones stay in the store."""
        self._run(_adding(messages, anew=True))

    async def aset(self, messages: list[ChatMessage]) -> None:
        """As `set`."""
        await self._arun(_adding(messages, anew=True))

    def reset(self) -> None:
        """Start an empty branch; the earlier messages stay in the store."""
        self.set([])

    async def areset(self) -> None:
        """As `reset`."""
        await self.aset([])

    def close(self) -> None:
        """Close the database, for all memories in it; the next use opens it again."""
        engines.close(self.url)

    def _run(self, work: Work[Result]) -> Result:
        return engines.engine_at(self.url).run(self._on_session(work))

    async def _arun(self, work: Work[Result]) -> Result:
        return await engines.engine_at(self.url).run_async(self._on_session(work))

    def _on_session(self, work: Work[Result]) -> Callable[[Engine], Coroutine[Any, Any, Result]]:
        async def do(engine: Engine) -> Result:
            name, namespace = self.session_id, self.namespace
            return await work(await engine.session(name, namespace=namespace, model=self.model))

        return do

    async def _view(self, session: Session, extra: int) -> list[ChatMessage]:
        settings = dict(self.settings)
        if extra > 0:
            allowed = (await session.status(**settings)).threshold_token_count - extra
            settings["max_tokens"] = max(1, allowed)
        prepared = await session.prepare(**settings)
        return to_chat(prepared.messages)


async def _history(session: Session) -> list[ChatMessage]:
    return to_chat(await session.messages())


def _adding(messages: Sequence[ChatMessage], *, anew: bool = False) -> Work[None]:
    content = [from_chat(message) for message in messages]

    async def add(session: Session) -> None:
        if anew:
            await session.switch(None)
        await session.append(*content)

    return add


def from_chat(message: ChatMessage) -> Message:
    """Return the message as enfold's; fields without an equivalent are kept in `extras`."""
    plain = _plain(message)
    if list(_chat_messages(plain)) == [message]:
        return plain
    return Message(plain.role, plain.parts, extras={_WHOLE: _as_json(message)})


def to_chat(messages: Iterable[Message]) -> list[ChatMessage]:
    """The messages as LlamaIndex has them: as they were put, unless what they say was edited."""
    return [chat for message in messages for chat in _restored(message)]


def _restored(message: Message) -> Iterator[ChatMessage]:
    whole = message.extras.get(_WHOLE) if message.dialect == "enfold" else None
    if whole is not None:
        put = ChatMessage.model_validate(whole)
        if content_hash(_plain(put)) == content_hash(message):
            yield put
            return
    yield from _chat_messages(message)


def _as_json(message: ChatMessage) -> dict[str, Any]:
    try:
        dumped: dict[str, Any] = message.model_dump(mode="json")
    except ValueError:
        raise InputError(
            f"a {message.role.value} message has additional_kwargs or files that are not JSON; "
            "put only what can be stored"
        ) from None
    return dumped


def _plain(message: ChatMessage) -> Message:
    """The message by what it says."""
    role = _ROLES[message.role]
    parts = [_part(block) for block in message.blocks]
    extra = message.additional_kwargs
    if not any(isinstance(part, ToolCall) for part in parts):
        parts += _calls_in_extra(message)
    if role == "tool":
        content = tuple(part for part in parts if isinstance(part, Text | Attachment | Unknown))
        call, name = str(extra.get("tool_call_id", "")), str(extra.get("name") or "")
        return Message("tool", (ToolResult(call, content, name=name),))
    return Message(role, tuple(parts))


def _part(block: ContentBlock) -> Part:
    match block:
        case TextBlock(text=text):
            return Text(text)
        case ThinkingBlock(content=content):
            return Reasoning(content or "")
        case ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=arguments):
            return ToolCall(id or "", name, arguments)
    raw: dict[str, Any] = block.model_dump(mode="json")
    return _file(raw, *_FILES[block.block_type]) if block.block_type in _FILES else Unknown(raw)


def _file(raw: Mapping[str, Any], content: str, kind: str) -> Attachment:
    """A file by its name and type: its content is in the whole message, its digest stands for it.

    `extras` are what the store would give back, because identity follows from them.
    """
    held, place = raw.get(content), raw.get("url") or raw.get("path")
    facts: dict[str, Any] = {
        "type": "attachment",
        "name": raw.get("title"),
        "mime": raw.get(kind),
        "size": len(held) * 3 // 4 if held else None,
        "url": None if place is None else str(place),
        "sha256": sha256(dumps(held)).hexdigest() if held else None,
    }
    fields = {name: fact for name, fact in facts.items() if fact}
    return Attachment(
        name=fields.get("name", ""),
        mime=fields.get("mime", ""),
        size=fields.get("size"),
        url=fields.get("url"),
        extras=fields,
    )


def _calls_in_extra(message: ChatMessage) -> Iterator[ToolCall]:
    """Calls that an older integration put beside the message, as its provider has them."""
    if not message.additional_kwargs.get("tool_calls"):
        return
    for call in _as_json(message)["additional_kwargs"]["tool_calls"]:
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
            name, arguments = function.get("name"), function.get("arguments")
            yield ToolCall(str(call.get("id") or ""), str(name or ""), str(arguments or ""))


def _chat_messages(message: Message) -> Iterator[ChatMessage]:
    """The message in LlamaIndex's own words; every tool result is a message of its own."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        extra = {"tool_call_id": result.call_id}
        if result.name:
            extra["name"] = result.name
        content = text_of(result.parts)
        yield ChatMessage(role=MessageRole.TOOL, content=content, additional_kwargs=extra)
    blocks = [block for part in message.parts for block in _blocks(part)]
    if blocks or not results:
        role = MessageRole.USER if results else MessageRole(message.role)
        yield ChatMessage(role=role, blocks=blocks)


def _blocks(part: Part) -> Iterator[ContentBlock]:
    match part:
        case Text(text):
            yield TextBlock(text=text)
        case Reasoning(text):
            yield ThinkingBlock(content=text)
        case ToolCall(id, name, arguments):
            given = arguments if isinstance(arguments, str) else dict(arguments)
            yield ToolCallBlock(tool_call_id=id or None, tool_name=name, tool_kwargs=given)
        case Attachment(name, mime):
            yield TextBlock(text=f"[attachment: {name or mime or 'without a name'}]")
