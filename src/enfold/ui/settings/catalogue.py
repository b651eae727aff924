"""The catalogue: settings in groups, with the words that explain them to people.

What a value may be is not said here: `enfold.settings` checks it, and its words are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["flag", "number", "text", "choice"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting as people see it."""

    name: str
    title: str
    help: str
    kind: Kind
    unit: str = ""
    choices: Mapping[str, str] | None = None
    """Of a choice: value -> words. None where they depend on what is stored."""
    unset: str = ""
    """What holds where nothing is set at all."""
    is_advanced: bool = False

    def answers(self, query: str) -> bool:
        """Whether somebody who types that means this setting."""
        words = f"{self.name} {self.name.replace('_', ' ')} {self.title} {self.help}".casefold()
        return all(word in words for word in query.casefold().split())


@dataclass(frozen=True, slots=True)
class Group:
    """Settings that belong together."""

    title: str
    help: str
    entries: tuple[Entry, ...]


GROUPS = (
    Group(
        "When to compress",
        "At which size of a conversation old messages are folded.",
        (
            Entry(
                "auto_compress",
                "Compress automatically",
                "At the threshold, without being asked. Off, only the hard limit still compresses.",
                "flag",
            ),
            Entry(
                "threshold",
                "Threshold",
                "The share of the limit at which a compression is due: 0.95 is 95 %.",
                "number",
                unset="the model's",
            ),
            Entry(
                "early_mark",
                "Early mark",
                "The share of the threshold from which compression in the background may start.",
                "number",
                is_advanced=True,
            ),
            Entry(
                "trigger_ratio",
                "Trigger ratio",
                "Instead of the threshold: a share of what is available, without a safety margin.",
                "number",
                unset="not used",
                is_advanced=True,
            ),
            Entry(
                "max_tokens",
                "Maximum of tokens",
                "Instead of the threshold: an absolute number of tokens.",
                "number",
                "tokens",
                unset="not used",
                is_advanced=True,
            ),
            Entry(
                "on_failure",
                "If a compression fails",
                "What becomes of a request whose compression was due and failed.",
                "choice",
                choices={
                    "block": "Hold it back until somebody decides",
                    "truncate": "Leave out old content, and say so",
                    "pass": "Send it as it is",
                },
                is_advanced=True,
            ),
        ),
    ),
    Group(
        "What stays as it is",
        "Messages that no compression touches.",
        (
            Entry(
                "retention_tokens",
                "Newest tokens kept",
                "So many of the newest tokens stay word for word.",
                "number",
                "tokens",
                unset="the model's",
            ),
            Entry(
                "keep_first",
                "First messages kept",
                "So many messages at the beginning stay word for word.",
                "number",
                "messages",
            ),
            Entry(
                "recent_ratio",
                "Newest share kept",
                "Instead of a number of tokens: a share of the history, 0 to 1.",
                "number",
                unset="not used",
                is_advanced=True,
            ),
        ),
    ),
    Group(
        "Summaries",
        "Who writes them, and how. What a model is told is under Prompts.",
        (
            Entry(
                "summarizer",
                "Who writes summaries",
                "The built-in summarizer needs no model, no key and no network.",
                "choice",
                unset="the profile in use, else the built-in one",
            ),
            Entry(
                "style",
                "Style",
                "What a summary pays attention to.",
                "choice",
                choices={
                    "default": "Default",
                    "code": "Code: files, commands, errors",
                    "concise": "Concise",
                    "detailed": "Detailed",
                },
            ),
            Entry(
                "summary_tokens",
                "Longest summary",
                "The limit of a summary.",
                "number",
                "tokens",
                unset="a tenth of what it folds",
            ),
            Entry(
                "timeout",
                "Give up after",
                "Seconds after which a compression is given up.",
                "number",
                "seconds",
                is_advanced=True,
            ),
            Entry(
                "parallel_summaries",
                "Summaries at a time",
                "How many summaries one compression may have written at the same time.",
                "number",
                is_advanced=True,
            ),
            Entry(
                "share_across_branches",
                "Share summaries between branches",
                "A summary serves every branch that its cutoff is on, not only its own.",
                "flag",
                is_advanced=True,
            ),
        ),
    ),
    Group(
        "Model and notifications",
        "Whose window is kept where a session names no model.",
        (
            Entry(
                "model",
                "Model",
                "Its window is the one to keep, as provider:model. Its limits are under Models.",
                "text",
            ),
            Entry("notifications", "Show compressions", "While they run.", "flag"),
            Entry(
                "audit_days",
                "Audit log kept for",
                "How long the server remembers who changed what.",
                "number",
                "days",
                is_advanced=True,
            ),
        ),
    ),
    Group(
        "Proxy",
        "For clients that reach their model through enfold.",
        (
            Entry(
                "proxy_background",
                "Compress in the background",
                "From the early mark on, so that a turn seldom waits.",
                "flag",
                is_advanced=True,
            ),
            Entry(
                "proxy_client_key",
                "Summaries with the client's key",
                "Where no profile condenses, the model that the client talks to does.",
                "flag",
                is_advanced=True,
            ),
        ),
    ),
)
"""Everything that has one value; strategies, prompts, profiles and models have their own pages."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What is set in another section, for whoever looks for it here."""

    title: str
    section: str
    words: str

    def answers(self, query: str) -> bool:
        """Whether somebody who types that means this."""
        text = f"{self.title} {self.words}".casefold()
        return all(word in text for word in query.casefold().split())


ELSEWHERE = (
    Elsewhere("Strategy and its options", "strategy", "native lossless truncation smart strategy"),
    Elsewhere("Passes of the smart strategy", "strategy", "pass operation suppress truncate keep"),
    Elsewhere("Presets", "presets", "speed quality cost balanced import export apply"),
    Elsewhere("Profiles and costs", "profiles", "provider key api price condensing cheap"),
    Elsewhere("Prompts", "prompts", "prompt instructions template summary"),
    Elsewhere("Models and their limits", "models", "window max input output tokenizer limit"),
)

SOURCES: Mapping[str, str] = {
    "default": "default",
    "environment": "environment",
    "config file": "config file",
    "database": "set for all sessions",
    "model": "the model's own",
    "profile": "the session's profile",
    "session": "set for this session",
    "call": "this call",
}
"""The levels, in words for people."""
