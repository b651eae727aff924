"""How many planted inventions are found in summaries, and how often honest ones raise an alarm.

    python benchmarks/inventions.py [--planted 1000] [--seed 1] [--skip 0] [--show 20]

Honest summaries come from four sources: the built-in summarizer; the same rewritten as a person
would (numbers with other separators, paths without folders, names in another case, dates in words,
hashes cut short, sentences quoted without their first word); answers that people wrote about
recorded meetings; and the summaries that a coding agent's own model wrote in the middle of recorded
sessions. Nothing in the first two is invented by construction, so each alarm is a false one; the
last two may contain true inventions, which count as false alarms all the same.

Into honest summaries one invention each is planted: a path, number, identifier or date of the
summary with some characters changed, or a sentence of another conversation of the same set as a
quotation. The changed text occurs nowhere in the input, which a plain search of the input checks
and not the code that is measured. A plant is found if the report names it.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from enfold.jsontext import loads
from enfold.messages import Message, text_of
from enfold.receipt import source_of
from enfold.summaries import SummaryRequest
from enfold.summaries.local import summarize
from enfold.text.grammar import ItemClass
from enfold.text.inventions import SourceText, find_inventions, quotations
from enfold.text.items import extract
from enfold.transcripts import read

sys.path.insert(0, str(Path(__file__).parent))
from recorded import DATA

MOST = 12
"""Conversations of each file."""
LIMITS = (300, 1_200)
CONTINUED = "continued from a previous conversation"
"""In the message in which a coding agent hands its own summary to itself."""
MONTHS = "January February March April May June July August September October November December"


@dataclass(frozen=True)
class Sample:
    """A summary with the messages that it is of."""

    kind: str
    file: str
    text: str
    source: SourceText
    raw: str
    """The input as one text in lower case."""


def samples(folder: Path, skip: int, chance: random.Random) -> Iterator[Sample]:
    """Yield all honest summaries, without the first conversations of each file."""
    for file in sorted(folder.glob("*.jsonl")):
        if file.stem == "qmsum_train":
            continue
        for transcript in islice(read(file), skip, skip + MOST):
            messages = transcript.conversation().messages
            source, raw = SourceText(source_of(messages)), "\n".join(source_of(messages)).lower()
            for limit in LIMITS:
                text = summarize(SummaryRequest(messages, max_tokens=limit)).text
                yield Sample("built-in", file.stem, text, source, raw)
                yield Sample("rewritten", file.stem, rewritten(text, chance), source, raw)
            yield from _by_models(file.stem, messages)
    yield from _by_people(folder, skip)


def _by_models(file: str, messages: tuple[Message, ...]) -> Iterator[Sample]:
    for index, message in enumerate(messages):
        text = text_of(message.parts)
        if message.role == "user" and CONTINUED in text[:400] and index:
            before = messages[:index]
            raw = "\n".join(source_of(before)).lower()
            yield Sample("by a model", file, text, SourceText(source_of(before)), raw)


def _by_people(folder: Path, skip: int) -> Iterator[Sample]:
    for file in sorted(folder.glob("qmsum*.jsonl")):
        lines = file.read_bytes().splitlines()
        for line, transcript in islice(zip(lines, read(file), strict=True), skip, None):
            messages = transcript.conversation().messages
            source, raw = SourceText(source_of(messages)), "\n".join(source_of(messages)).lower()
            for probe in loads(line)["probes"]:
                if probe.get("answer"):
                    yield Sample("by a person", file.stem, probe["answer"], source, raw)


# Honest rewriting


def rewritten(text: str, chance: random.Random) -> str:
    """Return the summary with its items in other forms and its lines in another order.

    Words of the user become a quotation without the first word.
    """
    lines = text.splitlines()
    for index, line in enumerate(lines):
        words = line.removeprefix("- User: ").split()
        is_typed = line.startswith("- User: ") and '"' not in line and "…" not in line
        if is_typed and 8 <= len(words) <= 40 and chance.random() < 0.5:
            lines[index] = f'- The user said: "{" ".join(words[1:])}"'
    chance.shuffle(lines)
    text = "\n".join(lines)
    items = extract(text)
    for kind, change in REWRITES.items():
        for item in items[kind]:
            if chance.random() < 0.5:
                whole = rf"(?<![\w/.@{{-]){re.escape(item)}(?![\w/.@{{-])"
                text = re.sub(whole, change(item).replace("\\", "\\\\"), text)
    text = re.sub(r"(?<![\w.,])(\d{1,3}),(\d{3})(?![\w.,])", r"\1\2", text)
    return re.sub(r"(?<![\w.,/:#-])(\d{2,3})(\d{3})(?![\w.,/:-])", r"\1,\2", text)


def _iso_in_words(date: str) -> str:
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", date)
    if not found or not 1 <= int(found[2]) <= 12:
        return date
    return f"{int(found[3])} {MONTHS.split()[int(found[2]) - 1]} {found[1]}"


def _hash_cut(item: str) -> str:
    return item[:7] if re.fullmatch(r"[0-9a-f]{12,40}", item) else item.upper()


REWRITES: dict[ItemClass, Callable[[str], str]] = {
    "path": lambda item: "/".join(item.strip("/").split("/")[-2:]),
    "identifier": _hash_cut,
    "date": _iso_in_words,
    "number": lambda item: re.sub(r"(\d) ([a-zA-Z]+)$", r"\1\2", item),
}


# Planting


@dataclass(frozen=True)
class Plant:
    """An invention in a summary."""

    kind: str
    item: str
    text: str


def plant(sample: Sample, others: list[str], chance: random.Random) -> Plant | None:
    """Return the summary with one invention; None if none of the chosen kind fits."""
    kinds: tuple[ItemClass, ...] = ("path", "number", "identifier", "date")
    if chance.random() < 1 / (len(kinds) + 1):
        made_up = chance.choice(others)
        if _shares_words(made_up, sample.raw):
            return None
        return Plant("quotation", made_up, f'{sample.text}\n- The user said: "{made_up}"')
    kind = chance.choice(kinds)
    items = [item for item in extract(sample.text)[kind] if _is_plantable(kind, item)]
    if not items:
        return None
    item = chance.choice(items)
    for _ in range(20):
        changed = _changed(item, kind, chance)
        if not _is_in(changed, kind, sample.raw):
            return Plant(kind, changed, sample.text.replace(item, changed))
    return None


def _shares_words(sentence: str, raw: str) -> bool:
    """Return True if four words in a row, or eight characters without spaces, are in the input."""
    words = re.findall(r"\w+", sentence.lower())
    text = " ".join(re.findall(r"\w+", raw))
    if len(words) < 6:
        return len(sentence) < 20 or any(
            sentence[at : at + 8].lower() in raw for at in range(len(sentence) - 7)
        )
    return any(" ".join(words[at : at + 4]) in text for at in range(len(words) - 3))


def _is_plantable(kind: str, item: str) -> bool:
    if kind == "date":
        return re.fullmatch(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d.*", item) is not None
    return kind != "number" or int(re.sub(r"\D", "", item) or 0) > 20


def _changed(item: str, kind: str, chance: random.Random) -> str:
    """Return the item with one to three characters changed, or a path with another name."""
    if kind == "path" and chance.random() < 0.4:
        folder, slash, name = item.rstrip("/").rpartition("/")
        stem, dot, ending = name.rpartition(".")
        made = "".join(chance.sample("abcdefghiklmnoprstuvw", 6))
        return f"{folder}{slash}{made}{dot}{ending}" if stem else f"{folder}{slash}{made}"
    if kind == "date" and (found := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", item)):
        return f"20{chance.randint(10, 29)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    if kind == "date" and (found := re.fullmatch(r"(\d{1,2}):(\d\d)(.*)", item)):
        return f"{chance.randint(1, 12)}:{chance.randint(0, 59):02}{found[3]}"
    places = [at for at, each in enumerate(item) if each.isalnum()]
    if kind in {"number", "date"}:
        places = [at for at in places if item[at].isdigit()]
    chosen = chance.sample(places, min(len(places), chance.randint(1, 3)))
    letters = list(item)
    for at in chosen:
        letters[at] = _other(letters[at], chance)
    return "".join(letters)


def _other(character: str, chance: random.Random) -> str:
    if character.isdigit():
        return chance.choice([each for each in "123456789" if each != character])
    small = "abcdefghiklmnoprstuvwxyz"
    other = chance.choice([each for each in small if each != character.lower()])
    return other.upper() if character.isupper() else other


def _is_in(item: str, kind: str, raw: str) -> bool:
    """Return True if the input has the item, or for a number its digits anywhere."""
    if item.lower() in raw or kind != "number":
        return item.lower() in raw
    numbers = re.findall(r"\d[\d.,:]*\d|\d\d", re.sub(r"\.0+\b", "", item))
    return any(re.search(rf"(?<!\d){re.escape(each)}(?!\d)", raw) for each in numbers)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--planted", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="first conversations to leave out")
    parser.add_argument("--show", type=int, default=0, help="misses and false alarms to print")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    honest = list(samples(options.data, options.skip, chance))
    alarms = _false_alarms(honest, options.show)
    print("\n| planted | number | found | share |\n|---|--:|--:|--:|")
    found, planted = _planted(honest, options.planted, chance, alarms, options.show)
    for kind in (*sorted(planted), "all"):
        number = planted.total() if kind == "all" else planted[kind]
        hits = found.total() if kind == "all" else found[kind]
        print(f"| {kind} | {number:,} | {hits:,} | {hits / max(1, number):.1%} |")


def _false_alarms(honest: Iterable[Sample], show: int) -> dict[int, set[str]]:
    """Print the false alarms of each kind of summary; return what each summary raises."""
    raised: dict[int, set[str]] = {}
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for sample in honest:
        found = find_inventions(sample.text, sample.source)
        raised[id(sample)] = {item for _, item in found}
        row = rows[sample.kind]
        row["summaries"] += 1
        row["items"] += sum(map(len, extract(sample.text).values()))
        row["items"] += sum(1 for _ in quotations(sample.text))
        row["alarms"] += len(found)
        row["with alarms"] += bool(found)
        for kind, item in found[:1]:
            if show > 0:
                show -= 1
                print(f"alarm ({sample.kind}, {sample.file}): {kind} {item[:100]!r}")
    print("\n| honest summaries | number | items | false alarms | share | summaries with one |")
    print("|---|--:|--:|--:|--:|--:|")
    rows["built-in and rewritten"] = rows["built-in"] + rows["rewritten"]
    for name, row in rows.items():
        share = row["alarms"] / max(1, row["items"])
        print(
            f"| {name} | {row['summaries']:,} | {row['items']:,} | {row['alarms']:,} | "
            f"{share:.2%} | {row['with alarms'] / row['summaries']:.1%} |"
        )
    return raised


def _planted(
    honest: list[Sample], wanted: int, chance: random.Random, alarms: dict[int, set[str]], show: int
) -> tuple[Counter[str], Counter[str]]:
    found: Counter[str] = Counter()
    planted: Counter[str] = Counter()
    sentences: dict[str, list[str]] = defaultdict(list)
    for sample in honest:
        for line in sample.text.splitlines():
            bare = line.removeprefix("- ").removeprefix("User: ")
            is_prose = not re.search(r'["…→`:]', bare)
            if 40 <= len(bare) <= 200 and is_prose:
                sentences[sample.file].append(bare)
    while planted.total() < wanted:
        sample = chance.choice(honest)
        made = plant(sample, sentences[sample.file], chance)
        if made is None:
            continue
        planted[made.kind] += 1
        new = [
            item
            for _, item in find_inventions(made.text, sample.source)
            if item not in alarms[id(sample)]
        ]
        is_found = any(item in made.item or made.item in item for item in new)
        found[made.kind] += is_found
        if not is_found and show > 0:
            show -= 1
            print(f"missed ({sample.kind}, {sample.file}): {made.kind} {made.item[:100]!r}")
    return found, planted


if __name__ == "__main__":
    main()
