"""Prompts: the instructions for a model that writes a summary.

The wording is in the text files of this folder. A style's file is the system text. The user text
has the previous summary, the messages to summarize, the recent messages as context, and a reminder
of the token budget.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from enfold.errors import ConfigError
from enfold.messages import Message, Text
from enfold.summaries.fence import escape
from enfold.summaries.request import Style, SummaryRequest, transcript

CONVERSATION = "conversation_history"
"""The placeholder in a custom prompt. Without it the conversation follows the prompt."""
MAX_LENGTH = 20_000
"""Characters of a custom prompt, so that it leaves space for the conversation."""

_BEGINNING = 300
"""Characters of the first message that stays, by which a model finds the cutoff."""
_SAMPLE = (Message("user", (Text("… the messages to be summarized …"),)),)
_PLACEHOLDER = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two texts of a call that requests a summary."""

    system: str
    user: str


def build(request: SummaryRequest) -> Prompt:
    """Return the prompt for a request, by its style or its custom template."""
    frame = _frame(request)
    if request.prompt is None:
        return Prompt(_text(request.style), frame)
    validate(request.prompt)
    return Prompt(_text("custom"), _fill_custom(request.prompt, frame))


def build_continuation(request: SummaryRequest) -> str:
    """Return the instruction that follows the conversation itself, in place of a transcript.

    The conversation shows an earlier summary in its place, and the messages that stay at its end.
    """
    style = _text(request.style).rstrip()
    if request.prompt is not None:
        validate(request.prompt)
        style = _literal(request.prompt.replace(f"{{{CONVERSATION}}}", "")).strip()
    beginning = " ".join(transcript(request.recent[:1]).split())[:_BEGINNING]
    return _fill(
        "continuation",
        style=style,
        cutoff=_fill("cutoff", beginning=beginning) if beginning else "",
        revision=_revision(request),
        reminder=_reminder(request),
    ).rstrip()


def preview(style: Style, prompt: str | None) -> Prompt:
    """Return the prompt with a placeholder in place of the conversation."""
    return build(SummaryRequest(_SAMPLE, style=style, prompt=prompt))


@cache
def prompt_texts() -> tuple[str, ...]:
    """Return the texts of all prompts."""
    found = (each for each in files(__name__).iterdir() if each.name.endswith(".txt"))
    return tuple(each.read_text(encoding="utf-8") for each in found)


def validate(template: str) -> None:
    """Raise `ConfigError` with the reason if the text is not a valid custom prompt."""
    if not template.strip():
        raise ConfigError("the custom prompt is empty; give instructions, or leave it unset")
    if len(template) > MAX_LENGTH:
        raise ConfigError(
            f"the custom prompt has {len(template):,} characters, and {MAX_LENGTH:,} are allowed"
        )
    names = _PLACEHOLDER.findall(template)
    unknown = sorted(set(names) - {CONVERSATION})
    if unknown:
        raise ConfigError(
            f"the custom prompt has unknown placeholders: {', '.join(unknown)}; only "
            f"{{{CONVERSATION}}} is filled in, and {{{{name}}}} stands for a literal {{name}}"
        )
    if len(names) > 1:
        raise ConfigError(
            f"the custom prompt has {{{CONVERSATION}}} {len(names)} times; once is enough"
        )


def _fill_custom(template: str, frame: str) -> str:
    """Return the template with the frame inserted last, so that its braces are not replaced."""
    before, found, after = template.partition(f"{{{CONVERSATION}}}")
    if not found:
        return f"{_literal(before).rstrip()}\n\n{frame}"
    return f"{_literal(before)}{frame}{_literal(after)}"


def _literal(text: str) -> str:
    return re.sub(r"\{\{(\w+)\}\}", r"{\1}", text)


def _frame(request: SummaryRequest) -> str:
    earlier = recent = ""
    if request.previous:
        earlier = _fill("earlier", previous=escape(request.previous.strip()))
    if request.recent:
        recent = _fill("recent", messages=transcript(request.recent))
    return _fill(
        "frame",
        earlier=earlier,
        messages=transcript(request.messages),
        recent=recent,
        revision=_revision(request),
        reminder=_reminder(request),
    ).rstrip()


def _reminder(request: SummaryRequest) -> str:
    """Return the last words of a prompt: the number of tokens that the summary may have."""
    reminder = _fill("reminder", target=f"{request.target:,}").rstrip()
    return reminder + _text("tighter").rstrip() if request.tightness else reminder


def _revision(request: SummaryRequest) -> str:
    """Return the request to write a draft again, with what is wrong with it."""
    if request.draft is None:
        return ""
    faults = "".join(
        _fill(name, items="\n".join(f"- {escape(each)}" for each in items))
        for name, items in (("missing", request.missing), ("invented", request.invented))
        if items
    )
    return _fill("revision", draft=escape(request.draft.strip()), faults=faults)


def _fill(name: str, **values: str) -> str:
    """Return a text file with its placeholders filled, in one pass: values are not searched."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _text(name))


@cache
def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
