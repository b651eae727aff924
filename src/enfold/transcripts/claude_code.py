"""The `claude-code` format: a session log of Claude Code.

Every line is an event. Those of type `user` and `assistant` carry a message, and so does an
`attachment` with what a person typed while the model was working; the rest are counted. Events
name the one before them by `parentUuid`, so that a log is a tree: going back in a session leaves a
branch behind. The active branch ends at the last message in the file.

What a sub-agent said (`isSidechain`) is a conversation of its own, with its own prompt, and so a
transcript of its own: the session comes first, its sub-agents follow in the order they began.

A compaction starts a new root and keeps the old one in `logicalParentUuid`; that link is followed,
so the branch is the whole history, with the summary where it was made.

What the program prints with `--output-format stream-json` reads too: the same events, in a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from enfold import wire
from enfold.messages import Message, ToolCall, ToolResult
from enfold.transcripts.source import Log, TranscriptSource, located, within
from enfold.transcripts.transcript import Transcript, TranscriptEntry
from enfold.wire.fields import as_time, object_field, text_field

DIALECT = "anthropic"

_SPEAKERS = ("user", "assistant")


@dataclass(slots=True)
class _Draft:
    """A message of which more may come."""

    id: str
    parent_id: str | None
    message: Message
    events: list[dict[str, Any]]
    answered: set[str] = field(default_factory=set)
    """Ids of its calls that have a result."""
    last_result: str | None = None
    """The draft with the latest of these."""


class Thread:
    """One chain of events, as far as the log has been read."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        """`relinked`: events whose parent is not in the log; `repeated`: events met again."""
        self.latest: dict[str, Any] = {}
        """The newest event that carries a message."""
        self._drafts: dict[str, _Draft] = {}
        self._stands_for: dict[str, str | None] = {}
        """The draft of every event met: its own, or the nearest one before it."""
        self._replies: dict[str, _Draft] = {}
        self._asked_by: dict[str, _Draft] = {}
        """The reply that a draft of results answers."""

    @property
    def entries(self) -> tuple[TranscriptEntry, ...]:
        """The messages so far."""
        return tuple(
            TranscriptEntry(
                replace(draft.message, id=draft.id, at=as_time(draft.events[0].get("timestamp"))),
                draft.id,
                draft.parent_id,
                {"events": draft.events},
            )
            for draft in self._drafts.values()
        )

    @property
    def tip(self) -> str | None:
        """The message that was begun last."""
        return next(reversed(self._drafts), None)

    def has(self, uuid: Any) -> bool:
        """Return True if an event with that id has been read."""
        return isinstance(uuid, str) and uuid in self._stands_for

    def add(self, event: dict[str, Any], at: str) -> bool:
        """Take in the event at that place of the log; false if it carries no message."""
        uuid = text_field(event, "uuid", default="") or at
        if self.has(uuid):
            self.notes["repeated"] += 1
            return True
        message = _parse(event)
        parent = self._parent(event)
        if message is None:
            self._stands_for[uuid] = parent
            return False
        self.latest = event
        reply = _reply_id(event)
        if reply in self._replies:
            self._stands_for[uuid] = self._replies[reply].id
            _extend(self._replies[reply], message, event)
            return True
        self._stands_for[uuid] = uuid
        self._drafts[uuid] = _Draft(uuid, self._place(uuid, parent, message), message, [event])
        if reply is not None:
            self._replies[reply] = self._drafts[uuid]
        return True

    def _parent(self, event: dict[str, Any]) -> str | None:
        """The draft that the event hangs from. Logs do lose events: then it is the latest one."""
        named = text_field(event, "parentUuid", default="")
        uuid = named or text_field(event, "logicalParentUuid", default="")
        if uuid in self._stands_for:
            return self._stands_for[uuid]
        begins = not uuid and "parentUuid" in event and not _is_compaction(event)
        if begins or self.tip is None:
            return None
        if uuid:
            self.notes["relinked"] += 1
        return self.tip

    def _place(self, uuid: str, parent: str | None, message: Message) -> str | None:
        """Return the parent of a new message: the last result of its reply."""
        if parent is None:
            return None
        reply = self._asked_by.get(parent, self._drafts[parent])
        answers = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        if answers.isdisjoint(_calls(reply.message)):
            return reply.last_result or parent
        is_first = reply.answered.isdisjoint(answers)
        before = reply.last_result if is_first else None
        reply.answered |= answers
        reply.last_result = uuid
        self._asked_by[uuid] = reply
        return before or reply.id


def _parse(event: dict[str, Any]) -> Message | None:
    kind = text_field(event, "type", default="")
    if kind in _SPEAKERS:
        message = object_field(event, "message")
        with within("message"):
            return _parse_message(text_field(message, "role", default=kind), message.get("content"))
    attachment = event.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return None
    with within("attachment"):
        return _parse_message("user", attachment.get("prompt"))


def _parse_message(role: str, content: Any) -> Message:
    """Return a message with the provider's fields only; the event holds the other fields."""
    return wire.get(DIALECT).parse_message({"role": role, "content": content})


def _extend(draft: _Draft, message: Message, event: dict[str, Any]) -> None:
    """Add what the event says to the reply; some versions say earlier blocks again."""
    blocks = _blocks(draft.message)
    more = [block for block in _blocks(message) if block not in blocks]
    draft.events.append(event)
    draft.message = _parse_message(message.role, [*blocks, *more])


def _blocks(message: Message) -> list[Any]:
    content = message.extras["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _calls(message: Message) -> set[str]:
    return {part.id for part in message.parts if isinstance(part, ToolCall)}


def _reply_id(event: dict[str, Any]) -> str | None:
    """The id that all events of one reply share."""
    if event.get("type") != "assistant":
        return None
    given = event["message"].get("id")
    return given if isinstance(given, str) else None


def _is_compaction(event: dict[str, Any]) -> bool:
    return event.get("subtype") == "compact_boundary" or bool(event.get("isCompactSummary"))


NAME = "claude-code"

_ONLY_HERE = {"parentUuid", "sessionId", "leafUuid", "isSidechain", "parent_tool_use_id"}
_ABOUT = ("cwd", "gitBranch", "version", "agentId")
"""What the newest event says of the whole session."""

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Where events have a title, the better ones first."""


def fits(value: Any) -> bool:
    """Return True if an event is one of a session log."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and not _ONLY_HERE.isdisjoint(value)
    )


def read(source: TranscriptSource, _dialect: str) -> Iterator[Transcript]:
    """The session, then each of its sub-agents; nothing where no one has said anything yet."""
    log = Log(source)
    session = _Session(log)
    for record, event in log:
        with located(record.place):
            session.add(event, record.at)
    yield from session.transcripts()


class _Session:
    """The session as far as the log has been read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._main = Thread()
        self._agents: dict[str, Thread] = {}
        self._agent_of: dict[str, str] = {}
        self._titles: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any], at: str) -> None:
        if not self._thread(event).add(event, at):
            self._log.skip(_kind(event))
        if text_field(event, "type", default="") in _TITLES:
            self._titles.append(event)

    def _thread(self, event: dict[str, Any]) -> Thread:
        caller = text_field(event, "parent_tool_use_id", default="")
        if not event.get("isSidechain") and not caller:
            return self._main
        uuid = text_field(event, "uuid", default="")
        parent = text_field(event, "parentUuid", default="")
        named = text_field(event, "agentId", default="") or caller
        agent = named or self._agent_of.get(parent, uuid)
        self._agent_of[uuid] = agent
        return self._agents.setdefault(agent, Thread())

    def _title(self) -> str:
        """Logs of one project share their summaries: only one that names an event here is ours."""
        found: dict[str, str] = {}
        for event in self._titles:
            title, leaf = event.get(_TITLES[event["type"]]), event.get("leafUuid")
            if isinstance(title, str) and (leaf is None or self._main.has(leaf)):
                found[event["type"]] = title
        return next((found[kind] for kind in _TITLES if kind in found), "")

    def transcripts(self) -> Iterator[Transcript]:
        """Yield the conversations, the session first."""
        title, notes = self._title(), self._log.notes
        for agent, thread in (("", self._main), *self._agents.items()):
            if thread.tip is not None:
                yield _transcript(thread, agent, title, notes)
                title, notes = "", {}


def _transcript(thread: Thread, agent: str, title: str, notes: dict[str, Any]) -> Transcript:
    latest = thread.latest
    session = str(latest.get("sessionId") or latest.get("session_id") or "")
    about = {key: latest[key] for key in _ABOUT if latest.get(key) is not None}
    return Transcript(
        thread.entries,
        DIALECT,
        id=f"{session}/{agent}" if agent else session,
        title=title,
        tip=thread.tip,
        format=NAME,
        extras={"sessionId": session, **about, **thread.notes, **notes},
    )


def _kind(event: dict[str, Any]) -> str:
    """The event's type, and its subtype where it has one."""
    kinds = (event.get("type"), event.get("subtype"))
    return ":".join(kind for kind in kinds if isinstance(kind, str)) or "event"
