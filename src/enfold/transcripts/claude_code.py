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

from collections.abc import Iterator
from typing import Any

from enfold.dialects.fields import text_field
from enfold.transcripts.claude_code_threads import DIALECT, Thread
from enfold.transcripts.log import Log
from enfold.transcripts.source import Source, located
from enfold.transcripts.transcript import Transcript

__all__ = ["DIALECT", "NAME", "fits", "read"]

NAME = "claude-code"

_ONLY_HERE = {"parentUuid", "sessionId", "leafUuid", "isSidechain", "parent_tool_use_id"}
_ABOUT = ("cwd", "gitBranch", "version", "agentId")
"""What the newest event says of the whole session."""

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Where events have a title, the better ones first."""


def fits(value: Any) -> bool:
    """Whether an event is one of a session log."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and not _ONLY_HERE.isdisjoint(value)
    )


def read(source: Source, _dialect: str) -> Iterator[Transcript]:
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
        """What there is to read, the session first."""
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
