"""The sentences that a person typed, told apart from the text that clients add.

The definition is this file's own and shares no code with enfold, so that it can judge enfold. Not
typed are

- blocks in the tags of coding agents (reminders, hooks, command output, IDE context, environment);
- whole messages that a client writes (a continued session, AGENTS.md, a skill body, an approved
  plan, a complaint about the format of a reply), and the body of a slash command, which is the
  message right after the command;
- code in fences, and pasted lines: diffs, prompts, traces, logs, listings.

The arguments of a slash command are typed. A sentence counts from three words, or six characters of
a script without spaces: shorter ones ("yes", "commit") occur in any text by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from enfold.messages import Message, Text

CODING = (
    "cc_cipherbox",
    "cc_context_evaluator",
    "cc_entire_cli",
    "cc_viewer_samples",
    "agentv_claude",
    "agentv_codex",
    "pi_sessions",
)
"""Sets of coding sessions in which people type."""
CHATS = ("memorybank", "oasst_trees", "sharegpt_zh", "tau_airline")
"""Sets of chats. Meetings are left out: all of their text is people's."""

_WRAPPERS = (
    "system-reminder",
    "system_reminder",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "command-name",
    "command-message",
    "command-contents",
    "task-notification",
    "bash-stdout",
    "bash-stderr",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "environment_context",
    "environment_details",
    "permissions",
    "user_instructions",
    "user-prompt-submit-hook",
    "skill",
    "INSTRUCTIONS",
)
_WRAPPED = re.compile(
    "|".join(rf"<{name}(?:\s[^>]*)?>.*?(?:</{name}>|\Z)" for name in _WRAPPERS), re.DOTALL
)
_KEPT_TAGS = re.compile(r"</?(?:command-args|bash-input)>")
_CLIENT_MESSAGES = (
    "# AGENTS.md instructions for",
    "# CLAUDE.md",
    "This session is being continued from a previous conversation",
    "Caveat: The messages below were generated",
    "Base directory for this skill:",
    "[Request interrupted by user",
    "[image omitted]",
    "Implement the following plan:",
    "Please always provide EXACTLY ONE action",
    "<task-notification>",
)
_DOCUMENT = 2_000
"""Characters from which a message that opens with a heading is a document, not typed."""
_COMMAND = re.compile(r"<command-name>")
_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_PASTED = re.compile(
    r"""^(?:
        \s{4,}                                    # indented: code, continued traces
      | \s*[➜\u276f$%│├└─⎿●⠇→|]                        # prompts, boxes, trees, tables
      | \s*[+-]\s?\d                              # numbered diff lines
      | (?:diff\ --git|@@\ |index\ [0-9a-f]{7}|\+\+\+|---)
      | (?:commit\ [0-9a-f]{7,}|Author:|Date:|Merge:)
      | (?:remote|fatal|error|warning|note|hint|From|Traceback|Caused\ by|\w*Error|\w*Exception)
        \b:?\s.*(?:[/\\:]|\d)
      | \s*at\ \S+\s?\(
      | \s*(?:create|delete|rename)\ mode
      | \s*File\ "
      | \s*\d+\ files?\ changed
      | \S+[/\\]\S+:\d+(?::\d+)?                  # path:line:column
      | \s*[{}\[\]();<>]                          # code and markup
      | \d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}          # logs
    )""",
    re.VERBOSE,
)
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。\uff01\uff1f])")
_WORD = re.compile(r"[^\W\d_]+")
LEAST_WORDS = 3
LEAST_CHARACTERS = 6
_MOSTLY_WORDS = 0.5


def typed_texts(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Yield the index of each message that a person typed into, with the typed text."""
    after_command = False
    for index, message in enumerate(messages):
        if message.role != "user":
            after_command = False
            continue
        kept: list[str] = []
        for part in message.parts:
            if not isinstance(part, Text):
                continue
            text = "" if after_command else strip_client_text(part.text)
            after_command = bool(_COMMAND.search(part.text))
            if text.strip():
                kept.append(text)
        if kept:
            yield index, "\n\n".join(kept)


def strip_client_text(text: str) -> str:
    """Return the text without what a client wrote; empty if it wrote all of it."""
    if text.lstrip().startswith(_CLIENT_MESSAGES):
        return ""
    if text.startswith("#") and len(text) > _DOCUMENT:
        return ""
    without = _KEPT_TAGS.sub("\n", _WRAPPED.sub("\n", text))
    return "" if without.lstrip().startswith(_CLIENT_MESSAGES) else without


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a typed text, without fences and pasted lines."""
    for line in _FENCE.sub("\n", text).splitlines():
        if _PASTED.match(line):
            continue
        for sentence in _END.split(line.strip()):
            if _counts(sentence):
                yield sentence.strip()


def typed_sentences(messages: Sequence[Message]) -> list[str]:
    """Return the different sentences that a person typed in these messages."""
    found = (each for _, text in typed_texts(messages) for each in sentences(text))
    return list(dict.fromkeys(found))


class ViewText:
    """The text of a view, without tool calls and tool results."""

    def __init__(self, view: Iterable[Message]) -> None:
        texts = (part.text for each in view for part in each.parts if isinstance(part, Text))
        # A form feed separates the parts: no sentence may match across two of them.
        self._text = "\f".join(_flat(text) for text in texts)

    def has(self, sentence: str) -> bool:
        """True if the sentence occurs word for word, whatever its white space."""
        return _flat(sentence) in self._text

    def share(self, wanted: Sequence[str]) -> float:
        """Return the share of these sentences that occur."""
        return sum(map(self.has, wanted)) / len(wanted) if wanted else 1.0


def _flat(text: str) -> str:
    return " ".join(text.split())


def _counts(sentence: str) -> bool:
    if len(_SPACELESS.findall(sentence)) >= LEAST_CHARACTERS:
        return True
    words = _WORD.findall(sentence)
    letters = sum(map(len, words))
    solid = len(sentence.replace(" ", ""))
    return len(words) >= LEAST_WORDS and letters >= _MOSTLY_WORDS * solid
