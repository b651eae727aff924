"""User agents: the name of the program that sent a request, for people.

Agents are built on the providers' libraries and name both, so that agents are looked for first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from enfold.engine.recognition import CLIENT_WINDOWS
from enfold.server.headers import Header, find

_SESSION_HEADERS = (
    b"x-claude-code-session-id",
    b"session-id",
    b"session_id",
    b"x-opencode-session",
    b"x-session-affinity",
)
"""Headers in which clients send the id of their session."""
_SESSION_ID = re.compile(rb"[\w.:-]{16,128}", re.ASCII)
"""Shorter ids could be guessed, or be the same for two people."""
_COMPACTED = (
    b"This session is being continued from a previous conversation",  # Claude Code
    b"Another language model started to solve this problem and produced a summary",  # Codex
    b'"type":"compaction"',  # the provider's own summary, as Codex sends it back
    b'"type": "compaction"',
    b"<state_snapshot>",  # Gemini CLI
)
"""Words with which clients begin a history after they have compacted it."""
_BY_HEADER = (
    (b"x-claude-code-session-id", None, "Claude Code"),
    (b"originator", re.compile(r"codex", re.IGNORECASE), "Codex"),
    (b"x-title", re.compile(r"aider", re.IGNORECASE), "aider"),
    (b"http-referer", re.compile(r"aider\.chat", re.IGNORECASE), "aider"),
)
"""Headers that only one program sends: name, pattern of the value if it matters, program."""

_BY_USER_AGENT = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"claude-cli|claude-code", "Claude Code"),
        (r"codex[_-]", "Codex"),
        (r"opencode", "opencode"),
        (r"gemini-?cli", "Gemini CLI"),
        (r"aider", "aider"),
        (r"roo-?code", "Roo Code"),
        (r"cline", "Cline"),
        (r"githubcopilot", "GitHub Copilot"),
        (r"openhands", "OpenHands"),
        (r"pydantic-ai", "pydantic-ai"),
        (r"^agents/", "OpenAI Agents SDK"),
        (r"langchain|langgraph", "LangChain"),
        (r"litellm", "LiteLLM"),
        (r"\bai-sdk", "AI SDK"),
        (r"^(?:async)?openai/python", "OpenAI SDK (Python)"),
        (r"^(?:async)?openai/js", "OpenAI SDK (JavaScript)"),
        (r"^(?:async)?anthropic/python", "Anthropic SDK (Python)"),
        (r"^(?:async)?anthropic/js", "Anthropic SDK (JavaScript)"),
        (r"google-genai-sdk.*gl-python", "Google Gen AI SDK (Python)"),
        (r"google-genai-sdk", "Google Gen AI SDK (JavaScript)"),
    )
)
_MAX_OPENING = 200
"""Messages before the first reply that are looked at; Codex keeps all prompts there."""
_LONG_CONTEXT = b"context-1m"
"""The beta feature with which the window of a million tokens is enabled."""
_PRODUCT = re.compile(r"[A-Za-z][\w.+-]{0,39}")
"""The first word of any other user agent, such as `curl` in `curl/8.5.0`."""


def client_name(headers: Iterable[Header]) -> str | None:
    """Return the name of the program that sent these headers; None if they do not tell."""
    sent = list(headers)
    for header, pattern, name in _BY_HEADER:
        value = find(sent, header)
        if value is not None and (pattern is None or pattern.search(value.decode("latin-1"))):
            return name
    return _name_of((find(sent, b"user-agent") or b"").decode("latin-1"))


def client_session(headers: Iterable[Header]) -> str | None:
    """Return the session id that a client sends; None if it sends none."""
    sent = dict(headers)
    for name in _SESSION_HEADERS:
        if (value := sent.get(name)) is not None and _SESSION_ID.fullmatch(value):
            return value.decode()
    return None


def has_compacted(messages: Sequence[bytes]) -> bool:
    """Return True if a history begins with the client's own summary of an earlier one.

    The words must come before the first reply: the model may quote them later.
    """
    for message in messages[:_MAX_OPENING]:
        if any(words in message for words in _COMPACTED):
            return True
        if b'"assistant"' in message or b'"function_call"' in message:
            return False
    return False


def client_window(client: str | None, headers: Iterable[Header]) -> int | None:
    """Return the context window that a program works with; None if it uses the model's."""
    betas = find(headers, b"anthropic-beta") or b""
    return None if _LONG_CONTEXT in betas else CLIENT_WINDOWS.get(client or "")


@lru_cache(maxsize=1_000)
def _name_of(agent: str) -> str | None:
    for pattern, name in _BY_USER_AGENT:
        if pattern.search(agent):
            return name
    product = _PRODUCT.match(agent)
    return product[0] if product else None
