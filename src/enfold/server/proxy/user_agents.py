"""User agents: the name of the program that sent a request, for people.

Agents are built on the providers' libraries and name both, so that agents are looked for first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from enfold.engine.recognition import CLIENT_WINDOWS
from enfold.server.headers import Header, find

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
