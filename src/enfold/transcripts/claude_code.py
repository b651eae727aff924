"""The `claude-code` format: a session log of Claude Code.

Every line is an event. Events of type `user` and `assistant` have a message, and so has an
`attachment` with text that a person typed while the model was working; other events are counted.
Events name the one before them by `parentUuid`, so a log is a tree: going back in a session leaves
a branch. The active branch ends at the last message in the file.

The messages of a sub-agent (`isSidechain`) are a separate conversation with its own prompt, and so
a separate transcript: the session comes first, its sub-agents follow in the order they began.

A compaction starts a new root and names the old one in `logicalParentUuid`. That link is followed,
so the branch is the whole history, with the summary at the place where it was made.

The output of `--output-format stream-json` can be read too: it has the same events.
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

DIALECT = wire.MESSAGES

_SPEAKERS = ("user", "assistant")


@dataclass(slots=True)
class _Draft:
    """A message that later events may extend."""

    id: str
    parent_id: str | None
    message: Message
    events: list[dict[str, Any]]
    answered: set[str] = field(default_factory=set)
    """The ids of its calls that have a result."""
    last_result: str | None = None
    """The id of the draft with the latest result."""


class Thread:
    """The messages of one chain of events that have been read so far."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        """`relinked`: events whose parent is not in the log; `repeated`: events read again."""
        self.latest: dict[str, Any] = {}
        """The newest event with a message."""
        self._drafts: dict[str, _Draft] = {}
        self._stands_for: dict[str, str | None] = {}
        """Event id -> the id of its draft, or of the nearest draft before it."""
        self._replies: dict[str, _Draft] = {}
        self._reply_of: dict[str, _Draft] = {}
        """Id of a draft with results -> the reply with their calls."""

    @property
    def entries(self) -> tuple[TranscriptEntry, ...]:
        """The messages that have been read so far."""
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
        """The id of the newest message."""
        return next(reversed(self._drafts), None)

    def has(self, uuid: Any) -> bool:
        """Return True if an event with that id has been read."""
        return isinstance(uuid, str) and uuid in self._stands_for

    def add(self, event: dict[str, Any], at: str) -> bool:
        """Read the event at that place of the log; return False if it has no message."""
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
        given = event["message"].get("id") if event.get("type") == "assistant" else None
        reply = given if isinstance(given, str) else None  # all events of one reply share it
        if reply in self._replies:
            draft = self._replies[reply]
            self._stands_for[uuid] = draft.id
            draft.events.append(event)
            blocks = _blocks(draft.message)  # some versions repeat earlier blocks
            more = [block for block in _blocks(message) if block not in blocks]
            draft.message = _parse_message(message.role, [*blocks, *more])
            return True
        self._stands_for[uuid] = uuid
        self._drafts[uuid] = _Draft(uuid, self._place(uuid, parent, message), message, [event])
        if reply is not None:
            self._replies[reply] = self._drafts[uuid]
        return True

    def _parent(self, event: dict[str, Any]) -> str | None:
        """Return the draft before the event; the latest one if its parent is not in the log."""
        named = text_field(event, "parentUuid", default="")
        uuid = named or text_field(event, "logicalParentUuid", default="")
        if uuid in self._stands_for:
            return self._stands_for[uuid]
        is_compaction = event.get("subtype") == "compact_boundary" or event.get("isCompactSummary")
        begins = not uuid and "parentUuid" in event and not is_compaction
        if begins or self.tip is None:
            return None
        if uuid:
            self.notes["relinked"] += 1
        return self.tip

    def _place(self, uuid: str, parent: str | None, message: Message) -> str | None:
        """Return the parent of a new message: the last result of its reply."""
        if parent is None:
            return None
        reply = self._reply_of.get(parent, self._drafts[parent])
        answers = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        calls = {part.id for part in reply.message.parts if isinstance(part, ToolCall)}
        if answers.isdisjoint(calls):
            return reply.last_result or parent
        is_first = reply.answered.isdisjoint(answers)
        before = reply.last_result if is_first else None
        reply.answered |= answers
        reply.last_result = uuid
        self._reply_of[uuid] = reply
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


def _blocks(message: Message) -> list[Any]:
    content = message.extras["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


NAME = "claude-code"

_ONLY_HERE = {"parentUuid", "sessionId", "leafUuid", "isSidechain", "parent_tool_use_id"}
_ABOUT = ("cwd", "gitBranch", "version", "agentId")
"""Fields of the newest event that describe the session."""

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Type of event -> the field with a title; the better titles come first."""


def fits(value: Any) -> bool:
    """Return True if an event is one of a session log."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and not _ONLY_HERE.isdisjoint(value)
    )


def read(source: TranscriptSource, _dialect: str) -> Iterator[Transcript]:
    """Yield the session, then each of its sub-agents; nothing if there is no message yet."""
    log = Log(source)
    session = _Session(log)
    for record, event in log:
        with located(record.place):
            session.add(event, record.at)
    yield from session.transcripts()


class _Session:
    """The part of the session that has been read so far."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._main = Thread()
        self._agents: dict[str, Thread] = {}
        self._agent_of: dict[str, str] = {}
        self._titles: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any], at: str) -> None:
        if not self._thread(event).add(event, at):
            kinds = (event.get("type"), event.get("subtype"))
            self._log.skip(":".join(kind for kind in kinds if isinstance(kind, str)) or "event")
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
        """Return the best title; a summary counts only if it names an event of this session.

        The logs of one project share their summaries.
        """
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
            if thread.tip is None:
                continue
            latest = thread.latest
            session = str(latest.get("sessionId") or latest.get("session_id") or "")
            about = {key: latest[key] for key in _ABOUT if latest.get(key) is not None}
            yield Transcript(
                thread.entries,
                DIALECT,
                id=f"{session}/{agent}" if agent else session,
                title=title,
                tip=thread.tip,
                format=NAME,
                extras={"sessionId": session, **about, **thread.notes, **notes},
            )
            title, notes = "", {}
