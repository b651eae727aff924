"""Rules: the sentences in which a person states what is to hold from now on.

A sentence is scored by its cues, which `rules.toml` lists by language: words of duration and
frequency, duty and prohibition, scope, wishes addressed to the reader, orders; and against it words
of questions, narration, guesses and statements about others. A sentence with too few cues is a
rule if its wording is like that of rules (`likeness`). Quoted text, code, fences and the text of
clients have no cues. Corrections and decisions are found in the same way.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from struct import unpack
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from enfold.text import TextMemo, harness
from enfold.text.likeness import likeness
from enfold.text.questions import stem
from enfold.text.sentences import is_content_word, whole_sentences
from enfold.text.words import (
    COLONS,
    COMMAS,
    QUESTION_MARKS,
    SEMICOLONS,
    STOPS,
    UNSPACED,
    UNSPACED_PAUSES,
    UNSPACED_STOPS,
    texts_of_terms,
)

RuleKind: TypeAlias = Literal["rule", "correction", "decision"]


class RuleSpan(NamedTuple):
    """A sentence that states a rule, a correction or a decision, with what it refers to."""

    start: int
    end: int
    kind: RuleKind


_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e\u200c"
"""Vowel signs and joiners, which belong to a word."""
_TOKEN = re.compile(rf"[^\W_](?:[\w{_MARKS}'\-]*[\w{_MARKS}])?|[^\w\s]")
_ASCII_TOKEN = re.compile(r"[a-z0-9]\w*+(?:['\-]++\w++)*+|[^\w\s\x1c-\x1f]", re.ASCII)
"""The same for a text in lower case without other letters, twice as fast."""
_SHORT_VOWELS = re.compile("[\u064b-\u0652]")
"""Arabic marks that most people leave out."""
_ELISION = re.compile(r"(\w{1,2}|dell|nell|sull|all|dall|quest|jusqu|lorsqu)'(\w{3,})")
"""A short French or Italian word and the word that it is joined to."""
_LINE = re.compile(r"[^\n]*\n?")
_BULLET = re.compile(r"[ \t]*(?:[-*•+–]|\(?\d{1,3}[.)]|[a-zA-Z][.)]|\[[ xX]\])\s+")
_HEADING = re.compile(r"[ \t]*#{1,6}\s+")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_NOT_PROSE = re.compile(r"[ \t]*(?:[>|}<]|\{(?!\w+\} ))|\t| {8}")
_CODE = re.compile(
    r"[;{}]\s*$|\w\([^)]*\)\s*[;{:]|\w\[\w*\]|[=!]=|=>|->|::|</|^\s*(?://|\$ )|\w = \w|<\|\w+\|>"
)
"""A line of code outside a fence, or one with control tokens of a model."""
_QUOTED = re.compile(
    r"https?://\S+|`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|«[^»\n]+»|„[^“”\n]+[“”]|「[^」\n]+」|『[^』\n]+』"
)
_PLACEHOLDER = " \ufffc "
"""Stands for quoted text, addresses and code, which have no cues."""
_PAUSES = f"{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{UNSPACED_STOPS}{''.join(COLONS)}"
_PAUSE = frozenset(f'{_PAUSES}.!…—–()"“”')
_CASUAL_END = re.compile(r"(?<=[?!] )(?=[a-z])|(?<=[a-z]{3}\. )(?=[a-z])")
_MAY_END_CASUALLY = re.compile(r"[?!.] [a-z]")
_CLAUSE = re.compile(f"[{_PAUSES}.]")
_ONE_SENTENCE = re.compile(r"[A-Za-z][\w',-]*+(?: [\w',-]++)*+[.!?]?", re.ASCII)
"""A text of words in ASCII without marks that divide, quote or format it."""
_MAY_BE_CODE = re.compile(r"[;{}(\[=<>$]|::|//")
"""Marks of which a line of code has one. Most lines have none, and this search is faster."""
_QUESTION_ENDS = tuple(QUESTION_MARKS)
_SECOND_CAPITALIZED = re.compile(r"\w+ (?:[A-Z\u00c0-\u00de\u0386-\u03ab\u0404-\u042f])\w+ \w")
_CLOSING = "\"'”»)*_ "

_VOTE = 0.5
"""What a word that begins a cue tells of the language; a common word tells twice as much."""
_LANE = 16
"""Bits in which the votes for a language are counted."""
_MOST_WORDS = 8_192
"""Words whose entries are remembered."""
_SAMPLE = 2000
"""Characters that tell the language of a text."""
_GAP = 6
_UNSPACED_GAP = 12
_LONG_LINE = 400
"""Characters. A longer line has several sentences."""
_MIN_WRAPPED_LENGTH = 50
"""Characters of a line that may continue in the next one."""
_MAX_POINTER_DISTANCE = 5
"""Words of a sentence among which a pronoun refers to the sentence before."""
_MOST_SERIES = 4
"""Series of texts whose rules are remembered."""
_MOST_SUBJECTS = 1_000
"""Subjects with a common term that a withdrawal is compared with, the newest first."""
_MAX_DROPPED = 2
"""Words of a rule that a later rule about the same subject may replace."""
_RULE = 3.0
_CORRECTION = 2.5
_LIKENESS = 1.45
"""Likeness of a sentence that is a rule by its wording."""
_LIKENESS_IN_LONG_TEXT = 1.8
"""Of a long text most sentences are no rules."""
_POSSIBLE = -0.5
"""Likeness of a sentence that may be a rule."""
_LONG_TEXT = 2000
"""Characters."""
_MOST_WORDED = 18
"""Words of a sentence whose wording is judged."""
_CUES_IN_LIKENESS = 0.2
"""Weight of the cues in it."""
_SHORT = 10
"""Words of a short sentence."""
_VERY_SHORT = 8
_LONG = 35
_EARLY = 3
"""Words before the cue of a decision in its clause."""

_DIRECTIVES = ("certain", "must", "forbid", "none", "wish", "consult", "act", "stance", "lasting")
"""Cues that address the reader; a rule has at least one."""
_ADDED = (*_DIRECTIVES, "always", "only", "own", "you", "when", "generic", "request", "guess")
"""Cues that count once, however often they occur."""
_DUTIES = ("must", "forbid", "wish", "certain")
_NO_TOPIC = frozenset({"subject", "you", "when", "question", "must"})
"""Cues at the beginning of sentences that do not speak of all things of a kind."""
_BEFORE_VERBS = frozenset({"always", "only", "lasting", "request", "forbid"})
_UNHIDDEN = frozenset(
    {
        "guess",
        "past",
        "report",
        "lasting",
        "question",
        "correct",
        "decide",
        "revoke",
        "allow",
        "request",
    }
)
"""Cues that count inside a phrase which only looks like a rule."""
_HIDING = frozenset({"guess", "past"})
"""Cues of such phrases."""
_CHANGES = ("revoke", "allow", "instead", "back")
"""Cues of sentences that withdraw or replace a rule."""
_NO_SUBJECT = (
    *("lasting", "always", "must", "scope", "wish", "you", "request", "generic", "revoke", "allow"),
    *("instead", "correct", "decide", "subject", "question", "common"),
)
"""Cues whose words do not name the subject of a rule."""
_WHOLE_PHRASES = frozenset({"manner", "revoke", "allow", "back"})
"""Cues of which the words of longer phrases count too."""

_SCRIPTS = (
    (re.compile("[\u3040-\u30ff]"), "ja"),
    (re.compile("[\u4e00-\u9fff]"), "zh"),
    (re.compile("[\u0e00-\u0e7f]"), "th"),
    (re.compile("[\uac00-\ud7a3]"), "ko"),
    (re.compile("[\u0456\u0457\u0454\u0491]"), "uk"),
    (re.compile("[\u0400-\u04ff]"), "ru"),
    (re.compile("[\u067e\u0686\u0698\u06af\u06cc\u06a9]"), "fa"),
    (re.compile("[\u0600-\u06ff]"), "ar"),
    (re.compile("[\u0590-\u05ff]"), "he"),
    (re.compile("[\u0900-\u097f]"), "hi"),
    (re.compile("[\u0370-\u03ff]"), "el"),
)
"""Letters that tell a language; the first that occurs decides."""
_BY_SCRIPT = frozenset(language for _, language in _SCRIPTS)
_WITHOUT_SPACES = frozenset({"zh", "ja", "th"})
_VERB_LAST = frozenset({"ja", "ko", "hi", "tr"})
_VERB_FIRST = {
    "de": (("",), 3),
    "nl": (("",), 3),
    "sv": (("",), 3),
    "es": (("a", "e"), 4),
    "pt": (("a", "e"), 4),
    "it": (("a", "i"), 4),
    "fr": (("e", "s", "z"), 4),
}
"""Languages in which "always" follows the verb of an order: the endings of such verbs, and the
number of words of a sentence that is too short to tell an order from a statement."""


class _Entry(NamedTuple):
    cue: str
    first: str
    rest: tuple[str, ...]
    """The words after the first."""
    at_start: bool
    required_word: str
    """A word of the cue after its first: a sentence without it has no such cue. May be empty."""


class _WordCues(NamedTuple):
    """The cues that begin with a word."""

    entries: tuple[_Entry, ...]
    """Entries whose first word stands for this one."""
    pairs: Mapping[str, list[_Entry]]
    """Entries that begin with this word and another one, by that."""
    is_break: bool
    """True if a clause begins after the word."""
    is_filler: bool


_NO_CUES = _WordCues((), {}, is_break=False, is_filler=False)


@dataclass(slots=True)
class _Lexicon:
    """The cues of one language, found by their first words."""

    fillers: frozenset[str]
    joints: frozenset[str]
    entries: dict[str, list[_Entry]] = field(default_factory=lambda: defaultdict(list))
    """By the first word."""
    pairs: dict[str, dict[str, list[_Entry]]] = field(default_factory=dict)
    """By the first word and the second."""
    stems: dict[str, list[_Entry]] = field(default_factory=lambda: defaultdict(list))
    """By the first letter of the first word."""
    endings: dict[str, list[_Entry]] = field(default_factory=lambda: defaultdict(list))
    """By the last letter of the first word."""
    unspaced: dict[str, list[_UnspacedEntry]] = field(default_factory=lambda: defaultdict(list))
    """By the first character."""
    guesses: list[_UnspacedEntry] = field(default_factory=list)
    """Of a language without spaces: phrases that only look like a rule."""
    begun: dict[str, _WordCues] = field(default_factory=dict)
    """The cues of words that occurred."""

    def beginning_with(self, word: str) -> _WordCues:
        """Return what a word that did not occur before may begin."""
        inflected = (*self.stems.get(word[0], ()), *self.endings.get(word[-1], ()))
        entries = (
            *self.entries.get(word, ()),
            *(entry for entry in inflected if _is_word(entry.first, word)),
        )
        found = _WordCues(
            entries,
            self.pairs.get(word, {}),
            is_break=word in _PAUSE or word in self.joints,
            is_filler=word in self.fillers,
        )
        if len(self.begun) >= _MOST_WORDS:
            self.begun = {}
        if found == _NO_CUES:
            found = _NO_CUES
        self.begun[word] = found
        return found

    def add(self, found: _Entry) -> None:
        """Add an entry of a language with spaces."""
        first, rest = found.first, found.rest
        if first.startswith("*"):
            self.endings[first[-1]].append(found)
        elif first.endswith("*"):
            self.stems[first[0]].append(found)
        elif rest and rest[0] != ".." and "*" not in rest[0]:
            self.pairs.setdefault(first, {}).setdefault(rest[0], []).append(found)
        else:
            self.entries[first].append(found)


class _UnspacedEntry(NamedTuple):
    """An entry of a language without spaces."""

    cue: str
    entry: str
    text: str
    """Characters that a sentence with the entry has."""
    pattern: re.Pattern[str] | None
    """None if the text is the entry."""

    def find(self, sentence: str) -> int:
        """Return where the entry begins in a sentence, -1 if it does not occur."""
        at = sentence.find(self.text)
        if at < 0 or self.pattern is None:
            return at
        match = self.pattern.search(sentence)
        return match.start() if match else -1


class _RuleTables(NamedTuple):
    weights: dict[str, float]
    specific: frozenset[str]
    pointers: frozenset[str]
    cues: dict[str, dict[str, list[str]]]
    """The entries of each cue by language, as `rules.toml` lists them."""
    words: dict[str, list[str]]
    """Lists of words that all languages share."""
    votes: dict[str, tuple[tuple[str, float], ...]]
    """The languages in which a word is common or a cue, with how much that tells."""
    voting: tuple[str, ...]
    """The languages that words vote for."""
    lanes: dict[str, int]
    """The votes of a word as one number: each language has its own bits, so that a sum adds up the
    votes for all of them."""
    values: frozenset[str]
    """Stems of words of language, style and format."""
    no_subject: frozenset[str]
    """Words of cues that do not name the subject of a rule."""
    instead: tuple[str, ...]
    """Phrases that the old value follows, longest first."""
    back: frozenset[str]
    """Stems of words of phrases that a value that held before follows."""
    alternatives: tuple[frozenset[str], ...]
    """Stems of values of which one holds at a time."""


@cache
def _tables() -> _RuleTables:
    """Return the tables; threads that need them at once wait for the first one to build them."""
    with _BUILDING:
        return _build_tables()


_BUILDING = Lock()


@cache
def _build_tables() -> _RuleTables:
    path = files(__package__).joinpath("rules.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    weights, words = table.pop("weights"), table.pop("words")
    alternatives = words.pop("alternatives")
    terms: dict[str, set[str]] = defaultdict(set)
    for cues in table.values():
        for cue in ("manner", "back", *_NO_SUBJECT):
            # The words of a phrase ("final answer") may name a subject elsewhere.
            entries = cues.get(cue, ())
            single = (each for each in entries if cue in _WHOLE_PHRASES or " " not in each)
            terms[cue].update(texts_of_terms("\n".join(single)))
    instead = {entry for cues in table.values() for entry in cues["instead"] if ".." not in entry}
    votes, voting = _votes(table), tuple(name for name in table if name not in _BY_SCRIPT)
    return _RuleTables(
        weights,
        frozenset(words["specific"]),
        frozenset(words["pointers"]),
        table,
        words,
        votes,
        voting,
        {
            word: sum(int(vote / _VOTE) << (_LANE * voting.index(name)) for name, vote in found)
            for word, found in votes.items()
        },
        frozenset(map(stem, terms["manner"])),
        frozenset().union(*(terms[cue] for cue in _NO_SUBJECT)),
        tuple(sorted(instead, key=lambda phrase: (-len(phrase), phrase))),
        frozenset(map(stem, terms["back"])),
        tuple(frozenset(_content_stems(" ".join(each))) for each in alternatives),
    )


def _votes(table: dict[str, dict[str, list[str]]]) -> dict[str, tuple[tuple[str, float], ...]]:
    votes: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for language, cues in table.items():
        if language in _BY_SCRIPT:
            continue
        for word in cues["common"]:
            votes[word][language] = 1
        first = {next(_entry_words(entry.lstrip("^"))) for each in cues.values() for entry in each}
        for word in first:
            votes[word][language] += _VOTE
    return {word: tuple(languages.items()) for word, languages in votes.items()}


@cache
def _lexicon(language: str) -> _Lexicon:
    """Return the cues of a language. Most conversations need those of one or two."""
    tables = _tables()
    cues, words = tables.cues[language], tables.words
    subjects = {entry.removeprefix("^") for entry in cues["subject"]}
    lexicon = _Lexicon(
        frozenset(words["fillers"]) - subjects, frozenset(words["joints"]) - subjects
    )
    for cue, entries in cues.items():
        for entry in entries if cue != "common" else ():
            if language in _WITHOUT_SPACES:
                text = entry.removeprefix("^").partition("..")[0].strip()
                unspaced = _UnspacedEntry(cue, entry, text, _unspaced_pattern(entry))
                if cue == "guess":
                    lexicon.guesses.append(unspaced)
                else:
                    lexicon.unspaced[text[0]].append(unspaced)
            else:
                first, *rest = _entry_words(entry.removeprefix("^"))
                literal = (word for word in rest if word != ".." and "*" not in word)
                at_start, required = entry.startswith("^"), next(literal, "")
                lexicon.add(_Entry(cue, first, tuple(rest), at_start, required))
    return lexicon


def _unspaced_pattern(entry: str) -> re.Pattern[str] | None:
    if ".." in entry:
        first, last = (re.escape(part.strip()) for part in entry.split(".."))
        return re.compile(f"{first}.{{0,{_UNSPACED_GAP}}}{last}")
    if entry.startswith("^"):
        return re.compile(rf"(?:^|[{_PAUSES}])\s*{re.escape(entry[1:])}")
    return None


def _entry_words(entry: str) -> Iterator[str]:
    """Yield the words of a cue as they occur among the tokens of a sentence."""
    for word in entry.split():
        if word.isascii() and word.isalnum():  # nearly all words, which are tokens as they are
            yield word.lower()
        elif "*" in word or word in {"..", ":"} or word.endswith("'"):
            yield word
        else:
            yield from (token for token in _tokens(word) if token not in _PAUSE)


def _tokens(sentence: str) -> list[str]:
    """Return the words and punctuation marks of a sentence in lower case."""
    plain = sentence.lower()
    if plain.isascii():
        tokens: list[str] = _ASCII_TOKEN.findall(plain)
    else:
        plain = _SHORT_VOWELS.sub("", plain.replace("’", "'"))
        tokens = _TOKEN.findall(plain)
    if "'" not in plain:
        return tokens
    found: list[str] = []
    for token in tokens:
        if "'" in token and (elision := _ELISION.fullmatch(token)):
            found += (f"{elision[1]}'", elision[2])
        else:
            found.append(token)
    return found


def words_of(sentence: str) -> list[str]:
    """Return the words and punctuation marks of a sentence, without what it quotes."""
    return _tokens(_without_quoted(sentence))


def _without_quoted(sentence: str, placeholder: str = _PLACEHOLDER) -> str:
    """Return the sentence with a placeholder for quoted text, addresses and code."""
    return sentence if _quotes_nothing(sentence) else _QUOTED.sub(placeholder, sentence)


def _quotes_nothing(text: str) -> bool:
    """Return True if a text has no quoted text, address or code, as its characters tell."""
    # Written out, because a loop takes several times as long.
    return text.isascii() and not ('"' in text or "`" in text or "://" in text)


def cue_score(sentence: str) -> float:
    """Return how much a sentence looks like a rule by its cues alone."""
    bare = _without_quoted(sentence)
    return _rule_score(_cues_of(bare, _tokens(bare)), asks=_asks(sentence))


def find_rules(text: str) -> tuple[RuleSpan, ...]:
    """Return the rules, corrections and decisions that a person states in a text."""
    return _read(text).rules


class PossibleRule(NamedTuple):
    """A sentence that may be a rule, by its wording."""

    start: int
    end: int
    likeness: float


def possible_rules(text: str) -> tuple[PossibleRule, ...]:
    """Return the sentences of a person that may be rules, without those of `find_rules`."""
    return _read(text).possible


class _JudgedSentence(NamedTuple):
    """A sentence with its cues."""

    start: int
    text: str
    cues: _Cues


class _Sentence(NamedTuple):
    """A sentence that states, withdraws or replaces a rule."""

    start: int
    text: str
    cues: frozenset[str]
    """The kinds of its cues, without their places: that is all that other sentences need."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(slots=True)
class _Reading:
    """The rules of a text, and its sentences that state or change one."""

    rules: tuple[RuleSpan, ...] = ()
    sentences: tuple[_Sentence, ...] = ()
    possible: tuple[PossibleRule, ...] = ()


_NOTHING_READ = _Reading()


def _read_once(text: str) -> _Reading:
    found: list[RuleSpan] = []
    sentences: list[_JudgedSentence] = []
    possible: list[PossibleRule] = []
    for span in harness.spans(text):
        if span.kind != "person":
            continue
        is_short = span.end - span.start <= _LONG_TEXT
        if is_short and _ONE_SENTENCE.fullmatch(text, span.start, span.end):
            _find_in_sentence(text[span.start : span.end], span.start, found, sentences, possible)
        else:
            _find_in_prose(text, span.start, span.end, found, sentences, possible)
    ends = {rule.end for rule in found}
    kept = (
        _Sentence(start, bare, _cue_kinds(frozenset(cues.places)))
        for start, bare, cues in sentences
        if start + len(bare) in ends or cues.any(*_CHANGES)
    )
    reading = _Reading(tuple(found), tuple(kept), tuple(possible))
    return _NOTHING_READ if reading == _NOTHING_READ else reading


@lru_cache(maxsize=1_024)
def _cue_kinds(kinds: frozenset[str]) -> frozenset[str]:
    """Return the same set, so that the sentences with equal cues share one."""
    return kinds


# The same messages are read by every compression of a session.
_read = TextMemo(
    _read_once, lambda found: 1 + (2 * len(found.sentences) + len(found.possible)) // 4
)


class _Paragraph(NamedTuple):
    """A line of prose with its wrapped rest, or a list item."""

    start: int
    end: int
    is_item: bool


def _find_in_prose(
    text: str,
    start: int,
    end: int,
    found: list[RuleSpan],
    sentences: list[_JudgedSentence],
    possible: list[PossibleRule],
) -> None:
    likely = _languages(_tokens(text[start : min(start + _SAMPLE, end)]))
    usual = likely[0] if len(likely) == 1 else ""
    wanted = _LIKENESS if end - start <= _LONG_TEXT else _LIKENESS_IN_LONG_TEXT
    header = -1
    previous = previous_end = start
    for paragraph in _paragraphs(text, start, end):
        if not paragraph.is_item:
            header = -1
        elif header >= 0:
            # An item below "please follow these rules:" is a rule without a cue of its own.
            if found and found[-1].start == header and found[-1].end <= previous_end:
                found.pop()
            is_first = not found or found[-1].start < header
            found.append(RuleSpan(header if is_first else paragraph.start, paragraph.end, "rule"))
            for low, sentence in _sentences(text, paragraph):
                cues, _ = _judge(sentence, usual, wanted)
                sentences.append(_JudgedSentence(low, sentence, cues))
            continue
        for low, sentence in _sentences(text, paragraph):
            high = low + len(sentence)
            cues, judgement = _judge(sentence, usual, wanted)
            sentences.append(_JudgedSentence(low, sentence, cues))
            if judgement.announces:
                header = low
            if judgement.kind:
                refers = judgement.points_back and not (found and found[-1].end > previous)
                found.append(RuleSpan(previous if refers else low, high, judgement.kind))
            elif judgement.likeness >= _POSSIBLE:
                possible.append(PossibleRule(low, high, judgement.likeness))
            previous, previous_end = low, high


def _find_in_sentence(
    sentence: str,
    start: int,
    found: list[RuleSpan],
    sentences: list[_JudgedSentence],
    possible: list[PossibleRule],
) -> None:
    """Do the same for one sentence without marks: nothing is divided, and all is in its words."""
    tokens = _tokens(sentence)
    cues = _cues_in(sentence, tokens, _languages(tokens))
    judgement = _judgement(sentence, tokens, cues, _LIKENESS)
    end = start + len(sentence)
    sentences.append(_JudgedSentence(start, sentence, cues))
    if judgement.kind:
        found.append(RuleSpan(start, end, judgement.kind))
    elif judgement.likeness >= _POSSIBLE:
        possible.append(PossibleRule(start, end, judgement.likeness))


def _sentences(text: str, paragraph: _Paragraph) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a paragraph and where they begin."""
    at = paragraph.start
    for whole in whole_sentences(text[paragraph.start : paragraph.end]):
        # Many people begin a sentence with a small letter.
        for sentence in _CASUAL_END.split(whole) if _MAY_END_CASUALLY.search(whole) else (whole,):
            bare = sentence.strip()
            if bare and not (paragraph.end - paragraph.start > _LONG_LINE and _is_code(bare)):
                yield at + sentence.index(bare), bare
            at += len(sentence)


def _paragraphs(text: str, start: int, end: int) -> Iterator[_Paragraph]:
    """Yield the lines of prose and the list items; not code, quotations, tables or markup."""
    fence = ""
    held: _Paragraph | None = None
    prose = text[start:end]
    may_have_code = not _quotes_nothing(prose) or _MAY_BE_CODE.search(prose) is not None
    for match in _LINE.finditer(text, start, end):
        line = match.group().rstrip()
        mark = _FENCE.match(line)
        is_prose = line and not (mark or fence or _NOT_PROSE.match(line))
        if not is_prose or (may_have_code and _is_code(line)):
            if mark:
                fence = "" if fence == mark[1] else fence or mark[1]
            if held:
                yield held
            held = None
            continue
        bullet = _BULLET.match(line)
        lead = bullet or _HEADING.match(line)
        low, high = match.start() + (lead.end() if lead else 0), match.start() + len(line)
        if held and not lead and _continues(text, held, low):
            held = held._replace(end=high)
            continue
        if held:
            yield held
        held = _Paragraph(low, high, is_item=bullet is not None)
    if held:
        yield held


def _is_code(line: str) -> bool:
    if len(line) > _LONG_LINE:
        return False  # prose that mentions code; its sentences are judged one by one
    bare = _without_quoted(line, "")
    if not _MAY_BE_CODE.search(bare):
        return False
    return _CODE.search(bare) is not None and not _HEADING.match(line)


def _continues(text: str, held: _Paragraph, start: int) -> bool:
    """Return True if a line that was wrapped continues at a place."""
    last_line = text.rfind("\n", held.start, held.end) + 1 or held.start
    tail = text[last_line : held.end].rstrip()
    following = text[start : start + 4].lstrip()[:1]
    return (
        len(tail) >= _MIN_WRAPPED_LENGTH
        and not tail.endswith((*STOPS, *COLONS))
        and (following.islower() or bool(UNSPACED.match(following)))
    )


class _Judgement(NamedTuple):
    kind: RuleKind | None
    points_back: bool = False
    announces: bool = False
    """True for a line such as "please follow these rules:"."""
    likeness: float = -math.inf
    """The likeness of a sentence of no kind."""


@dataclass(slots=True)
class _Cues:
    """The cues of a sentence: for each kind the places where they begin."""

    places: dict[str, list[int]]
    size: int
    """Number of words."""
    begins: frozenset[str] = frozenset()
    """Cues at the beginning of the sentence."""
    is_specific: bool = False
    """True if the first order has a single thing as its object."""
    is_plural: bool = False
    """True if the object of the first order is a plural without an article."""
    is_verb_first: bool = False
    """True if the language puts the verb before its object."""

    def __contains__(self, cue: str) -> bool:
        return cue in self.places

    def any(self, *cues: str) -> bool:
        """Return True if the sentence has one of the cues."""
        return not self.places.keys().isdisjoint(cues)


# People and their programs repeat sentences in other messages, most of them soon.
@lru_cache(maxsize=4_096)
def _judge(sentence: str, usual: str, wanted: float) -> tuple[_Cues, _Judgement]:
    """Return the cues of a sentence and its kind; a rule without cues needs the wanted likeness."""
    bare = _without_quoted(sentence)
    tokens = _tokens(bare)
    cues = _cues_of(bare, tokens, usual)
    return cues, _judgement(sentence, tokens, cues, wanted)


def _judgement(sentence: str, tokens: list[str], cues: _Cues, wanted: float) -> _Judgement:
    if not tokens:
        return _Judgement(None)
    asks = _asks(sentence)
    kind: RuleKind | None = None
    likely = -math.inf
    needed = _RULE if cues.size <= _LONG else _RULE + 1
    score = _rule_score(cues, asks=asks)
    if score >= needed or (not asks and _reserves(sentence, cues)):
        kind = "rule"
    elif not asks:
        kind = "rule" if _names_rule(sentence, tokens) else _lesser_kind(tokens, cues)
        if kind is None and (likely := _rule_likeness(tokens, cues, score)) >= wanted:
            kind = "rule"
    points_back = kind is not None and not _tables().pointers.isdisjoint(
        tokens[:_MAX_POINTER_DISTANCE]
    )
    announces = sentence.endswith(COLONS) and (
        kind == "rule" or cues.any("generic", "wish", "lasting")
    )
    return _Judgement(kind, points_back, announces, likely)


def _asks(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith(_QUESTION_ENDS)


def _names_rule(sentence: str, tokens: list[str]) -> bool:
    """Return True if a rule follows a colon: "one thing matters to me: no new dependencies"."""
    if ": " not in sentence:
        return False
    before, _, rest = sentence.partition(": ")
    if len(rest.split()) < _EARLY:
        return False
    if _quotes_nothing(sentence):
        # The words are the same as before, and a colon is always a token.
        rest_tokens = tokens[len(_tokens(f"{before}:")) :]
        return _rule_score(_cues_of(rest, rest_tokens), asks=_asks(rest)) >= _RULE
    return cue_score(rest) >= _RULE


def _rule_likeness(tokens: list[str], cues: _Cues, score: float) -> float:
    """Return how much the wording of a sentence, with the score of its cues, is that of a rule."""
    if not _EARLY <= cues.size <= _MOST_WORDED or cues.any("past", "report"):
        return -math.inf
    return likeness(tokens) + _CUES_IN_LIKENESS * score


def _reserves(sentence: str, cues: _Cues) -> bool:
    """Return True if a sentence leaves something to one person: "only Marta merges"."""
    if "only" not in cues.begins or cues.size < _EARLY or cues.any("past", "report", "guess"):
        return False
    return _SECOND_CAPITALIZED.match(sentence) is not None


def _rule_score(cues: _Cues, *, asks: bool) -> float:
    """Return how much a sentence looks like a rule."""
    is_style = cues.any("always", "only") and cues.any("manner", "request")
    if cues.size <= 1 or not (is_style or cues.any(*_DIRECTIVES)):
        return 0
    weights = _tables().weights
    total = sum(weights[cue] for cue in _ADDED if cue in cues)
    for cue in ("scope", "manner"):
        count = min(len(cues.places.get(cue, ())), 2)
        total += weights[cue] * (count + 1) / 2 if count else 0
    if "must" in cues and not cues.any("always", "lasting", "forbid", "certain"):
        # "Tests must …" speaks of all tests, "the test must …" of one.
        total += _topic_score(cues)
    if "none" in cues and cues.size <= _VERY_SHORT:
        total += 1
    if is_style and "request" in cues and cues.size <= _SHORT:
        total += 1
    if "when" in cues.begins and cues.any("act", "consult") and not asks:
        total += 1  # "when a test fails, stop": a habit, not one order
    return total + _object_score(cues) + _statement_score(cues, asks=asks)


def _topic_score(cues: _Cues) -> float:
    """Return what the first words of a sentence about a duty add."""
    if not cues.begins.isdisjoint(_NO_TOPIC):
        return -1 if "subject" in cues.begins else 0
    # Where the subject is left out, a duty may be the speaker's own.
    return 1 if cues.is_verb_first else 0


def _object_score(cues: _Cues) -> float:
    """Return what the object of an order adds: a style counts for it, a single thing against it."""
    if cues.is_specific and not cues.any("lasting", "always", "forbid", "certain", "only"):
        return -1
    is_style = cues.any("act", "stance") and "manner" in cues and cues.size <= _SHORT
    if "habit" in cues and (cues.is_plural or "when" in cues):
        return 2 if cues.size <= _SHORT else 1
    return 1 if is_style or ("habit" in cues and "scope" in cues) else 0


def _statement_score(cues: _Cues, *, asks: bool) -> float:
    """Return what speaks against a rule: questions, narration, statements about others."""
    weights = _tables().weights
    total = 0.0
    is_addressed = cues.any("must", "forbid", "wish", "you", "certain", "own")
    if "subject" in cues.begins and not is_addressed:
        total += weights["subject"]
    elif "you" in cues.begins and not cues.any("lasting", "consult", *_DUTIES):
        # "You always find the right words" describes the reader.
        total += weights["subject"]
    asks = asks or ("question" in cues.begins and not cues.any("forbid", "when", "lasting"))
    is_polite = "request" in cues and "question" not in cues.begins
    if asks and not (is_polite and cues.any("lasting", "always", "forbid", "certain")):
        total += weights["question"]
    if "own" in cues:
        return total
    if "report" in cues:
        total += weights["report"]
    if "past" in cues:
        orders = ("forbid", "wish", "consult", "act", "certain")
        order = min((cues.places[cue][0] for cue in orders if cue in cues), default=cues.size)
        # What happened is part of an order that precedes it: "don't redo what I did".
        if not cues.is_verb_first or cues.places["past"][0] < order:
            total += weights["past"]
    return total


def _lesser_kind(tokens: list[str], cues: _Cues) -> RuleKind | None:
    """Return the kind of a sentence that states no rule: a correction, a decision or None."""
    if cues.size <= 1:
        return None
    if places := cues.places.get("correct"):
        score = 1.5 * min(len(places), 2) + (places[0] == 0) - ("guess" in cues)
        score += sum(cue in cues for cue in ("act", "must", "forbid", "decide"))
        # "No tests failed" is no correction, "no, use the other one" is.
        is_reply = places[0] > 0 or not _PAUSE.isdisjoint(tokens[1:2]) or len(places) > 1
        if is_reply and score >= _CORRECTION and cues.any("act", "must", "decide"):
            return "correction"
    if "decide" not in cues:
        return None
    is_early = any(_words_before(tokens, place) <= _EARLY for place in cues.places["decide"])
    asks = "question" in cues.begins
    if is_early and not asks and not cues.any("guess", "past", "report"):
        return "decision"
    return None


def _words_before(tokens: list[str], place: int) -> int:
    """Return the number of words between the beginning of a clause and a place in it."""
    before = tokens[:place][::-1]
    return next((number for number, token in enumerate(before) if token in _PAUSE), place)


def _languages(tokens: Sequence[str], usual: str = "") -> tuple[str, ...]:
    """Return the likely languages of a sentence, by its script or its words."""
    text = "".join(tokens)
    if not text.isascii():
        for script, language in _SCRIPTS:
            if script.search(text):
                return (language,)
    tables = _tables()
    usual = "" if usual in _BY_SCRIPT else usual
    total = sum(filter(None, map(tables.lanes.get, tokens)))
    if usual:
        total += int(1 / _VOTE) << (_LANE * tables.voting.index(usual))
    counts = unpack(f"<{len(tables.voting)}H", total.to_bytes(2 * len(tables.voting), "little"))
    most = max(counts)
    if counts.count(most) == 1:
        return (tables.voting[counts.index(most)],)
    if not most:
        return ("en",)
    voted = (language for votes in map(tables.votes.get, tokens) for language, _ in votes or ())
    found = dict.fromkeys((usual, *voted) if usual else voted)
    return tuple(each for each in found if counts[tables.voting.index(each)] == most)


def _cues_of(sentence: str, tokens: list[str], usual: str = "") -> _Cues:
    """Return the cues of a sentence, in the language in which it looks most like a rule."""
    return _cues_in(sentence, tokens, _languages(tokens, usual))


def _cues_in(sentence: str, tokens: list[str], languages: tuple[str, ...]) -> _Cues:
    best: _Cues | None = None
    for language in languages:
        if language in _WITHOUT_SPACES:
            return _unspaced_cues(sentence, language)
        cues = _cues(tokens, language)
        if best is None or _rule_score(cues, asks=False) > _rule_score(best, asks=False):
            best = cues
    return best or _Cues({}, 0)


def _cues(tokens: list[str], language: str) -> _Cues:
    lexicon = _lexicon(language)
    hits = _hits(tokens, lexicon)
    if not hits:
        return _Cues({}, _size(tokens), is_verb_first=language not in _VERB_LAST)
    _add_leading_verb(hits, tokens, language)
    cues = _settled(hits, tokens)
    first = next((place for place, each in enumerate(tokens) if each not in lexicon.fillers), 0)
    cues.begins = frozenset(cue for cue, places in cues.places.items() if places[0] <= first)
    cues.is_verb_first = language not in _VERB_LAST
    return cues


def _hits(tokens: list[str], lexicon: _Lexicon) -> list[tuple[str, int, int]]:
    """Return the cues of a sentence, each with its start and its end."""
    begun, present = lexicon.begun, {"", *tokens}
    starts, verbs, after_adverbs = {0}, set[int](), set[int]()
    hits: list[tuple[str, int, int]] = []
    anchored: list[tuple[str, int, int]] = []
    for place, token in enumerate(tokens):
        found = begun.get(token) or lexicon.beginning_with(token)
        if found is _NO_CUES:
            continue
        entries, pairs, is_break, is_filler = found
        # A clause begins after a pause; fillers such as "please" may precede it.
        if is_break or (is_filler and place in starts):
            starts.add(place + 1)
        if pairs and (longer := pairs.get("".join(tokens[place + 1 : place + 2]))):
            entries = (*entries, *longer)
        for cue, _, rest, at_start, required_word in entries:
            end = _match(rest, tokens, place + 1) if required_word in present else 0
            if not end:
                continue
            (anchored if at_start else hits).append((cue, place, end))
            # A verb may follow an adverb or a negation: "always use", "don't touch".
            if cue in _BEFORE_VERBS and (place in starts or place in after_adverbs):
                after_adverbs.add(end)
            elif cue == "always":
                verbs.add(end)
    if anchored:
        starts |= after_adverbs
        hits += (
            hit
            for hit in anchored
            if (hit[1] in starts or (hit[0] == "act" and hit[1] in verbs)) and _is_apt(hit, tokens)
        )
    return hits


def _size(tokens: list[str]) -> int:
    """Return the number of words."""
    return len(tokens) - sum(map(_PAUSE.__contains__, tokens))


def _add_leading_verb(hits: list[tuple[str, int, int]], tokens: list[str], language: str) -> None:
    """Count the first word as an order if "always" or "never" follows: "boka aldrig möten"."""
    endings, least = _VERB_FIRST.get(language, ("", 0))
    if tokens and tokens[0].endswith(tuple(endings)) and len(tokens) > least:
        found = {cue for cue, place, _ in hits if place == 0}
        follows = any(cue == "always" and place == 1 for cue, place, _ in hits)
        if follows and found.isdisjoint({"subject", "you", "question", "guess", "past"}):
            hits.append(("act", 0, 1))


def _is_apt(hit: tuple[str, int, int], tokens: list[str]) -> bool:
    """Return False for the "no" of "no, thank you", which denies nothing that follows."""
    cue, _, end = hit
    return cue != "none" or (end < len(tokens) and tokens[end] not in _PAUSE)


def _match(words: tuple[str, ...], tokens: list[str], place: int) -> int:
    """Return where the words of a cue end if they begin at a place, else 0."""
    for number, word in enumerate(words):
        if word == "..":
            for skipped in range(place, min(place + _GAP, len(tokens))):
                if end := _match(words[number + 1 :], tokens, skipped):
                    return end
            return 0
        if place >= len(tokens) or not _is_word(word, tokens[place]):
            return 0
        place += 1
    return place


def _is_word(word: str, token: str) -> bool:
    if "*" not in word:
        return token == word
    if word[0] == "*":
        if word[-1] == "*":
            return word[1:-1] in token
        return token.endswith(word[1:]) and len(token) >= len(word)
    return token.startswith(word[:-1])


def _settled(hits: list[tuple[str, int, int]], tokens: list[str]) -> _Cues:
    """Return the cues without those in phrases which only look like a rule."""
    hiding = [(start, end) for cue, start, end in hits if cue in _HIDING and end - start > 1]
    places: dict[str, list[int]] = {}
    ends: dict[str, int] = {}
    for cue, start, end in sorted(hits, key=lambda hit: (hit[1], -hit[2])):
        if hiding and cue not in _UNHIDDEN and _is_hidden(start, end, hiding):
            continue
        if start >= ends.get(cue, 0):
            ends[cue] = end
            places.setdefault(cue, []).append(start)
    if "report" in places:
        _drop_late_reports(places, tokens)
    if "only" in places:
        _demote_only(places)
    cues = _Cues(places, _size(tokens))
    if "act" in places:
        verb = places["act"][0]
        specific = _tables().specific
        cues.is_specific = any(token in specific for token in tokens[verb + 1 : verb + 2])
        following = tokens[verb + 1 : verb + 3]
        is_plural = any(len(word) > _EARLY and word.endswith("s") for word in following)
        cues.is_plural = is_plural and not cues.is_specific
    return cues


def _is_hidden(start: int, end: int, hiding: list[tuple[int, int]]) -> bool:
    """Return True if a phrase that only looks like a rule, at least as long, has a part of it."""
    return any(low < end and start < high and high - low >= end - start for low, high in hiding)


def _drop_late_reports(places: dict[str, list[int]], tokens: list[str]) -> None:
    """Drop reports inside an order ("do what the list says"), not those that close a quotation."""
    orders = ("forbid", "wish", "consult", "act", "stance", "certain", "lasting")
    order = min((places[cue][0] for cue in orders if cue in places), default=len(tokens))
    kept = [
        place
        for place in places.pop("report")
        if place < order or (place and tokens[place - 1] in _PAUSE)
    ]
    if kept:
        places["report"] = kept


def _demote_only(places: dict[str, list[int]]) -> None:
    """Count "only" as a word of scope where it does not restrict an order or a duty."""
    verbs = ("act", "must", "wish", "consult", "manner", "request")
    restricted = [place for cue in verbs for place in places.get(cue, ())]
    kept = [
        place
        for place in places.pop("only")
        if place == 0 or any(abs(place - verb) <= _EARLY + 1 for verb in restricted)
    ]
    if kept:
        places["only"] = kept


def _unspaced_cues(sentence: str, language: str) -> _Cues:
    lexicon = _lexicon(language)
    places: dict[str, list[int]] = defaultdict(list)
    rest = sentence
    for guess in lexicon.guesses:
        # They are blanked before the other cues are looked for.
        at = guess.find(rest)
        if at >= 0:
            places[guess.cue].append(at)
            rest = rest.replace(guess.entry, "\ufffc" * len(guess.entry))
    for character in set(rest).intersection(lexicon.unspaced):
        for entry in lexicon.unspaced[character]:
            at = entry.find(rest)
            if at >= 0:
                places[entry.cue].append(at)
    for found in places.values():
        found.sort()
    begins = frozenset(cue for cue, found in places.items() if found[0] == 0)
    return _Cues(places, len(sentence) // 2, begins, is_verb_first=language not in _VERB_LAST)


class _Subject(NamedTuple):
    """The subject of a rule. Rules with the same subject are withdrawn together."""

    terms: frozenset[str]
    forbids: bool


_Place: TypeAlias = tuple[int, int]
"""The index of a text, and of a rule in it."""


class _RulesInForce:
    """The rules of a series of texts that hold, found by the terms of their subjects."""

    def __init__(self) -> None:
        self._subjects: dict[_Place, _Subject] = {}
        self._places: dict[_Subject, list[_Place]] = {}
        self._by_term: dict[tuple[bool, str], dict[_Subject, None]] = defaultdict(dict)
        """By a term, apart for rules that forbid and rules that demand."""
        self._by_thing: dict[frozenset[str], set[_Subject]] = defaultdict(set)
        """Rules that demand, by the terms that are no values."""

    def add(self, place: _Place, subject: _Subject) -> None:
        self._subjects[place] = subject
        self._places.setdefault(subject, []).append(place)
        for term in subject.terms:
            subjects = self._by_term[subject.forbids, term]
            subjects.pop(subject, None)
            subjects[subject] = None  # the newest are last
        if not subject.forbids:
            self._by_thing[_thing(subject.terms)].add(subject)

    def about(
        self, terms: frozenset[str], forbidding: tuple[bool, ...] = (False, True)
    ) -> set[_Subject]:
        """Return the newest subjects that share a term with these."""
        keys = ((forbids, term) for forbids in forbidding for term in terms)
        found = (reversed(self._by_term[key]) for key in keys if key in self._by_term)
        return {subject for each in found for subject in islice(each, _MOST_SUBJECTS)}

    def replaced_by(self, new: _Subject, *, changes: bool) -> set[_Subject]:
        """Return the rules that a new one reverses or sets to another value."""
        terms = new.terms
        replaced = {
            old
            for old in self.about(terms, (not new.forbids,))
            if len(terms & old.terms) * 4 >= len(old.terms) * 3
        }
        if new.forbids:
            return replaced
        alike = set(self._by_thing.get(_thing(terms), ()))
        if changes:
            alike |= {
                old
                for old in self.about(terms, (False,))
                if len(old.terms - terms) <= min(len(terms & old.terms), _MAX_DROPPED)
            }
        return replaced | {
            old
            for old in alike
            if terms & old.terms and not (terms <= old.terms or old.terms <= terms)
        }

    def remove(self, subjects: Iterable[_Subject]) -> list[_Place]:
        """Remove the rules with these subjects; return where they were stated."""
        gone = [place for subject in subjects for place in self._places.pop(subject)]
        for place in gone:
            subject = self._subjects.pop(place)
            for term in subject.terms:
                self._by_term[subject.forbids, term].pop(subject, None)
            if not subject.forbids:
                self._by_thing[_thing(subject.terms)].discard(subject)
        return gone

    def remove_last(self) -> list[_Place]:
        """Remove the rule that was stated last."""
        place, subject = self._subjects.popitem()
        self._subjects[place] = subject
        places = self._places[subject]
        if len(places) == 1:
            return self.remove([subject])
        del self._subjects[place]
        return [places.pop()]

    def remove_all(self) -> list[_Place]:
        return self.remove(list(self._places))

    def __bool__(self) -> bool:
        return bool(self._subjects)


class Withdrawal(NamedTuple):
    """A sentence that withdraws or replaces a rule."""

    text: int
    """The index of its text."""
    start: int
    end: int


Withdrawals: TypeAlias = dict[_Place, Withdrawal]
"""The rules that a later sentence withdraws or replaces, with that sentence."""


RulesOfTexts: TypeAlias = tuple[Sequence[tuple[RuleSpan, ...]], Mapping[_Place, Withdrawal]]


def rules_of_all(texts: Iterable[str]) -> RulesOfTexts:
    """Return the rules of each text, and those of them that are withdrawn.

    A place is the index of a text and of the rule in what `find_rules` returns for it.
    """
    return _latest_rules.of(tuple(texts))


class _LatestRules:
    """The results for the latest series of texts: a compression asks for the same several times.

    Of the texts only a hash is held. Threads may share it, because a series replaces all others
    at once.
    """

    def __init__(self) -> None:
        self._found: tuple[tuple[tuple[int, int], RulesOfTexts], ...] = ()

    def of(self, texts: tuple[str, ...]) -> RulesOfTexts:
        """Return the rules of the texts."""
        wanted = (len(texts), hash(texts))
        for key, rules in self._found:
            if key == wanted:
                return rules
        rules = _find_rules_of_all(texts)
        self._found = ((wanted, rules), *self._found[: _MOST_SERIES - 1])
        return rules


_latest_rules = _LatestRules()


def _find_rules_of_all(texts: tuple[str, ...]) -> RulesOfTexts:
    rules: list[tuple[RuleSpan, ...]] = []
    in_force = _RulesInForce()
    gone: Withdrawals = {}
    for index, text in enumerate(texts):
        reading = _read(text)
        rules.append(reading.rules)
        if not reading.sentences:
            continue
        ends = {rule.end: number for number, rule in enumerate(reading.rules)}
        for sentence in reading.sentences:
            number = ends.get(sentence.end)
            new = None
            if number is not None:
                forbids = not sentence.cues.isdisjoint(("forbid", "consult"))
                new = _Subject(_subject(sentence.text), forbids)
            old = [*_switch(sentence, in_force), *_withdraw(sentence, new, in_force)]
            if old:
                gone |= dict.fromkeys(old, Withdrawal(index, sentence.start, sentence.end))
            if new is not None and number is not None:
                in_force.add((index, number), new)
    return rules, gone


def _switch(sentence: _Sentence, in_force: _RulesInForce) -> Sequence[_Place]:
    """Remove and return the rules whose value a sentence switches to another one of its kind.

    "Switch back to English" names the new value only. If rules have different values, it does not
    tell which of them it means.
    """
    cues = sentence.cues
    if "forbid" in cues or cues.isdisjoint(("back", "lasting")):
        return ()
    if sentence.text.endswith(_QUESTION_ENDS):
        return ()
    terms = _subject(sentence.text) - _tables().back
    for values in _tables().alternatives:
        new = terms & values
        if not new:
            continue
        found = [
            old
            for old in in_force.about(values - new)
            if not (old.forbids or old.terms & new) and len(new) * 2 >= len(terms - old.terms)
        ]
        is_clear = len({old.terms & values for old in found}) == 1
        return in_force.remove(found) if is_clear else ()
    return ()


def _withdraw(
    sentence: _Sentence, new: _Subject | None, in_force: _RulesInForce
) -> Sequence[_Place]:
    """Remove and return the rules that a later sentence withdraws, allows or replaces."""
    if not in_force or sentence.text.endswith(_QUESTION_ENDS):
        return ()
    cues = sentence.cues
    terms = _subject(sentence.text)
    if "revoke" in cues and not (new and "forbid" in cues):
        if terms:
            found = in_force.about(terms)
            return in_force.remove(old for old in found if _covers(terms, old.terms))
        is_general = "generic" in cues and "scope" in cues
        return in_force.remove_all() if is_general else in_force.remove_last()
    if "allow" in cues and new is None:
        found = in_force.about(terms)
        return in_force.remove(old for old in found if old.forbids and _covers(terms, old.terms))
    named = _replaced_terms(sentence.text) if "instead" in cues else frozenset()
    if "instead" in cues and not named and new and new.forbids:
        named = terms  # "no longer" forbids what an old rule demands
    changes = not cues.isdisjoint(("lasting", "correct", "instead"))
    replaced = in_force.replaced_by(new, changes=changes) if new else set[_Subject]()
    if named:
        found = in_force.about(named | terms if new else named)
        replaced |= {old for old in found if len(named & old.terms) * 2 >= len(named)}
    return in_force.remove(replaced)


def _covers(terms: frozenset[str], old: frozenset[str]) -> bool:
    """Return True if a withdrawal speaks of an old rule."""
    shared = len(terms & old)
    return shared > 0 and (shared * 2 >= len(terms) or shared * 3 >= len(old) * 2)


@lru_cache(maxsize=16_384)
def _thing(subject: frozenset[str]) -> frozenset[str]:
    """Return the terms of a subject that are no values: two rules that share them set one thing."""
    values = _tables().values
    return frozenset(term for term in subject if not (term.isdigit() or term in values))


@lru_cache(maxsize=4_096)
def _subject(sentence: str) -> frozenset[str]:
    """Return the terms that name the subject of a rule."""
    return frozenset(_content_stems(sentence, _tables().no_subject))


def _content_stems(text: str, ignored: Collection[str] = ()) -> Iterator[str]:
    """Return the stems of the content words of a text."""
    terms = (term for term in texts_of_terms(text) if term not in ignored)
    return map(stem, filter(is_content_word, terms))


def _replaced_terms(sentence: str) -> frozenset[str]:
    """Return the terms that follow "instead of", up to the end of the clause."""
    lower = sentence.lower()
    for phrase in _tables().instead:
        at = lower.find(phrase)
        if at >= 0:
            clause = _CLAUSE.split(sentence[at + len(phrase) :], maxsplit=1)[0]
            return _subject(" ".join(clause.split()[:4]))
    return frozenset()
