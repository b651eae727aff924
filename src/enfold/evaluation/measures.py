"""Measures: evidence in the view, evidence found by search, decay, costs and answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from statistics import mean
from time import perf_counter

from enfold import wire
from enfold.engine import Engine, Session, stateless
from enfold.engine.recall import RECALL_TOKENS, recall_found
from enfold.engine.stateless import CondenseOptions
from enfold.errors import BadReplyError, CompressionError, ConfigError
from enfold.evaluation.cases import Case, Probe
from enfold.history import cut_points
from enfold.llm.calls import Call, Connection, Gateway
from enfold.messages import Message, Text, ToolCall, ToolResult, text_of
from enfold.receipt import ItemCount, ViewText, make_receipt
from enfold.settings import Settings
from enfold.strategies.contract import Strategy
from enfold.summaries.fence import escape
from enfold.summaries.request import transcript
from enfold.text.harness import person_text
from enfold.text.sentences import telling_words, whole_sentences
from enfold.text.words import texts_of_terms
from enfold.tokens import count_conversation, count_messages, get

SAYS_SOMETHING = 3
"""Content words a message needs to count, and words of a sentence: "Yeah, exactly." is too short
and occurs in any text by chance."""
IN_SUBSTANCE = 0.5
QUOTED = 8
QUOTED_CONTENT = 2
"""Words in a row that make a quotation, and how many of them must be content words."""
IN_A_ROW = 25
"""Words in a row that a person can read as the message."""
ANSWER_WORDS = 8
"""Content words of an answer, at most, that is looked for by them. Longer answers are summaries."""
PASSAGE = 40
"""Words of a passage in which content words must occur together. Longer lines are split, else a
view of a few long messages would seem to contain everything."""


def has_words(message: Message) -> bool:
    """True if the message has text."""
    return bool(text_of(message.parts).strip())


def says_something(message: Message) -> bool:
    """True if the message has enough content words to be kept or lost."""
    return len(telling_words(text_of(message.parts))) >= SAYS_SOMETHING


def typed_sentences(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the different sentences of three words or more that people typed."""
    lines = (line for message in messages for line in person_text(message).splitlines())
    found = (sentence.strip() for line in lines for sentence in whole_sentences(line.strip()))
    return tuple(
        dict.fromkeys(each for each in found if len(texts_of_terms(each)) >= SAYS_SOMETHING)
    )


class TextIndex:
    """Texts of a view or of search results, in which messages are looked up."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def has_words(self, words: str) -> bool:
        """True if these words occur in a row in one text."""
        row = " ".join(words.split())
        if row not in self._whole:
            return False
        whole_words = rf"(?<![A-Za-z0-9]){re.escape(row)}(?![A-Za-z0-9])"
        return bool(row) and re.search(whole_words, self._whole) is not None

    def has_whole(self, message: Message) -> bool:
        """True if the message's text occurs verbatim in one text."""
        return self.has_words(text_of(message.parts))

    def quotes(self, message: Message) -> bool:
        """True if the message, or eight of its words in a row, occur."""
        runs = (run for run in _runs(text_of(message.parts).split()) if run in self._quotable)
        return self.has_whole(message) or any(map(_tells, runs))

    def has_row(self, message: Message) -> bool:
        """True if the message, or 25 of its words in a row, occur."""
        rows = _runs(text_of(message.parts).split(), IN_A_ROW)
        return any(row in self._rows for row in rows) or self.has_whole(message)

    def has_answer(self, answer: str) -> bool:
        """True if all content words of an answer occur in one passage."""
        words = telling_words(answer)
        return any(words <= passage for passage in self._passages)

    def has_substance(self, message: Message) -> bool:
        """True if the message is quoted, or half of its content words occur in one passage."""
        if self.quotes(message):
            return True
        words = telling_words(text_of(message.parts))
        return bool(words) and any(
            len(words & passage) >= IN_SUBSTANCE * len(words) for passage in self._passages
        )

    @cached_property
    def _whole(self) -> str:
        """All texts, separated by a character that no row of words contains."""
        return "\n".join(" ".join(text.split()) for text in self._texts)

    @cached_property
    def _quotable(self) -> frozenset[tuple[str, ...]]:
        return frozenset(run for line in self._lines() for run in _runs(line.split()))

    @cached_property
    def _rows(self) -> frozenset[tuple[str, ...]]:
        return frozenset(row for text in self._texts for row in _runs(text.split(), IN_A_ROW))

    @cached_property
    def _passages(self) -> tuple[frozenset[str], ...]:
        """The content words of passages, each overlapping half of the one before."""
        half = PASSAGE // 2
        return tuple(
            telling_words(" ".join(words[start : start + PASSAGE]))
            for words in map(str.split, self._lines())
            for start in range(0, max(1, len(words) - half), half)
        )

    def _lines(self) -> Iterator[str]:
        for text in self._texts:
            yield from text.splitlines()


@dataclass(frozen=True, slots=True)
class PresenceRule:
    """A rule for the presence of a message."""

    name: str
    counts: Callable[[Message], bool]
    """Selects the messages that count."""
    holds: Callable[[TextIndex, Message], bool]
    """True if a message is present."""


HEADLINE = "verbatim"
"""The rule of the first table."""
ROW = "25 in a row"
ANSWER = "answer's words"
"""The rule for questions with a short answer: its content words occur in one passage."""
RULES = (
    PresenceRule("verbatim, of all", has_words, TextIndex.has_whole),
    PresenceRule(HEADLINE, says_something, TextIndex.has_whole),
    PresenceRule(ROW, says_something, TextIndex.has_row),
    PresenceRule("quoted", says_something, TextIndex.quotes),
    PresenceRule("in substance", says_something, TextIndex.has_substance),
)
"""From the strictest to the loosest. A person could sign the first three; of 30 probes that the
last two called present, a person could answer 13."""
LOOSEST = RULES[-1].name
RULE_NAMES = (*(rule.name for rule in RULES[:3]), ANSWER, *(rule.name for rule in RULES[3:]))
"""The rules for messages and the one for answers, in the order of tables."""


def share(found: Iterable[int], wanted: Sequence[int]) -> float:
    """Return the share of the wanted indexes that were found."""
    having = set(found)
    return sum(index in having for index in wanted) / len(wanted)


def quotation(message: Message, shown: TextIndex) -> str | None:
    """Return the first eight words in a row with content that occur in the texts."""
    for run in _runs(text_of(message.parts).split()):
        words = " ".join(run)
        if _tells(run) and shown.has_words(words):
            return words
    return None


def _tells(run: Sequence[str]) -> bool:
    return len(telling_words(" ".join(run))) >= QUOTED_CONTENT


def _runs(words: Sequence[str], length: int = QUOTED) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


NEWEST = "newest"
ON_TARGET = 0.8
"""Smallest share of a target that a result should use."""


@dataclass(frozen=True, slots=True)
class Method:
    """A strategy with its target, tokenizer and prompt."""

    strategy: str
    budget: float
    """The target in tokens; up to 1, a share of the conversation's tokens."""
    tokenizer: str = "o200k_base"
    prompt: str | None = None
    """The prompt for summaries. None: the strategy's own."""
    label: str = ""
    """The prompt's name in tables."""

    def __post_init__(self) -> None:
        if self.budget <= 0:
            raise ConfigError(f"budget is {self.budget:g}; expected tokens, or a share up to 1")

    @property
    def settings(self) -> Settings:
        """The settings that make the strategy."""
        config = {"prompt": self.prompt} if self.prompt is not None else {}
        return Settings(strategy=self.strategy, strategy_config={self.strategy: config})

    def target(self, tokens: int) -> int:
        """Return the target for a conversation of `tokens` tokens."""
        return max(1, int(tokens * self.budget if self.budget <= 1 else self.budget))

    def is_on_target(self, before: int, after: int) -> bool:
        """True if a result uses its target: it ends between 80 and 100 % of it."""
        target = self.target(before)
        return ON_TARGET * target <= after <= target


@dataclass(frozen=True, slots=True)
class CondensedCase:
    """A condensed conversation and its figures."""

    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    seconds: float
    items: ItemCount
    """Exact items of the conversation: kept, restorable or lost."""
    is_restored: bool | None
    """True if the ledger restores the input exactly. None without a ledger."""
    pairs_are_whole: bool
    """True if no tool call or result lost its counterpart."""
    cost: float | None = 0.0
    failure: str = ""
    """Why the strategy failed; empty if it did not."""


async def condense_case(case: Case, way: Method, strategy: Strategy | None) -> CondensedCase:
    """Condense a case; without a strategy, keep its newest messages."""
    if strategy is None:
        return _newest(case, way)
    before = count_conversation(case.conversation, way.tokenizer).total
    started = perf_counter()
    try:
        done = await stateless.condense(
            case.conversation, strategy, CondenseOptions(way.tokenizer, target=way.target(before))
        )
    except CompressionError as error:
        whole = _view(case, case.messages, before, before, perf_counter() - started)
        return replace(whole, failure=str(error))
    report = done.report
    shown = wire.parse(done.messages, case.conversation.dialect).messages
    made = _view(case, shown, before, report.tokens_after, report.seconds)
    restored = stateless.restore(done.messages, done.ledger) == wire.render(case.conversation)
    return replace(made, is_restored=restored, cost=report.cost)


def _newest(case: Case, way: Method) -> CondensedCase:
    started = perf_counter()
    counts = count_messages(case.messages, way.tokenizer)
    before = count_conversation(case.conversation, way.tokenizer).total
    left = way.target(before)
    first = len(case.messages)
    points = set(cut_points(case.messages))
    for index in range(len(case.messages) - 1, -1, -1):
        left -= counts[index]
        if left < 0:
            break
        first = index if index in points else first
    after = before - sum(counts[:first])
    return _view(case, case.messages[first:], before, after, perf_counter() - started)


def _view(
    case: Case, messages: tuple[Message, ...], before: int, after: int, seconds: float
) -> CondensedCase:
    found = make_receipt(case.messages, messages).total
    whole = _orphans(messages) <= _orphans(case.messages)
    return CondensedCase(
        messages, before, after, seconds, found, is_restored=None, pairs_are_whole=whole
    )


def _orphans(messages: tuple[Message, ...]) -> set[str]:
    """Return ids of calls without a result and of results without a call."""
    calls = {part.id for m in messages for part in m.parts if isinstance(part, ToolCall)}
    results = {part.call_id for m in messages for part in m.parts if isinstance(part, ToolResult)}
    return calls ^ results


TURNS = 20
"""Requests after the compression in the cost calculation."""
CACHE_WRITE = 1.25
CACHE_READ = 0.1
"""Cost of a token written to or read from a prompt cache, relative to an uncached token."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Mean shares of the evidence of a case's questions, by one rule."""

    questions: int
    """Questions with evidence that counts by this rule."""
    in_view: float
    by_search: float
    """Reached by one search, in the view or not."""
    reachable: float
    """In the view, or reached by one search."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a case's questions that is still present, by rule."""

    by_rule: Mapping[str, Reach]
    """By the names of rules; rules without evidence are left out."""
    search_tokens: int
    """Tokens of the longest search result."""

    @property
    def loosest(self) -> Reach:
        """The shares by the loosest rule, presence in substance."""
        return self.by_rule[LOOSEST]


@dataclass(frozen=True, slots=True)
class SendingCost:
    """Cost of the next requests in uncached input tokens, with a prompt cache."""

    as_it_was: float
    condensed: float

    @property
    def saved(self) -> float:
        """The share saved; negative if it costs more."""
        return 1 - self.condensed / self.as_it_was if self.as_it_was else 0.0


async def store_case(engine: Engine, case: Case, model: str) -> Session:
    """Store the case as a session, so that it can be searched."""
    session = await engine.session(case.id, model=model)
    await session.append(*case.messages)
    return session


async def measure_evidence(
    case: Case, view: Sequence[Message], session: Session
) -> Evidence | None:
    """Measure the evidence present. None if no evidence has content."""
    shown = TextIndex(text_of(message.parts) for message in view)
    rows: dict[str, list[tuple[float, ...]]] = {}
    tokenizer = get(await session.tokenizer())
    longest = 0
    for probe in case.probes:
        if not probe.evidence:
            continue
        answer = await recall_found(session, probe.question, max_tokens=RECALL_TOKENS)
        passages = answer.passages
        found = TextIndex(passage.text for passage in passages)
        for rule in RULES:
            wanted = [i for i in probe.evidence if rule.counts(case.messages[i])]
            if wanted:
                in_view = {i for i in wanted if rule.holds(shown, case.messages[i])}
                searched = {i for i in wanted if rule.holds(found, case.messages[i])}
                sets = (in_view, searched, in_view | searched)
                rows.setdefault(rule.name, []).append(tuple(share(each, wanted) for each in sets))
        if probe.answer and 1 <= len(telling_words(probe.answer)) <= ANSWER_WORDS:
            has = [index.has_answer(probe.answer) for index in (shown, found)]
            rows.setdefault(ANSWER, []).append((*map(float, has), float(any(has))))
        lines = "\n".join(passage.line for passage in passages)
        longest = max(longest, tokenizer.count(lines))
    if LOOSEST not in rows:
        return None
    by_rule = {
        name: Reach(len(each), *map(mean, zip(*each, strict=True))) for name, each in rows.items()
    }
    return Evidence(by_rule, longest)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The figures of one question, for means by kind."""

    kind: str
    verbatim: float | None
    """The share of its evidence in the view or found by recall. None without evidence."""
    in_a_row: float | None
    """The same if 25 words in a row are enough."""
    is_answered: bool
    """False if recall answered "nothing fits"."""


async def measure_kinds(
    case: Case, view: Sequence[Message], session: Session
) -> tuple[ProbeResult, ...]:
    """Measure each question that has a kind, such as `temporal` or `abstention`."""
    shown = [text_of(message.parts) for message in view]
    found: list[ProbeResult] = []
    for probe in case.probes:
        if not probe.category:
            continue
        answer = await recall_found(session, probe.question, max_tokens=RECALL_TOKENS)
        texts = TextIndex((*shown, *(passage.text for passage in answer.passages)))
        wanted = [each for i in probe.evidence if says_something(each := case.messages[i])]
        verbatim, in_a_row = (
            mean(map(rule, wanted)) if wanted else None for rule in (texts.has_whole, texts.has_row)
        )
        found.append(ProbeResult(probe.category, verbatim, in_a_row, answer.fits))
    return tuple(found)


def sending_cost(case: Case, view: CondensedCase) -> SendingCost:
    """Return the cost of further requests, each as long as the case's mean message.

    Uncondensed, everything is in the cache. A rewritten view is written to the cache once.
    """
    turn = view.tokens_before / max(1, len(case.messages))
    changed = view.tokens_after != view.tokens_before
    return SendingCost(
        _requests(view.tokens_before, turn, cached=True),
        _requests(view.tokens_after, turn, cached=not changed),
    )


def _requests(tokens: int, turn: float, *, cached: bool) -> float:
    first = tokens * (CACHE_READ if cached else CACHE_WRITE) + turn * CACHE_WRITE
    later = sum(
        (tokens + turn * done) * CACHE_READ + turn * CACHE_WRITE for done in range(1, TURNS)
    )
    return first + later


COMPRESSIONS = 10
FEWEST = 5
"""Smallest number of items and quotations for a meaningful share."""
_SEARCH_TOKENS = 300
_SMALLEST = 1_500
"""Smallest window in tokens: a smaller one cannot hold a summary and a tail."""
_RETENTION = 0.1
"""The share of the window that stays verbatim."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Shares of the content kept by the first compression, after it and after ten more."""

    items: int
    """Exact items."""
    quotations: int
    """Messages that are quoted."""
    in_view: tuple[float, ...]
    reachable: tuple[float, ...]
    evidence: tuple[Evidence, Evidence] | None = None
    """Evidence for questions about the first third, after the first and the last compression."""


async def measure_decay(engine: Engine, case: Case, strategy: str, budget: float) -> Decay | None:
    """Measure the decay of a case. None if it is too short or too little was kept at first."""
    parts = _parts(case.messages)
    if len(parts) <= COMPRESSIONS:
        return None
    early = (each for each in case.probes if each.evidence and max(each.evidence) < len(parts[0]))
    early_case = replace(case, probes=tuple(early))
    items: Sequence[str] = ()
    quotations: Sequence[str] = ()
    shares: list[tuple[float, float]] = []
    found: list[Evidence] = []
    async for session, view in _compressed(engine, case, parts, strategy, budget):
        if not shares:
            items, quotations = _kept(parts[0], view)
        total = len(items) + len(quotations)
        if total < FEWEST:
            return None
        exact, shown = ViewText(view), TextIndex(text_of(message.parts) for message in view)
        missing = [item for item in items if not exact.contains(item)]
        missing += [words for words in quotations if not shown.has_words(words)]
        lost = 0
        for words in missing:
            answer = await recall_found(session, f'"{words}"', max_tokens=_SEARCH_TOKENS)
            lost += not any(words in " ".join(each.text.split()) for each in answer.passages)
        shares.append((1 - len(missing) / total, 1 - lost / total))
        if len(shares) in (1, len(parts)) and (
            there := await measure_evidence(early_case, view, session)
        ):
            found.append(there)
    in_view, reachable = zip(*shares, strict=True)
    of_questions = (found[0], found[-1]) if found else None
    return Decay(len(items), len(quotations), in_view, reachable, of_questions)


async def measure_rules(
    engine: Engine, case: Case, strategy: str, budget: float, rules: Sequence[str]
) -> tuple[float, ...] | None:
    """Return the share of planted rules in view after each compression of a chain.

    Each rule is added to a message that a person typed in the first part of the case. None if the
    case is too short or has no typed words.
    """
    parts = _parts(case.messages)
    typed = [i for i, each in enumerate(parts[0] if parts else ()) if person_text(each)]
    if len(parts) <= COMPRESSIONS or not typed:
        return None
    first = list(parts[0])
    for number, rule in enumerate(rules):
        at = typed[number % len(typed)]
        first[at] = replace(first[at], parts=(*first[at].parts, Text(rule)), id=None)
    case = replace(case, id=f"{case.id} rules")
    shares: list[float] = []
    async for _, view in _compressed(engine, case, [first, *parts[1:]], strategy, budget):
        shown = TextIndex(text_of(message.parts) for message in view)
        shares.append(sum(map(shown.has_words, rules)) / len(rules))
    return tuple(shares)


async def _compressed(
    engine: Engine, case: Case, parts: Sequence[Sequence[Message]], strategy: str, budget: float
) -> AsyncIterator[tuple[Session, Sequence[Message]]]:
    """Append the parts to a session one by one; compress and yield the view after each."""
    tokens = sum(count_messages(case.messages))
    window = max(_SMALLEST, int(budget * tokens) if budget <= 1 else int(budget))
    model = f"evaluation:window-{window}"
    await engine.models.edit(
        model, max_input=window, max_output=window, retention_tokens=int(_RETENTION * window)
    )
    session = await engine.session(f"{case.id} chained", model=model)
    for part in parts:
        await session.append(*part)
        with suppress(CompressionError):  # perhaps there is nothing to compress
            await session.compress(strategy=strategy)
        yield session, (await session.prepare()).messages


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Split into a third and ten parts at legal cut points; empty if there are too few messages."""
    points = cut_points(messages)
    first = len(messages) // 3
    cuts = [0]
    for part in range(COMPRESSIONS):
        at = first + (len(messages) - first) * part // COMPRESSIONS
        point = next((point for point in points if point >= max(at, cuts[-1] + 1)), len(messages))
        cuts.append(point)
    ends = [*cuts[1:], len(messages)]
    return [messages[start:end] for start, end in zip(cuts, ends, strict=True) if end > start]


def _kept(
    summarized: Sequence[Message], view: Sequence[Message]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the items and the quotations that a view keeps of messages no longer in it."""
    standing = {text_of(message.parts) for message in view}
    gone = [message for message in summarized if text_of(message.parts) not in standing]
    shown = TextIndex(standing)
    quoted = (quotation(message, shown) for message in gone)
    items = [item for _, item in make_receipt(gone, view).with_fate("kept")]
    return items, list(dict.fromkeys(words for words in quoted if words))


MARKS = {"RIGHT": 1.0, "PARTLY": 0.5, "WRONG": 0.0}
_ANSWER_TOKENS = 1_024
_MARK_TOKENS = 256
"""Generous: models that reason do it within the limit, before they write."""


@dataclass(frozen=True, slots=True)
class AnswerMarks:
    """The mean mark of a model's answers: 1 is right, 0.5 partly, 0 wrong."""

    questions: int
    """Number of marked questions."""
    mark: float | None
    """None if no question was marked."""
    unmarked: int = 0
    """Questions whose answer got no valid mark."""
    model: str = ""
    """The model that answered and marked, as provider:model."""
    day: str = ""
    """The date on which it did, as 2026-05-07."""


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A model that answers questions and marks the answers."""

    gateway: Gateway
    connection: Connection

    async def ask(self, view: CondensedCase, question: str) -> str:
        """Return the model's answer from the view."""
        shown = f"<conversation>\n{transcript(view.messages)}\n</conversation>"
        prompt = f"{shown}\n\nQuestion: {escape(question)}"
        return await self._complete("answer", prompt, _ANSWER_TOKENS)

    async def mark(self, probe: Probe, answer: str) -> float:
        """Return the mark of an answer."""
        given = (
            f"Question: {escape(probe.question)}\n\nA right answer says: "
            f"{escape(probe.answer or '')}\n\nThe answer to mark: {escape(answer)}"
        )
        mark = (await self._complete("judge", given, _MARK_TOKENS)).strip().rstrip(".").upper()
        if mark not in MARKS:
            raise BadReplyError(
                f"{self.connection.name} marked an answer with {len(mark):,} characters that are "
                f"none of {', '.join(MARKS)}; ask another model"
            )
        return MARKS[mark]

    async def _complete(self, prompt: str, text: str, most: int) -> str:
        call = Call(
            (Message("user", (Text(text),)),),
            system=files(__package__).joinpath("prompts", f"{prompt}.txt").read_text("utf-8"),
            max_tokens=most,
            temperature=0.0,
        )
        reply = await self.gateway.complete(self.connection, call)
        return text_of(reply.message.parts)


async def mark_answers(case: Case, view: CondensedCase, judge: AnswerJudge) -> AnswerMarks | None:
    """Mark the answers to a case's questions. None if the data has no right answers."""
    probes = [probe for probe in case.probes if probe.answer]
    marks: list[float] = []
    for probe in probes:
        answer = await judge.ask(view, probe.question)
        with suppress(BadReplyError):
            marks.append(await judge.mark(probe, answer))
    if not probes:
        return None
    return AnswerMarks(
        len(marks),
        mean(marks) if marks else None,
        len(probes) - len(marks),
        judge.connection.name,
        datetime.now(UTC).date().isoformat(),
    )
