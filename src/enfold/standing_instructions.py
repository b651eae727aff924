"""Standing messages: the messages that every compression leaves in the view, word for word.

These are system and developer messages anywhere in the history, the context block of a coding
agent, messages that a person pinned, and the words that people typed. If those words need more
than their share, the messages with rules, corrections and decisions stay, and the rest is
summarized. A person can release any of them. Text inside tool results, quoted files and summaries
never stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Literal, TypeAlias

from enfold.history import answers_a_call, cut_points
from enfold.messages import Message, Part, Text
from enfold.retention import Retention
from enfold.summaries import HEADING
from enfold.text.harness import FENCED_BLOCK, is_context, is_typed, person_text, spans
from enfold.text.rules import find_rules, possible_rules, rules_of_all
from enfold.tokens import count_message, get

Why: TypeAlias = Literal["system", "context", "pinned", "rule", "words"]
"""The reason why a message stands."""

WORDS_SHARE = 0.1
"""Share of the limit up to which everything that people typed stays."""
STANDING_SHARE = 0.05
"""Share of the limit above which standing instructions are reported as large."""

_LONG = 300
"""Tokens. Of a longer message only the rules stay, if the words of people need too much."""
_INSTRUCTING = frozenset({"system", "user"})
"""Roles of messages that can instruct."""
_EXCERPT_TOKENS = 24
"""Tokens of an excerpt's marker and of its message."""
_SMALLEST_GAIN = 64
"""Tokens that an excerpt must save."""
_LEFT_OUT = "⟨ ... {tokens:,} tokens of this message are left out here ⟩"
_EXCERPT = re.compile(r"⟨ \.\.\. [\d,]+ tokens of this message are left out here ⟩")
_EXCERPT_MARK = _LEFT_OUT[0]


@dataclass(frozen=True, slots=True)
class Standing:
    """A message that stays in the view, and the reason."""

    index: int
    why: Why
    tokens: int
    """Its tokens in the view."""
    excerpt: Message | None = None
    """The part of the message that stands. None: the whole message."""


@dataclass(frozen=True, slots=True)
class StandingLimits:
    """The tokens that standing messages may take. None is no limit."""

    words: int = 0
    """Everything that people typed stands if it takes no more. If it does, their rules stand."""
    rules: int | None = None
    """Messages with rules, the newest first."""
    context: int | None = None
    """Of a larger context block of a coding agent only the beginning stands."""
    fill: bool = False
    """True if the shortest other messages stand too, as far as the limit of words allows."""


NO_WORDS = StandingLimits()
"""Instructions, pins and rules stand, other words of people do not."""


@dataclass(frozen=True, slots=True)
class StandingMessages:
    """All standing messages of a view."""

    messages: tuple[Standing, ...] = ()
    quotes: Mapping[int, str] = field(default_factory=dict)
    """Words that cannot stay in their place, because the message also answers a tool call."""
    left_out: int = 0
    """Messages with rules, and context blocks, that do not stand or not whole, because they need
    more tokens than they may take."""

    @property
    def instruction_tokens(self) -> int:
        """The tokens of instructions, pins and rules, without other words of people."""
        return sum(each.tokens for each in self.messages if each.why != "words")


def find_standing(
    messages: Sequence[Message],
    counts: Sequence[int],
    tokenizer: str,
    *,
    pins: Mapping[int, bool] | None = None,
    limits: StandingLimits = NO_WORDS,
) -> StandingMessages:
    """Return the standing messages in order.

    `pins` has the indexes of pinned messages (True) and of released ones (False).
    """
    marks = pins or {}
    found, plain = _find_instructions(messages, counts, tokenizer, marks)
    contexts = _contexts_in_part(found, messages, tokenizer, limits.context)
    found |= contexts
    left_out = len(contexts)
    texts = _typed_texts(messages, found, marks, plain)
    in_force, withdrawn_by = _rules_in_force(texts)
    # Most messages are short and have no rule; a value is made only for those that stand.
    short = {
        index: counts[index]
        for index, rules in in_force.items()
        if not rules and index in plain and counts[index] <= _LONG
    }
    whole: dict[int, Standing] = {}
    quotes: dict[int, str] = {}
    for index, text in texts.items():
        if index in short:
            continue
        why: Why = "rule" if in_force[index] else "words"
        if index in plain:
            whole[index] = Standing(index, why, counts[index])
        elif answers_a_call(messages[index]):
            quotes[index] = text
        else:
            whole[index] = _person_only(index, messages[index], counts[index], tokenizer, why)
    quoted = sum(get(tokenizer).count(text) for text in quotes.values()) + sum(short.values())
    if quoted + _total(whole) > limits.words:
        whole |= {
            index: _without_pasted(each, messages[index], tokenizer)
            for index, each in whole.items()
            if each.tokens > _LONG
        }
    if quoted + _total(whole) <= limits.words:
        whole |= _words(short)
    else:
        quotes = {index: "\n".join(in_force[index]) for index in quotes if in_force[index]}
        if limits.fill:
            whole |= _words(short)
        chosen = _choose(whole, messages, in_force, tokenizer, limits)
        # A rule that was withdrawn must not stand without the words that withdrew it.
        shown = chosen.keys() | quotes.keys()
        unaccompanied = [index for index in chosen if not withdrawn_by.get(index, set()) <= shown]
        for index in unaccompanied:
            del chosen[index]
        stated = {rule for index in chosen for rule in in_force[index]}
        left_out += sum(
            not stated.issuperset(rules) for index, rules in in_force.items() if index in whole
        )
        whole = chosen
    found.update(whole)
    standing = tuple(found[index] for index in sorted(found))
    return StandingMessages(standing, quotes, left_out)


def _words(tokens: Mapping[int, int]) -> dict[int, Standing]:
    """Return messages without rules, whose tokens are given by index."""
    return {index: Standing(index, "words", count) for index, count in tokens.items()}


def _typed_texts(
    messages: Sequence[Message],
    found: Mapping[int, Standing],
    marks: Mapping[int, bool],
    plain: Mapping[int, str],
) -> dict[int, str]:
    """Return what people typed in messages that do not stand for another reason, by index."""
    typed: dict[int, str] = {}
    for index, message in enumerate(messages):
        if message.role != "user" or index in found or marks.get(index) is False:
            continue
        if text := plain.get(index) or person_text(_without_summary(message)):
            typed[index] = text
    return typed


def instruction_tokens(
    messages: Sequence[Message],
    counts: Sequence[int],
    tokenizer: str,
    pins: Mapping[int, bool] | None = None,
) -> int:
    """Return the tokens of system messages, context blocks and pinned messages."""
    return _total(_find_instructions(messages, counts, tokenizer, pins or {})[0])


def _find_instructions(
    messages: Sequence[Message], counts: Sequence[int], tokenizer: str, marks: Mapping[int, bool]
) -> tuple[dict[int, Standing], dict[int, str]]:
    """Return pinned messages, system messages and context blocks, by index.

    The second value has the texts of other messages, if all of the message is what a person typed.
    """
    found: dict[int, Standing] = {}
    plain: dict[int, str] = {}
    stated: set[str] = set()
    for index, message in enumerate(messages):
        if message.role not in _INSTRUCTING or index in marks:
            continue
        if (typed := _plain_text(message)) is not None:
            plain[index] = typed
            continue
        if not _may_instruct(message):
            continue
        text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        if text in stated:
            continue  # clients repeat reminders word for word: the first one stands
        stated.add(text)
        if message.role == "system":
            found[index] = Standing(index, "system", counts[index])
        else:
            own = _without_summary(message)
            found[index] = _excerpt(
                Standing(index, "context", counts[index]), message, _without_harness(own), tokenizer
            )
    if any(marks.values()):
        found |= _find_pinned(messages, counts, marks)
    return found, plain


def _contexts_in_part(
    found: Mapping[int, Standing], messages: Sequence[Message], tokenizer: str, limit: int | None
) -> dict[int, Standing]:
    """Return the part that stands of each context block of more tokens than the limit."""
    if limit is None:
        return {}
    return {
        index: _in_part(each, messages[index], limit, tokenizer)
        for index, each in found.items()
        if each.why == "context" and each.tokens > limit
    }


def _find_pinned(
    messages: Sequence[Message], counts: Sequence[int], marks: Mapping[int, bool]
) -> dict[int, Standing]:
    """Return pinned messages; a pinned call stays with its result."""
    return {
        index: Standing(index, "pinned", counts[index])
        for first, end in pairwise(cut_points(messages))
        if any(marks.get(index) for index in range(first, end))
        for index in range(first, end)
        if marks.get(index) or end - first > 1
    }


def _may_instruct(message: Message) -> bool:
    """Return True for a system message, and for a context block that answers no call."""
    if message.role == "user":
        return is_context(message) and not answers_a_call(message)
    return is_instruction(message)


def _plain_text(message: Message) -> str | None:
    """Return the text of a user's message if that is all, and all of it is typed; else None."""
    parts = message.parts
    if message.role != "user" or len(parts) != 1 or type(part := parts[0]) is not Text:
        return None
    return part.text if is_typed(part.text) and not _is_summary_text(part) else None


def _total(standing: Mapping[int, Standing]) -> int:
    return sum([each.tokens for each in standing.values()])


def _choose(
    whole: Mapping[int, Standing],
    messages: Sequence[Message],
    in_force: Mapping[int, tuple[str, ...]],
    tokenizer: str,
    limits: StandingLimits,
) -> dict[int, Standing]:
    """Return the messages with rules, the newest first, and the shortest others that fit.

    Short messages come first because most requests are short and most long messages are pasted.
    Of long messages the sentences that may be rules come before them, up to half of the room.
    """
    chosen: dict[int, Standing] = {}
    stated: set[str] = set()
    room = 2**62 if limits.rules is None else limits.rules
    for index in sorted((index for index in whole if in_force[index]), reverse=True):
        # A rule that a person repeats stands where it was stated last.
        rules = tuple(rule for rule in in_force[index] if rule not in stated)
        if not rules:
            continue
        standing = _rules_only(whole[index], messages[index], rules, tokenizer)
        if standing.tokens <= room:
            chosen[index] = standing
            stated.update(rules)
            room -= standing.tokens
    if limits.fill:
        room = (limits.words - _total(chosen)) // 2
        chosen |= _with_possible_rules(whole, messages, in_force, chosen, tokenizer, room)
    room = limits.words - _total(chosen) if limits.fill else 0
    for index, each in sorted(whole.items(), key=_tokens_and_index) if room > 0 else ():
        if index not in chosen and each.tokens <= room:
            chosen[index] = each
            room -= each.tokens
    return chosen


def _tokens_and_index(item: tuple[int, Standing]) -> tuple[int, int]:
    return item[1].tokens, item[0]


def _with_possible_rules(
    whole: Mapping[int, Standing],
    messages: Sequence[Message],
    in_force: Mapping[int, tuple[str, ...]],
    chosen: Mapping[int, Standing],
    tokenizer: str,
    room: int,
) -> dict[int, Standing]:
    """Return excerpts of long messages with their rules and the likeliest possible rules."""
    found: list[tuple[float, int, int, str]] = []
    for index, each in whole.items():
        shown = chosen.get(index)
        if each.tokens > _LONG and (shown is None or shown.excerpt is not None):
            text = person_text(_without_summary(messages[index])) or ""
            found += (
                (-rule.likeness, index, rule.start, text[rule.start : rule.end])
                for rule in possible_rules(text)
            )
    added: dict[int, list[tuple[int, str]]] = {}
    for _, index, start, sentence in sorted(found):
        tokens = get(tokenizer).count(sentence) + 1
        if index not in chosen and index not in added:
            tokens += _EXCERPT_TOKENS
        if tokens <= room:
            added.setdefault(index, []).append((start, sentence))
            room -= tokens
    return {
        index: _rules_only(
            whole[index],
            messages[index],
            (*in_force[index], *(sentence for _, sentence in sorted(sentences))),
            tokenizer,
        )
        for index, sentences in added.items()
    }


def _rules_in_force(
    typed: Mapping[int, str],
) -> tuple[dict[int, tuple[str, ...]], dict[int, set[int]]]:
    """Return the rules, corrections and decisions in force of each text.

    A sentence that withdraws a rule is among them while the view has the rule. The second value
    has the indexes of texts with a rule that was withdrawn, and of the texts that withdrew it.
    """
    rules, gone = rules_of_all(typed.values())
    withdrawals: dict[int, set[tuple[int, int]]] = {}
    for place, start, end in gone.values():
        withdrawals.setdefault(place, set()).add((start, end))
    in_force: dict[int, tuple[str, ...]] = dict.fromkeys(typed, ())
    indexes = tuple(typed)
    for place, index in enumerate(indexes):
        if rules[place] or place in withdrawals:
            stated = {
                (rule.start, rule.end)
                for number, rule in enumerate(rules[place])
                if (place, number) not in gone
            }
            ends = {end for _, end in stated}
            more = withdrawals.get(place, ())
            stated |= {(start, end) for start, end in more if end not in ends}
            text = typed[index]
            in_force[index] = tuple(text[start:end].strip() for start, end in sorted(stated))
    for index, text in typed.items():
        # An excerpt of an earlier compression has the rules of its message and nothing else.
        is_short = _EXCERPT_MARK in text and len(text) < 4 * _LONG
        if is_short and not in_force[index] and _EXCERPT.search(text):
            in_force[index] = (text,)
    withdrawn_by: dict[int, set[int]] = {}
    for (place, _), withdrawal in gone.items():
        withdrawn_by.setdefault(indexes[place], set()).add(indexes[withdrawal.text])
    return in_force, withdrawn_by


def _person_only(index: int, message: Message, tokens: int, tokenizer: str, why: Why) -> Standing:
    """Return the message without harness text and without a summary of ours."""
    standing = Standing(index, why, tokens)
    return _excerpt(standing, message, _without_harness(_without_summary(message)), tokenizer)


def _rules_only(
    standing: Standing, message: Message, rules: tuple[str, ...], tokenizer: str
) -> Standing:
    """Return a long message with its rules only."""
    if standing.tokens <= _LONG or not rules or _EXCERPT.search(rules[0]):
        return standing
    texts = [part for part in message.parts if isinstance(part, Text)]
    rest = tuple(part for part in message.parts if not isinstance(part, Text))
    excerpt = replace(message, parts=(replace(texts[0], text="\n".join(rules)), *rest))
    return _excerpt(standing, message, excerpt, tokenizer)


def _in_part(standing: Standing, message: Message, limit: int, tokenizer: str) -> Standing:
    """Return a context block with as many lines as the limit allows.

    A person's words come first, then lines that state a rule, then the beginning.
    """
    shown = standing.excerpt or message
    texts = [part.text if isinstance(part, Text) else "" for part in shown.parts]
    lines = [
        (importance, place, start, end)
        for place, text in enumerate(texts)
        for importance, start, end in _lines_by_importance(text)
    ]
    room = limit / standing.tokens * sum(map(len, texts))
    chosen: list[tuple[int, int, int]] = []
    for importance, place, start, line_end in sorted(lines):
        end = min(line_end, start + int(room)) if importance == 0 else line_end
        if start < end <= start + room:
            chosen.append((place, start, end))
            room -= end - start
    parts: list[Part] = []
    for place, part in enumerate(shown.parts):
        if not isinstance(part, Text):
            parts.append(part)
            continue
        kept = (part.text[start:end] for at, start, end in sorted(chosen) if at == place)
        # Providers refuse empty texts.
        if not _is_marker(part) and (text := "".join(kept).strip()):
            parts.append(replace(part, text=text))
    whole = replace(standing, tokens=count_message(message, tokenizer), excerpt=None)
    kept_parts = replace(message, parts=tuple(parts))
    return _excerpt(whole, message, kept_parts, tokenizer, is_forced=True)


def _lines_by_importance(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the importance (0 is the highest), start and end of each line of a text."""
    for span in spans(text):
        start = span.start
        for line in text[span.start : span.end].splitlines(keepends=True):
            end = start + len(line)
            if span.kind == "person":
                yield 0, start, end
            else:
                yield 1 if find_rules(line.strip("-*#> \t\n")) else 2, start, end
            start = end


def _excerpt(
    standing: Standing,
    message: Message,
    kept: Message,
    tokenizer: str,
    *,
    is_forced: bool = False,
) -> Standing:
    """Return the standing message with a part of it, if that and its marker are shorter."""
    if kept is message or kept.parts == message.parts:
        return standing
    missing = standing.tokens - count_message(kept, tokenizer)
    marker = Text(_LEFT_OUT.format(tokens=max(0, missing)))
    excerpt = replace(kept, parts=(*kept.parts, marker))
    tokens = count_message(excerpt, tokenizer)
    if tokens > standing.tokens - _SMALLEST_GAIN and not is_forced:
        return standing
    return replace(standing, tokens=tokens, excerpt=excerpt)


def _without_pasted(standing: Standing, message: Message, tokenizer: str) -> Standing:
    """Return a long message without the blocks of code or files that it quotes."""
    shown = standing.excerpt or message
    parts: list[Part] = []
    for part in shown.parts:
        if not isinstance(part, Text):
            parts.append(part)
        elif text := FENCED_BLOCK.sub("\n", part.text).strip():
            parts.append(part if text == part.text else replace(part, text=text))
    if parts == list(shown.parts) or not any(isinstance(part, Text) for part in parts):
        return standing
    kept = replace(message, parts=tuple(part for part in parts if not _is_marker(part)))
    whole = replace(standing, tokens=count_message(message, tokenizer), excerpt=None)
    return _excerpt(whole, message, kept, tokenizer)


def _is_marker(part: Part) -> bool:
    return isinstance(part, Text) and bool(_EXCERPT.fullmatch(part.text))


def _without_harness(message: Message) -> Message:
    """Return the message without the text that a client added to the person's words."""
    if not any(isinstance(part, Text) and _has_harness(part.text) for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if not isinstance(part, Text):
            parts.append(part)
            continue
        if not _has_harness(part.text):
            parts.append(part)
            continue
        found = spans(part.text)
        kept = [part.text[span.start : span.end] for span in found if span.kind != "harness"]
        text = "\n\n".join(filter(None, (each.strip() for each in kept)))
        if text:
            parts.append(replace(part, text=text))
    return replace(message, parts=tuple(parts))


def _has_harness(text: str) -> bool:
    return any(span.kind == "harness" for span in spans(text))


def _without_summary(message: Message) -> Message:
    """Return the message without a summary of ours among its texts."""
    if not any(map(_is_summary_text, message.parts)):
        return message
    parts = tuple(part for part in message.parts if not _is_summary_text(part))
    return replace(message, parts=parts)


def after_instructions(retention: Retention, messages: Sequence[Message]) -> Retention:
    """Return the retention with `keep_first` counted after the leading instructions."""
    leading = sum(1 for _ in takewhile(is_instruction, messages))
    return replace(retention, keep_first=leading + retention.keep_first)


def is_instruction(message: Message) -> bool:
    """Return True for a system message that is no summary."""
    return message.role == "system" and not has_summary(message)


def has_summary(message: Message) -> bool:
    """Return True if the message begins with a summary of ours."""
    first = next((part for part in message.parts if isinstance(part, Text)), None)
    return first is not None and _is_summary_text(first)


def _is_summary_text(part: Part) -> bool:
    return isinstance(part, Text) and part.text.startswith(HEADING)
