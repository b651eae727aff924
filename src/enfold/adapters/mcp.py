"""MCP server: recall, search, status, pins and compression of stored sessions, over stdio.

The tools work on one session, on the session that a call names, or on that of the coding agent
that runs the server. Start it as `enfold-mcp --session NAME` or `enfold-mcp --agent claude`, or in
a program with `make_server(engine)`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from inspect import getdoc, signature
from typing import TYPE_CHECKING, Any

from enfold.adapters.engines import of_extra
from enfold.engine import Engine, Session
from enfold.engine.recall import NOTICE, Passage, RecallAnswer, find_message, text_budget
from enfold.engine.results import StandingMessage
from enfold.errors import EnfoldError, InputError, facts
from enfold.jsontext import to_json
from enfold.summaries.fence import escape
from enfold.text.secrets import hide
from enfold.wiring import open_engine

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.types import CallToolResult

INSTRUCTIONS = (
    "Old messages of long conversations are summarized. Nothing is lost: search_history finds "
    "messages by their words, and recall returns their exact text."
)
CLIENTS = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
    "aider": "aider",
}
"""The names of coding agents, as in `enfold wrap`, and their titles."""
_FEWEST, _MOST = 300, 20_000
"""Bounds of `max_tokens` in `recall`."""
_HITS = 50
"""The most hits of a search."""
_OTHERS = 5
"""Sessions that are named in the error if a call names none."""
_LAST_USED = 50
"""Sessions among which that of an agent is looked for."""
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The names of sessions that `enfold hook` has read from the logs of agents."""


@dataclass(frozen=True)
class Recalled:
    """The recalled passages."""

    session: str
    passages: list[Passage]
    fits: bool = True
    """False if the history has nothing about the query; the passages are the nearest then."""
    unanswered: list[str] = field(default_factory=list)
    """Those of several questions that the history has nothing about."""
    uses_vectors: bool = False
    """True if words of similar meaning were searched for too."""

    def __str__(self) -> str:
        return str(RecallAnswer(tuple(self.passages), self.fits, tuple(self.unanswered)))


@dataclass(frozen=True)
class FoundMessage:
    """A message that contains the words of the query."""

    reference: str
    position: int
    role: str
    snippet: str

    def __str__(self) -> str:
        text = escape(" ".join(self.snippet.split()))
        return f"[message {self.position}, {self.role}, reference {self.reference}] … {text} …"


@dataclass(frozen=True)
class FoundMessages:
    """The messages that a search found."""

    session: str
    hits: list[FoundMessage]

    def __str__(self) -> str:
        lines = "\n".join(map(str, self.hits))
        return _quoted(lines) if lines else "No message contains all these words."


@dataclass(frozen=True)
class CompressedSession:
    """The result of a compression."""

    session: str
    outcome: str
    tokens_before: int
    tokens_after: int
    messages_summarized: int
    """The number of summarized messages."""
    warnings: list[str]

    def __str__(self) -> str:
        result = (
            f"{self.outcome.replace('_', ' ')}: {self.messages_summarized} messages summarized, "
            f"{self.tokens_before:,} tokens before, {self.tokens_after:,} after"
        )
        return "; ".join((result, *self.warnings))


@dataclass(frozen=True)
class SessionStatus:
    """The used part of a session's context."""

    session: str
    model: str
    messages: int
    tokens: int
    limit: int
    threshold: int
    utilization: float
    summary_tokens: int
    compression_is_due: bool
    blocked: str | None

    def __str__(self) -> str:
        due = "is due" if self.compression_is_due else "is not due"
        text = (
            f"{self.session}: {self.tokens:,} of {self.limit:,} tokens in use "
            f"({self.utilization:.0%}), {self.messages:,} messages, {self.model}. "
            f"A compression {due}; the threshold is {self.threshold:,} tokens."
        )
        return f"{text} Blocked: {self.blocked}" if self.blocked else text


@dataclass(frozen=True)
class PinnedMessages:
    """The messages that every compression leaves in the view."""

    session: str
    messages: list[StandingMessage]

    def __str__(self) -> str:
        lines = "\n".join(
            f"[message {each.position}, {each.role}, {each.why}, {each.tokens:,} tokens,"
            f" reference {each.message}] {escape(each.text)}"
            for each in self.messages
        )
        return _quoted(lines) if lines else "No message is pinned."


def _quoted(lines: str) -> str:
    return f"{NOTICE}\n<conversation>\n{lines}\n</conversation>"


def make_server(
    engine: Engine, *, session: str | None = None, namespace: str = "", client: str | None = None
) -> MCPServer[Any]:
    """Return the server over an open engine; with a `session`, for that session only.

    `client` is the title of a coding agent, such as Claude Code: a call that names no session is
    for the session that this agent used last.
    """
    with of_extra("mcp"):
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations

    tools = HistoryTools(engine, session, namespace, client)
    # The library logs the arguments of calls at lower levels; they may be private.
    server: MCPServer[Any] = MCPServer("enfold", instructions=INSTRUCTIONS, log_level="WARNING")
    reading = (tools.recall, tools.search_history, tools.status, tools.pins)
    for tool in (*reading, tools.compress, tools.pin):
        hints = ToolAnnotations(
            read_only_hint=tool in reading, destructive_hint=False, open_world_hint=False
        )
        made = _as_tool(tool, takes_session=session is None)
        server.add_tool(made, description=getdoc(tool), annotations=hints)
    return server


@dataclass(frozen=True, slots=True)
class HistoryTools:
    """The tools. Models read their docstrings."""

    engine: Engine
    only: str | None
    """The one session that they work on."""
    namespace: str
    client: str | None

    async def recall(
        self,
        reference: str = "",
        query: str = "",
        start: int = 0,
        around: int = 0,
        max_tokens: int = 2_000,
        session: str = "",
    ) -> Recalled:
        """Return the exact text of earlier messages, also of those that were summarized.

        Ask in plain words with query; it may be several questions, a line of a summary, a date
        ("on 7 May") or a file ("what did we change in a.py"). The answer has the messages that fit
        best, each with its reference and date; fits is false if the history has nothing about it.
        Or name one message by its reference, by a marker ⟨ … ⟩ or by the id of a tool call whose
        result was shortened, with around for its neighbours on each side. A long message comes in
        pieces: continue with start. The answer has at most max_tokens tokens.
        """
        if bool(reference) == bool(query):
            raise InputError("use either a reference or a query")
        if not _FEWEST <= max_tokens <= _MOST:
            raise InputError(f"max_tokens is {max_tokens}; expected {_FEWEST} to {_MOST:,}")
        found = await self._session(session)
        tokens = text_budget(1 if reference and not around else 0, max_tokens)
        answer = await found.recall(
            query, reference=reference, start=start, around=around, tokens=tokens
        )
        passages, unanswered = list(answer.passages), list(answer.unanswered)
        return Recalled(found.id, passages, answer.fits, unanswered, answer.uses_vectors)

    async def search_history(self, query: str, limit: int = 10, session: str = "") -> FoundMessages:
        """Search all messages of the conversation, summarized or not; newest first.

        All words of the query must occur; words "in double quotes" as a phrase. Every hit has a
        reference for recall.
        """
        if not query.strip():
            raise InputError("the query has no word to search for")
        if limit < 1:
            raise InputError(f"limit is {limit}, at least 1 expected")
        found = await self._session(session)
        hits = await found.search(query, limit=min(limit, _HITS), on_branch=True)
        messages = [FoundMessage(e.message, e.depth, e.role, hide(e.snippet)) for e in hits]
        return FoundMessages(found.id, messages)

    async def compress(
        self, keep_tokens: int | None = None, session: str = ""
    ) -> CompressedSession:
        """Summarize the old messages of the conversation now, to free tokens.

        keep_tokens is the number of recent tokens kept verbatim; without it the settings decide.
        Nothing is lost: recall finds the summarized messages.
        """
        if keep_tokens is not None and keep_tokens < 0:
            raise InputError(f"keep_tokens is {keep_tokens}, at least 0 expected")
        found = await self._session(session)
        done = await found.compress(keep_tokens=keep_tokens)
        change = (done.tokens_before, done.tokens_after, done.messages)
        return CompressedSession(found.id, done.outcome, *change, list(done.warnings))

    async def status(self, session: str = "") -> SessionStatus:
        """Return how full the conversation's context is, and if a compression is due."""
        found = await self._session(session)
        status = await found.status()
        return SessionStatus(
            session=found.id,
            model=status.model,
            messages=status.messages,
            tokens=status.current_token_count,
            limit=status.context_limit,
            threshold=status.threshold_token_count,
            utilization=status.utilization,
            summary_tokens=status.summary_tokens,
            compression_is_due=status.needs_compression,
            blocked=status.blocked,
        )

    async def pins(self, session: str = "") -> PinnedMessages:
        """Return the messages that every compression leaves in the context, with the reason."""
        found = await self._session(session)
        return PinnedMessages(found.id, list(await found.pins()))

    # There is no tool to unpin: text that a model reads must not be able to release the user's
    # instructions. People unpin messages with the command line, the API or the web UI.
    async def pin(self, reference: str, session: str = "") -> PinnedMessages:
        """Keep a message in the context, word for word, through all later compressions.

        The reference is that of search_history or recall, or the message's position. Use it for
        messages that must not be summarized, such as a plan or a decision.
        """
        found = await self._session(session)
        await found.pin((await find_message(found, reference)).id)
        return PinnedMessages(found.id, list(await found.pins()))

    async def _session(self, named: str) -> Session:
        name = self.only or named
        if name:
            return await self.engine.find(name, namespace=self.namespace)
        if self.client is not None:
            return await self._agent_session(self.client)
        last = await self.engine.sessions(namespace=self.namespace, limit=_OTHERS)
        names = ", ".join(each.id for each in last)
        raise InputError(f"name a session; last used: {names}" if names else "no session yet")

    async def _agent_session(self, client: str) -> Session:
        """Return the session that the agent used last, by its requests or by its log."""
        last = await self.engine.sessions(namespace=self.namespace, limit=_LAST_USED)
        for each in last:
            if each.client == client or (each.client is None and _SESSION_ID.fullmatch(each.id)):
                return await self.engine.find(each.id, namespace=self.namespace)
        raise InputError(
            f"no session of {client} is stored yet; run it with `enfold wrap`, or install the "
            "plugin"
        )


def _as_tool(
    method: Callable[..., Awaitable[object]], *, takes_session: bool
) -> Callable[..., Awaitable[CallToolResult]]:
    """Return the method as an MCP tool: its answer as text and as structured content.

    The library reads the parameters and the schema of the answer from the method's signature.
    """
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult, TextContent

    @wraps(method)
    async def call(**arguments: Any) -> CallToolResult:
        try:
            answer = await method(**arguments)
        except EnfoldError as error:
            raise ToolError(str(error)) from None
        text = TextContent(type="text", text=str(answer))
        return CallToolResult(content=[text], structured_content=to_json(answer))

    found = signature(method, eval_str=True)
    parameters = [
        each for name, each in found.parameters.items() if takes_session or name != "session"
    ]
    vars(call)["__signature__"] = found.replace(parameters=parameters)
    return call


def main() -> None:
    """Run `enfold-mcp`, or `python -m enfold.adapters.mcp`."""
    parser = argparse.ArgumentParser(prog="enfold-mcp", description=__doc__)
    parser.add_argument("--db", metavar="URL", help="the database; if unset: ENFOLD_DB")
    parser.add_argument("--session", metavar="NAME", help="serve only this session")
    parser.add_argument(
        "--agent", choices=sorted(CLIENTS), help="follow the last session of this coding agent"
    )
    parser.add_argument("--namespace", default="", help="the namespace of the sessions")
    given = parser.parse_args()
    # The thread that reads standard input cannot be stopped, so an interrupt ends the process at
    # once. That is safe: every write is a transaction.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    client = CLIENTS.get(given.agent)

    async def serve() -> None:
        """Serve over standard input and output until the client disconnects."""
        async with open_engine(given.db) as engine:
            server = make_server(
                engine, session=given.session, namespace=given.namespace, client=client
            )
            await server.run_stdio_async()

    try:
        asyncio.run(serve())
    except EnfoldError as error:
        parser.exit(facts(error).exit_code, f"enfold-mcp: {error}\n")


if __name__ == "__main__":
    main()
