"""Small files of every format: true shapes, made-up content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from enfold.jsontext import dumps
from enfold.messages import Message, Text, ToolCall, ToolResult
from enfold.transcripts import Transcript, read


def lines(values: Iterable[Any]) -> bytes:
    """The values as JSON Lines."""
    return b"".join(dumps(value) + b"\n" for value in values)


def the_one(content: bytes, **options: str) -> Transcript:
    """The only transcript of a file."""
    [transcript] = read(content, **options)
    return transcript


def outline(transcript: Transcript, tip: str | None = None) -> list[str]:
    """The active branch, a few letters a message."""
    return [_in_short(message) for message in transcript.conversation(tip).messages]


def _in_short(message: Message) -> str:
    return f"{message.role}: " + ", ".join(_part_in_short(part) for part in message.parts)


def _part_in_short(part: Any) -> str:
    match part:
        case Text(text):
            return text
        case ToolCall(id, name):
            return f"{name}({id})"
        case ToolResult(call_id, parts):
            return f"{call_id} = " + " + ".join(_part_in_short(inner) for inner in parts)
    return type(part).__name__


def user(text: str, **fields: Any) -> dict[str, Any]:
    """A message of the `openai` dialect, and of most others."""
    return {"role": "user", "content": text, **fields}


def assistant(text: str, **fields: Any) -> dict[str, Any]:
    """Its answer."""
    return {"role": "assistant", "content": text, **fields}


def claude_event(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """An event of a Claude Code log."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ada/ledger",
        "sessionId": "s-1",
        "version": "2.1.62",
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-03-25T00:33:44.472Z",
        **fields,
    }


def claude_user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    """Return a message of a person or a tool in a Claude Code log."""
    message = {"role": "user", "content": content}
    return claude_event("user", uuid, parent, message=message, **fields)


def claude_block(
    uuid: str, parent: str | None, reply: str, block: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """One block of a reply in a Claude Code log."""
    message = {
        "model": "claude-opus-4-6",
        "id": reply,
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    return claude_event("assistant", uuid, parent, message=message, requestId="req_1", **fields)


def text(content: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": content}


def call(call_id: str, name: str = "Bash") -> dict[str, Any]:
    """A call block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"command": "ls"}}


def result(call_id: str, content: str) -> list[dict[str, Any]]:
    """The content of a message with one tool result."""
    return [{"tool_use_id": call_id, "type": "tool_result", "content": content, "is_error": False}]


CLAUDE_LOG = [
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
    claude_event("progress", "p0", None, data={"type": "hook_progress"}),
    claude_user("u1", "p0", "list the files"),
    claude_block("a1", "u1", "msg_1", text("Two looks.")),
    claude_block("a2", "a1", "msg_1", call("c1")),
    claude_block("a3", "a2", "msg_1", call("c2")),
    claude_user("r1", "a2", result("c1", "main.py"), toolUseResult={"stdout": "main.py"}),
    claude_user("r2", "a3", result("c2", "README"), toolUseResult={"stdout": "README"}),
    claude_block("a4", "r2", "msg_2", text("Two files.")),
]


def codex_line(kind: str, **payload: Any) -> dict[str, Any]:
    """A line of a Codex rollout."""
    return {"timestamp": "2026-01-27T12:34:56.000Z", "type": kind, "payload": payload}


def codex_message(role: str, content: str) -> dict[str, Any]:
    """A message item."""
    block = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": block, "text": content}]}


CODEX_LOG = [
    codex_line(
        "session_meta",
        id="019f",
        cwd="/home/ada/ledger",
        cli_version="0.144.3",
        base_instructions={"text": "You are a careful programmer."},
    ),
    codex_line("event_msg", type="task_started", turn_id="t1"),
    codex_line("response_item", **codex_message("user", "<environment_context>…")),
    codex_line("response_item", **codex_message("user", "count the lines")),
    codex_line("event_msg", type="user_message", message="count the lines"),
    codex_line("turn_context", cwd="/home/ada/ledger", model="gpt-5-codex"),
    codex_line("response_item", type="reasoning", id="rs_1", summary=[], encrypted_content="gAAA"),
    codex_line(
        "response_item", type="function_call", name="shell", arguments="{}", call_id="call_1"
    ),
    codex_line("response_item", type="function_call_output", call_id="call_1", output="42"),
    codex_line("event_msg", type="agent_message", message="42 lines."),
    codex_line("response_item", **codex_message("assistant", "42 lines.")),
    codex_line("event_msg", type="token_count", info=None),
]


def chatgpt_node(
    id: str, parent: str | None, role: str, content: Any, **fields: Any
) -> dict[str, Any]:
    """A node of a ChatGPT export; a text is a content of one part."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    name = fields.pop("name", None)
    message = {
        "id": id,
        "author": {"role": role, "name": name, "metadata": {}},
        "create_time": 1761983485.583,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **fields,
    }
    return {"id": id, "message": message, "parent": parent, "children": []}


def chatgpt_conversation(*nodes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A conversation of a ChatGPT export, with the root that all have."""
    root: dict[str, Any] = {"id": "root", "message": None, "parent": None, "children": []}
    return {
        "title": "Sums",
        "create_time": 1761983488.1,
        "mapping": {node["id"]: node for node in (root, *nodes)},
        "conversation_id": "6905",
        **fields,
    }


CHATGPT_EXPORT = [
    chatgpt_conversation(
        chatgpt_node("s", "root", "system", "", weight=0.0),
        chatgpt_node("u", "s", "user", "What is 2 + 2?"),
        chatgpt_node(
            "c", "u", "assistant", {"content_type": "code", "text": "2+2"}, recipient="python"
        ),
        chatgpt_node(
            "t", "c", "tool", {"content_type": "execution_output", "text": "4"}, name="python"
        ),
        chatgpt_node("a", "t", "assistant", "Four."),
        current_node="a",
    )
]

CONVERSATIONS = [
    {"id": "one", "messages": [user("hi", id="m1"), assistant("hello", id="m2")], "meta": {"n": 1}},
    {"id": "two", "title": "Second", "messages": [user("bye", id="m1")]},
]


def archived(id: str, parent: str | None, message: dict[str, Any]) -> dict[str, Any]:
    """An entry of an archive."""
    return {"id": id, "parent_id": parent, "dialect": "openai", "message": message}


ARCHIVE: dict[str, Any] = {
    "format": "enfold-archive",
    "version": 1,
    "id": "s",
    "title": "Greetings",
    "tip": "b",
    "entries": [archived("a", None, user("hi")), archived("b", "a", assistant("hello"))],
}

EXAMPLES: dict[str, bytes] = {
    "archive": dumps(ARCHIVE),
    "json": dumps({"model": "m", "messages": [user("hi"), assistant("hello")]}),
    "conversations": lines(CONVERSATIONS),
    "claude-code": lines(CLAUDE_LOG),
    "codex": lines(CODEX_LOG),
    "chatgpt": dumps(CHATGPT_EXPORT),
}
"""One file of every format."""
