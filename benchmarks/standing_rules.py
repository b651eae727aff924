"""Rules that a user states: how many are still in view after 1, 6 and 10 compressions.

    python benchmarks/standing_rules.py [--sessions 30] [--json FILE]

194 rules of `rules/planted.txt` are put into recorded sessions, and 6 of `rules/recorded.tsv` are
there already. A rule stands at the start, in the middle or at the end of a message that a person
typed, or after a long text of the same person. Each session is stored, a third of it at first, the
rest in nine parts, and compressed after each part by the built-in summarizer. It goes on with other
recorded sessions until ten compressions have changed it. Its model's window is a quarter of the
session, at least 16,000 tokens. A rule is in view if the view's text has it word for word, tool
results left out.

- withdrawn: 20 rules that a later message takes back. Wrong is a view with the rule and without
  the message that takes it back.
- decoys: 20 rule-like sentences in tool results, 20 in a file that a long message quotes. Wrong is
  a view that shows the sentence outside its tool result or file: in another message, in an excerpt
  of the message, or below a heading of the summary that speaks of the user, rules or constraints.
- recognised: the rules and 105 other sentences (`rules/plain.txt`) given to `find_rules` one by one
  and inside a text; and 275 sentences in 20 languages of `tests/text/rule_sentences_later.tsv`,
  which neither the cues nor the weights were made with. False alarms are counted against all that
  is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

from recorded import MEETINGS, all_sets, conversations
from typed_text import CODING, ViewText, typed_texts

import enfold
from enfold.history import cut_points
from enfold.messages import Message, Text, ToolResult
from enfold.tokens import count_messages

RULES = Path(__file__).parent / "rules"
LATER = RULES.parents[1] / "tests" / "text" / "rule_sentences_later.tsv"
COMPRESSIONS = 10
MOST_PARTS = 24
"""Parts of a session at most: a session that is never compressed ends too."""
AGES = (1, 6, 10)
LEAST_TYPED = 3
LEAST_TOKENS = 3_000
LEAST_WINDOW = 16_000
WINDOW = 0.25
LONG = 6_000
"""Characters of a long text of the person before a rule, and of a quoted file."""
PLACES = ("start", "middle", "end", "own paragraph", "after long", "end", "start")
HEADING = re.compile(r"user|rule|constraint|instruction|standing|preference", re.IGNORECASE)
LONGEST_HEADING = 60
SUMMARY = "[Previous conversation summary]"


@dataclass(frozen=True, slots=True)
class Planted:
    """A sentence and the message that has it."""

    text: str
    index: int
    kind: str
    """rule, withdrawn, withdrawal, decoy in a result or decoy in a file."""
    place: str = ""


@dataclass(slots=True)
class Planting:
    """A session with its sentences."""

    id: str
    messages: list[Message]
    typed: list[int]
    """The indexes of the messages that a person typed."""
    planted: list[Planted] = field(default_factory=list)

    def early(self, share: float) -> list[int]:
        """Return the typed messages in this share of the session, at least the first."""
        found = [index for index in self.typed if index < share * len(self.messages)]
        return found or self.typed[:1]


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--json", type=Path, help="write what was found, case by case")
    options = parser.parse_args()
    recognised = recognise()
    plantings = plant(choose(options.sessions))
    found: list[dict[str, Any]] = asyncio.run(run_all(plantings))
    print_rules(found)
    print_others(found)
    print_recognised(recognised)
    if options.json:
        options.json.write_text(
            json.dumps({"found": found, "recognised": recognised}, ensure_ascii=False, indent=1)
        )


def choose(count: int) -> list[Planting]:
    """Return the sessions: coding sessions first, then chats, each in the order of a hash."""
    names = [name for name in all_sets() if name not in MEETINGS]
    found: list[Planting] = []
    for id, conversation in conversations(names):
        typed = [index for index, _ in typed_texts(conversation.messages)]
        enough = sum(count_messages(conversation.messages)) >= LEAST_TOKENS
        if enough and len(typed) >= LEAST_TYPED:
            found.append(Planting(id, list(conversation.messages), typed))
    # Recorded rules stand in coding sessions, so those come first.
    found.sort(key=lambda each: (each.id.split("/")[0] not in CODING, _hash(each.id)))
    return found[:count]


def plant(sessions: list[Planting]) -> list[Planting]:
    """Put the rules, the withdrawn ones and the decoys into the sessions."""
    random = Random(13)
    filler = _filler()
    for name, rule in _rows("recorded.tsv"):
        for each in sessions:
            at = next((i for i in each.typed if rule in _text(each.messages[i])), None)
            if each.id.startswith(name) and at is not None:
                each.planted.append(Planted(rule, at, "rule", "recorded"))
                break
    for number, rule in enumerate(_lines("planted.txt")):
        session = sessions[number % len(sessions)]
        place = PLACES[number % len(PLACES)]
        at = random.choice(session.early((1 / 3, 2 / 3)[number % 2]))
        _insert(session, at, rule, place, filler)
        session.planted.append(Planted(rule, at, "rule", place))
    for number, (rule, withdrawal) in enumerate(_rows("withdrawn.tsv")):
        session = sessions[(number * 7) % len(sessions)]
        first = random.choice(session.early(1 / 3))
        later = [index for index in session.typed if index > first]
        if not later:
            first, later = session.typed[0], session.typed[1:]
        second = later[len(later) // 3]
        for text, at, kind in ((rule, first, "withdrawn"), (withdrawal, second, "withdrawal")):
            _insert(session, at, text, "end", filler)
            session.planted.append(Planted(text, at, kind, str(number)))
    for number, decoy in enumerate(_lines("decoys.txt")):
        session = sessions[(number * 3 + 1) % len(sessions)]
        at = session.early(1 / 2)[-1]
        text = next(filler)
        quoted = (
            f"\n\nThis is our file NOTES-{number}.md:\n\n```\n{text}\n{decoy}\n{text[::2]}\n```"
        )
        _insert(session, at, quoted, "end", filler)
        session.planted.append(Planted(decoy, at, "decoy in a file"))
        results = [i for i, m in enumerate(session.messages) if _result(m) is not None]
        early = [i for i in results if i < len(session.messages) / 2]
        if early:
            at = random.choice(early)
            line = f"{decoy} (note {number})"
            session.messages[at] = _with_line_in_result(session.messages[at], line)
            session.planted.append(Planted(line, at, "decoy in a result"))
    return sessions


def _insert(session: Planting, at: int, rule: str, place: str, filler: Iterator[str]) -> None:
    """Put a sentence into the typed text of a message."""
    message = session.messages[at]
    index, part = next(
        (i, p)
        for i, p in reversed(list(enumerate(message.parts)))
        if isinstance(p, Text) and list(typed_texts([Message("user", (p,))]))
    )
    text = part.text
    match place:
        case "start":
            text = f"{rule} {text}"
        case "end":
            text = f"{text} {rule}"
        case "own paragraph":
            text = f"{text}\n\n{rule}"
        case "after long":
            text = f"{text}\n\n{next(filler)}\n\n{rule}"
        case "middle":
            ends = [m.end() for m in re.finditer(r"[.!?。]\s", text)] or [len(text)]
            cut = ends[len(ends) // 2]
            text = f"{text[:cut].rstrip()} {rule} {text[cut:]}".rstrip()
    parts = (*message.parts[:index], replace(part, text=text), *message.parts[index + 1 :])
    session.messages[at] = replace(message, parts=parts, id=None)


def _with_line_in_result(message: Message, line: str) -> Message:
    place = _result(message)
    assert place is not None
    outer = message.parts[place]
    assert isinstance(outer, ToolResult)
    inner = list(outer.parts)
    at = next(i for i, p in enumerate(inner) if isinstance(p, Text))
    text = inner[at]
    assert isinstance(text, Text)
    lines = text.text.splitlines()
    lines.insert(len(lines) // 2, line)
    inner[at] = replace(text, text="\n".join(lines))
    changed = replace(outer, parts=tuple(inner))
    parts = (*message.parts[:place], changed, *message.parts[place + 1 :])
    return replace(message, parts=parts, id=None)


def _result(message: Message) -> int | None:
    """Return the place of a tool result with text."""
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolResult) and any(isinstance(p, Text) for p in part.parts):
            return index
    return None


async def run_all(sessions: Sequence[Planting]) -> list[dict[str, Any]]:
    """Chain the compressions of every session."""
    recorded = [
        [replace(message, id=None) for message in each.messages] for each in choose(len(sessions))
    ]
    found: list[dict[str, Any]] = []
    async with enfold.open("sqlite:///:memory:") as engine:
        for number, session in enumerate(sessions):
            more = recorded[number + 1 :] + recorded[:number]
            found += await run(engine, session, chain.from_iterable(more))
    return found


async def run(
    engine: enfold.Engine, planting: Planting, more: Iterator[Message]
) -> list[dict[str, Any]]:
    """Return for each sentence where it was found after each compression that followed it."""
    window = max(LEAST_WINDOW, int(WINDOW * sum(count_messages(planting.messages))))
    model = f"rules:window-{window}"
    await engine.models.edit(model, max_input=window, max_output=window)
    session = await engine.session(planting.id, model=model)
    stored_messages = 0
    views: list[tuple[int, tuple[Message, ...]]] = []
    failures: list[str] = []
    for part in islice(feed(planting.messages, more, window), MOST_PARTS):
        await session.append(*part)
        stored_messages += len(part)
        try:
            outcome = await session.compress(force=True)
            view = tuple((await session.prepare()).messages)
        except enfold.EnfoldError as error:
            failures.append(str(error))
            continue
        if outcome.compressed:
            views.append((stored_messages, view))
        if len(views) == COMPRESSIONS:
            break
    return [
        {
            "session": planting.id,
            "text": each.text,
            "kind": each.kind,
            "place": each.place,
            "message": each.index,
            "states": [
                state(view, each, planting.messages[each.index])
                for messages, view in views
                if messages > each.index
            ]
            or ["absent"],
            "compressions": len(views),
            "window": window,
            "failures": failures,
        }
        for each in planting.planted
    ]


def feed(
    messages: Sequence[Message], more: Iterator[Message], window: int
) -> Iterator[Sequence[Message]]:
    """Yield a third of the session, then nine parts, then other sessions in parts of half a window.

    Other sessions follow because a session may be too short for ten compressions.
    """
    for start, end in pairwise(parts(messages)):
        yield messages[start:end]
    held: list[Message] = []
    tokens = 0
    for message in more:
        # A part ends before a message of the user, never between a call and its result.
        is_turn = message.role == "user" and all(isinstance(p, Text) for p in message.parts)
        if is_turn and tokens > window / 2:
            yield held
            held, tokens = [], 0
        held.append(message)
        tokens += count_messages([message])[0]


def parts(messages: Sequence[Message]) -> list[int]:
    """Return where to cut: a third, then nine parts, at legal cut points."""
    points = cut_points(messages)
    first = len(messages) // 3
    cuts = [0]
    for part in range(COMPRESSIONS - 1):
        at = first + (len(messages) - first) * part // (COMPRESSIONS - 1)
        point = next((p for p in points if p >= max(at, cuts[-1] + 1)), len(messages))
        cuts.append(point)
    return list(dict.fromkeys([*cuts, len(messages)]))


def state(view: Sequence[Message], planted: Planted, original: Message) -> str:
    """Return where a view shows the sentence: absent, whole, excerpt, summary or headed."""
    whole = set(map(_text, view))
    holders = [message for message in view if ViewText([message]).has(planted.text)]
    if not holders:
        return "absent"
    if _text(original) in whole:
        return "whole"
    for message in holders:
        text = _text(message)
        if SUMMARY not in text and "summary" not in text[:200].lower():
            return "excerpt"
        if _below_heading(text, planted.text):
            return "headed"
    return "summary"


def _below_heading(text: str, sentence: str) -> bool:
    """True if the nearest heading above the sentence, or its own line, names the user or rules.

    A heading begins with a number sign or is short and ends with a colon; an item of a list is
    none. Of the sentence's own line the label counts, which precedes the first quotation mark.
    """
    before = text[: max(0, text.find(sentence))]
    line = text[text.rfind("\n", 0, len(before)) + 1 : len(before)]
    label = re.split(r"[`\"“]", line, maxsplit=1)[0]
    headings = [each for each in before.splitlines() if _is_heading(each)]
    return bool(HEADING.search(label)) or bool(headings and HEADING.search(headings[-1]))


def _is_heading(line: str) -> bool:
    is_short_lead = line.rstrip().endswith(":") and len(line) <= LONGEST_HEADING
    return line.startswith("#") or (is_short_lead and not line.startswith("- "))


def recognise() -> dict[str, Any]:
    """Give every rule and every other sentence to the classifier, alone and inside a text."""
    try:
        find_rules = import_module("enfold.text.rules").find_rules
    except ImportError:  # versions before the classifier
        return {}
    rules = [*_lines("planted.txt"), *(rule for _, rule in _rows("recorded.tsv"))]
    plain = _lines("plain.txt")
    missed: dict[str, list[str]] = {"alone": [], "in a text": []}
    alarms: dict[str, list[str]] = {"alone": [], "in a text": []}
    for number, rule in enumerate(rules):
        before, after = plain[number % len(plain)], plain[(number + 31) % len(plain)]
        for how, (lead, tail) in {
            "alone": ("", ""),
            "in a text": (f"{before} ", f" {after}"),
        }.items():
            text = f"{lead}{rule}{tail}"
            start, end = len(lead), len(lead) + len(rule)
            spans = [(span.start, span.end) for span in find_rules(text)]
            inside = [span for span in spans if span[0] < end - 1 and span[1] > start + 1]
            covered = sum(min(b, end) - max(a, start) for a, b in inside)
            if covered < 0.8 * (end - start):
                missed[how].append(rule)
            alarms[how] += [text[a:b] for a, b in spans if (a, b) not in inside]
    alarms["alone"] += [each for each in plain if find_rules(each)]
    later = [line.split("\t") for line in LATER.read_text(encoding="utf-8").splitlines()]
    kept = Counter(kind for kind, _, text in later if find_rules(text))
    return {
        "later": {"rules": sum(kind == "rule" for kind, *_ in later), "kept": dict(kept)},
        "rules": len(rules),
        "plain": len(plain),
        "missed": missed,
        "alarms": alarms,
    }


def print_rules(found: Sequence[dict[str, Any]]) -> None:
    """Print the shares of rules in view, by age."""
    rules = [each for each in found if each["kind"] == "rule"]
    print(f"{len(rules)} rules in {len({each['session'] for each in rules})} sessions, ", end="")
    done = {each["session"]: each["compressions"] for each in found}
    print(f"{sum(done.values())} compressions.\n")
    print("| rules in view, word for word | after 1 | after 6 | after 10 | at the end |")
    print("|---|--:|--:|--:|--:|")
    for place in ("", *sorted({each["place"] for each in rules})):
        chosen = [each for each in rules if place in ("", each["place"])]
        states = [each["states"] for each in chosen]
        cells = [_share([each[age - 1] for each in states if len(each) >= age]) for age in AGES]
        end = _share([each[-1] for each in states])
        print(f"| {place or 'all'} | {' | '.join(cells)} | {end} |")


def print_others(found: Sequence[dict[str, Any]]) -> None:
    """Print withdrawn rules and decoys."""
    by_pair: dict[str, dict[str, str]] = {}
    for each in found:
        if each["kind"] in ("withdrawn", "withdrawal"):
            by_pair.setdefault(each["place"], {})[each["kind"]] = each["states"][-1]
    kinds = Counter(
        "rule alone"
        if pair["withdrawn"] != "absent" and pair["withdrawal"] == "absent"
        else "both"
        if pair["withdrawn"] != "absent"
        else "neither or withdrawal only"
        for pair in by_pair.values()
    )
    print(f"\nWithdrawn rules after the last compression: {dict(kinds)} (wrong: rule alone).")
    for kind in ("decoy in a result", "decoy in a file"):
        last = Counter(each["states"][-1] for each in found if each["kind"] == kind)
        print(f"{kind}: {dict(last)} (wrong: excerpt, headed).")
    failures = Counter(text for each in found for text in set(each["failures"]))
    for text, count in failures.most_common(5):
        print(f"failure ({count} sentences): {text[:200]}")


def print_recognised(recognised: dict[str, Any]) -> None:
    """Print how many rules the classifier recognises."""
    if not recognised:
        print("\nNo classifier of rules.")
        return
    print()
    later, kept = recognised["later"], recognised["later"]["kept"]
    print(
        f"recognised in twenty languages: {kept['rule'] / later['rules']:.1%}; false alarms "
        f"{kept.get('other', 0) / sum(kept.values()):.1%} of what is kept."
    )
    for how, missed in recognised["missed"].items():
        hits = recognised["rules"] - len(missed)
        alarms = len(recognised["alarms"][how])
        print(
            f"recognised {how}: {hits / recognised['rules']:.1%}; false alarms "
            f"{alarms / max(1, alarms + hits):.1%} of what is kept."
        )


def _share(states: Sequence[str]) -> str:
    if not states:
        return "–"
    return f"{sum(each != 'absent' for each in states) / len(states):.1%} of {len(states)}"


def _filler() -> Iterator[str]:
    """Yield long texts that people said, from the meetings."""
    found = [each for _, each in conversations(["qmsum"])]
    while True:
        for meeting in found:
            text = " ".join(_text(message) for message in meeting.messages)
            yield text[LONG : 2 * LONG].strip()


def _lines(name: str) -> list[str]:
    return (RULES / name).read_text(encoding="utf-8").splitlines()


def _rows(name: str) -> list[tuple[str, str]]:
    return [(first, second) for first, second in (line.split("\t") for line in _lines(name))]


def _text(message: Message) -> str:
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text))


def _hash(id: str) -> str:
    return sha256(id.encode()).hexdigest()


if __name__ == "__main__":
    main()
