"""The `codex` format: a rollout, the session log of the Codex command line.

Every line is `{timestamp, type, payload}`. A `response_item` is an item of the Responses API and
becomes an entry; an `event_msg` repeats items for the terminal. Logs from before September 2025
have bare items after a first line `{id, timestamp, instructions}`.

A compaction changes the requests to the model, not the log: all items become entries, and their
replacement is noted under `compactions`. A roll-back leaves a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from enfold import wire
from enfold.errors import DialectError
from enfold.messages import Message, Text, text_of
from enfold.transcripts.source import Log, TranscriptSource, located, within
from enfold.transcripts.transcript import Ids, Transcript, TranscriptEntry
from enfold.wire.fields import as_time, object_field, text_field

NAME = "codex"
DIALECT = wire.RESPONSES

_TYPES = (
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
)
_BARE_HEADER = {"id", "timestamp", "instructions"}
_NEVER_SENT = ("ghost_snapshot",)
"""Types of items that the program does not send to the model."""

_INJECTED = (
    "# agents.md",
    "<environment_context>",
    "<hook_prompt",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_instructions>",
    "<user_shell_command>",
)
"""The beginnings of messages that the program writes in the user's role."""


def fits(value: Any) -> bool:
    """Return True if an event is one of a rollout."""
    if not isinstance(value, dict):
        return False
    if "payload" in value:
        return value.get("type") in _TYPES
    return "record_type" in value or ("type" not in value and value.keys() >= _BARE_HEADER)


def read(source: TranscriptSource, _dialect: str) -> Iterator[Transcript]:
    """Yield the one transcript; nothing if the log has no items yet."""
    log = Log(source)
    rollout = _Rollout(log)
    for record, event in log:
        with located(record.place):
            rollout.add(event)
    if rollout.entries:
        yield rollout.transcript()


@dataclass(slots=True)
class _Rollout:
    """The part of the session that has been read so far."""

    log: Log
    entries: list[TranscriptEntry] = field(default_factory=list)
    meta: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    compactions: list[dict[str, Any]] = field(default_factory=list)
    tip: str | None = None
    turns: list[str | None] = field(default_factory=list)
    """The tip before each turn of the active branch."""
    ids: Ids = field(default_factory=Ids)

    def add(self, event: dict[str, Any]) -> None:
        if "payload" in event:
            self._add_line(event)
        elif "type" in event:
            self._add_item(event, {})
        elif not self.meta and event.keys() >= _BARE_HEADER:
            self.meta = event
        else:
            self.log.skip("record")

    def _add_line(self, line: dict[str, Any]) -> None:
        payload = object_field(line, "payload")
        match text_field(line, "type"):
            case "response_item":
                with within("payload"):
                    self._add_item(payload, line)
            case "session_meta" if not self.meta:
                self.meta = payload
            case "compacted":
                self.compactions.append({"after": self.tip, **payload})
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                count = payload.get("num_turns")
                if not isinstance(count, int):
                    raise DialectError("expected a whole number", place="payload.num_turns")
                for _ in range(min(count, len(self.turns))):
                    self.tip = self.turns.pop()
            case kind:
                if kind == "turn_context":
                    self.context = payload
                self.log.skip(kind)

    def _add_item(self, item: dict[str, Any], line: dict[str, Any]) -> None:
        if item.get("type") in _NEVER_SENT:
            self.log.skip(str(item["type"]))
            return
        message = wire.get(DIALECT).parse_message(item)
        message = replace(message, at=as_time(line.get("timestamp")))
        start = text_of(message.parts).lstrip().lower()
        if message.role == "user" and not start.startswith(_INJECTED):
            self.turns.append(self.tip)
        entry = TranscriptEntry(message, self.ids.take(item.get("id")), self.tip, line)
        self.entries.append(entry)
        self.tip = entry.id

    def transcript(self) -> Transcript:
        given_id = self.meta.get("id")
        system: Message | None = None
        match self.meta.get("base_instructions"):
            case {"text": str(text)} if text:
                system = Message("system", (Text(text),), dialect=DIALECT)
        notes = {"turn_context": self.context, "compactions": self.compactions}
        noted = {key: value for key, value in notes.items() if value}
        return Transcript(
            tuple(self.entries),
            DIALECT,
            id=given_id if isinstance(given_id, str) else "",
            tip=self.tip,
            system=system,
            format=NAME,
            extras={**self.meta, **noted, **self.log.notes},
        )
