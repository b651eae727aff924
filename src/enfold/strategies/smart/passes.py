"""Passes: which messages one selects, and what it makes of them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import ceil
from typing import Any, TypeAlias

from enfold.amounts import track_spending
from enfold.condensation import (
    TIGHTEST_SUMMARY,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    SummarizedMessages,
    removed_parts,
)
from enfold.errors import CompressionError, EnfoldError, InputError, SummaryError
from enfold.history import answers_a_call, cut_points, is_from_user, last_user_message
from enfold.jsontext import dump_text, loads
from enfold.ledger import Shortening, without_sources
from enfold.messages import (
    Data,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from enfold.receipt import ItemReview
from enfold.retention import Split, Zones
from enfold.standing_instructions import is_instruction
from enfold.strategies.contract import CHEAPEST, Summarizers
from enfold.strategies.native import is_worth_summarizing, write_summary
from enfold.strategies.shortened_text import (
    SUPPRESSED,
    Edit,
    TextLimits,
    map_texts,
    suppress,
    truncate,
)
from enfold.strategies.smart.config import (
    IndividualConfig,
    OperationConfig,
    Operations,
    Pass,
    Selection,
    SummarizationConfig,
    Summarize,
)
from enfold.summaries import Summarizer, Summary, SummaryRequest, fence_tokens, summary_tokens
from enfold.summaries.local import LOCAL, LocalSummarizer
from enfold.summaries.request import add_words, style_for, take_words, words_tokens
from enfold.text.inventions import Invention
from enfold.tokens import Tokenizer, compute_async, count_messages, get


@dataclass(frozen=True, slots=True)
class MessageContent:
    """A message's content by type; None where it has none of a type."""

    message_text: str | None = None
    tool_parameters: tuple[Any, ...] | None = None
    """For each call its arguments: an object, or text that holds none."""
    tool_results: tuple[tuple[Any, ...], ...] | None = None
    """For each result its texts and JSON values."""


CONTENT_TYPES = ("message_text", "tool_parameters", "tool_results")
_PARTS = dict(zip(CONTENT_TYPES, (Text, ToolCall, ToolResult), strict=True))


def decompose(message: Message) -> MessageContent:
    """The message's content by type."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    return MessageContent(
        "\n\n".join(texts) if texts else None,
        tuple(map(_arguments, calls)) if calls else None,
        tuple(map(_contents, results)) if results else None,
    )


def recompose(
    original: Message, content: MessageContent, before: MessageContent | None = None
) -> Message:
    """The message with other content; `before` is its content if it was read already.

    Text that is new stands where the first text stood, in place of all texts. A message that is
    edited loses its reasoning, which is signed for the message as it was.
    """
    before = before or decompose(original)
    if content == before:
        return original
    keeps_texts = content.message_text == before.message_text
    parameters = iter(content.tool_parameters or ())
    results = iter(content.tool_results or ())
    parts: list[Part] = []
    has_text = keeps_texts
    for part in original.parts:
        match part:
            case ToolCall():
                parts.append(_with_arguments(part, next(parameters, _arguments(part))))
            case ToolResult():
                parts.append(_with_contents(part, next(results, _contents(part))))
            case Text() if not keeps_texts:
                if not has_text and content.message_text is not None:
                    parts.append(replace(part, text=content.message_text))
                has_text = True
            case Reasoning():
                continue
            case _:
                parts.append(part)
    if not has_text and content.message_text is not None:
        parts.insert(0, Text(content.message_text))
    return replace(original, parts=tuple(parts))


def _arguments(call: ToolCall) -> Any:
    """An object, where the arguments are one or a text that holds one."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        value = loads(call.arguments)
    except InputError:
        return call.arguments
    return value if isinstance(value, dict) else call.arguments


def _with_arguments(call: ToolCall, arguments: Any) -> ToolCall:
    if arguments == _arguments(call):
        return call
    is_text = isinstance(call.arguments, str) and isinstance(arguments, Mapping)
    return replace(call, arguments=dump_text(arguments) if is_text else arguments)


def _contents(result: ToolResult) -> tuple[Any, ...]:
    return tuple(_content(result.parts))


def _content(parts: tuple[ResultPart, ...]) -> Iterator[Any]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case Data(value):
                yield value


def _with_contents(result: ToolResult, contents: tuple[Any, ...]) -> ToolResult:
    if contents == _contents(result):
        return result
    new = iter(contents)
    parts: list[ResultPart] = []
    for part in result.parts:
        match part:
            case Text():
                parts.append(replace(part, text=next(new)))
            case Data():
                parts.append(replace(part, value=next(new)))
            case _:
                parts.append(part)
    return replace(result, parts=tuple(parts))


SUMMARIZED = "⟨ Summary, not the original words ⟩"


@dataclass(frozen=True, slots=True)
class TextToSummarize:
    """A text that is to be summarized, whose it is, and how."""

    text: str
    role: Role
    how: Summarize


Summaries: TypeAlias = Mapping[TextToSummarize, str]


@dataclass(frozen=True, slots=True)
class Editor:
    """Applies operations to messages."""

    tokenizer: Tokenizer
    summaries: Summaries

    def edit(self, message: Message, operations: Operations) -> Message:
        """The message with the operations applied; the very same if nothing changes."""
        if not _changes(operations).intersection(map(type, message.parts)):
            return message
        content = decompose(message)
        edited = MessageContent(
            self._mapped(content.message_text, operations.message_text, message.role),
            self._mapped(content.tool_parameters, operations.tool_parameters, "tool"),
            self._results(message, content, operations.tool_results),
        )
        return recompose(message, edited, content)

    def _mapped(self, content: Any, operation: OperationConfig, role: Role) -> Any:
        if operation.operation == "keep":
            return content
        return _mapped(content, self._edit(operation, role))

    def _results(
        self, message: Message, content: MessageContent, operation: OperationConfig
    ) -> tuple[tuple[Any, ...], ...] | None:
        if content.tool_results is None or operation.operation == "keep":
            return content.tool_results
        edit = self._edit(operation, "tool")
        results = (part for part in message.parts if isinstance(part, ToolResult))
        return tuple(
            each if result.is_error and operation.operation == "suppress" else _mapped(each, edit)
            for result, each in zip(results, content.tool_results, strict=True)
        )

    def _edit(self, operation: OperationConfig, role: Role) -> Edit:
        if operation.operation == "suppress":
            return lambda text: suppress(text, self.tokenizer)
        if operation.operation == "truncate":
            limits = _limits(operation)
            return lambda text: truncate(text, limits, self.tokenizer)
        how = operation.summarize
        return lambda text: self.summaries.get(TextToSummarize(text, role, how), text)


@lru_cache(maxsize=64)
def _changes(operations: Operations) -> frozenset[type[Part]]:
    """Return the types of the parts that the operations may change."""
    return frozenset(
        part for name, part in _PARTS.items() if getattr(operations, name).operation != "keep"
    )


def operations_for(index: int, config: IndividualConfig) -> Operations:
    """The operations for a message: the defaults, with what is said of it alone laid over them."""
    found = config.defaults
    for override in config.overrides:
        if override.message_index == index:
            some = {
                name: value
                for name in type(found).model_fields
                if (value := getattr(override.operations, name)) is not None
            }
            found = found.model_copy(update=some)
    return found


def texts_to_summarize(
    message: Message, operations: Operations, tokenizer: Tokenizer
) -> Iterator[TextToSummarize]:
    """The texts of a message that are to be summarized, and are longer than their summaries."""
    chosen = [name for name in CONTENT_TYPES if getattr(operations, name).operation == "summarize"]
    content = decompose(message) if chosen else MessageContent()
    for name in chosen:
        operation: OperationConfig = getattr(operations, name)
        role: Role = message.role if name == "message_text" else "tool"
        for text in _texts(getattr(content, name)):
            if _is_long(text, operation.summarize.max_tokens, tokenizer):
                yield TextToSummarize(text, role, operation.summarize)


def marked(summary: str) -> str:
    """A summary as it stands in place of a text."""
    return f"{SUMMARIZED}\n{summary.strip()}"


def _is_long(text: str, tokens: int, tokenizer: Tokenizer) -> bool:
    if text.startswith((SUMMARIZED, SUPPRESSED)) or len(text) <= tokens:
        return False
    return tokenizer.count(text) > tokens + tokenizer.count(SUMMARIZED)


@lru_cache(maxsize=64)
def _limits(operation: OperationConfig) -> TextLimits:
    how = operation.truncate
    return TextLimits(
        how.max_lines,
        how.max_chars,
        head_and_tail=how.head_and_tail,
        with_marker=how.add_ellipsis,
        keep_errors=how.keep_errors,
    )


def _mapped(content: Any, edit: Edit) -> Any:
    """Content with its texts edited: a text, or arguments and results with texts inside."""
    if isinstance(content, tuple):
        return tuple(_mapped(each, edit) for each in content)
    return map_texts(content, edit)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from _texts(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value)


@dataclass(frozen=True)
class WorkingView:
    """The view between two passes."""

    plan: Plan
    edits: Mapping[int, EditedMessage]
    summarized: SummarizedMessages | None = None

    @classmethod
    def begin(cls, plan: Plan) -> WorkingView:
        """Nothing done yet."""
        return cls(plan, {})

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """Indexes of the messages that are not summarized."""
        every = range(len(self.plan.messages))
        if self.summarized is None:
            return tuple(every)
        summarized = set(self.summarized.indexes)
        return tuple(i for i in every if i not in summarized)

    @cached_property
    def tokens(self) -> int:
        """The tokens of the view now."""
        counts, summarized = self.plan.counts, self.summarized
        total = sum(counts) + sum(edit.tokens - counts[i] for i, edit in self.edits.items())
        if summarized is None:
            return total + self.plan.previous_tokens
        return total + summarized.tokens - sum(map(self.count, summarized.indexes))

    @cached_property
    def entries(self) -> tuple[CondensationEntry, ...]:
        """The entries of the view; the summary stands in place of the first message it replaces.

        It never stands after an earlier summary that it takes in.
        """
        entries: list[CondensationEntry] = [self.edits.get(i) or KeptMessage(i) for i in self.shown]
        if self.summarized is not None:
            entries.insert(self._place(self._summary_at), self.summarized)
        return tuple(entries)

    def material(self, index: int) -> Message:
        """Return a message to edit or summarize, without markers that point to other messages."""
        edit = self.edits.get(index)
        return self.plan.messages[index] if edit is None or edit.shortenings else edit.message

    def count(self, index: int) -> int:
        """Return the tokens of a message now."""
        return self.edits[index].tokens if index in self.edits else self.plan.counts[index]

    @property
    def rest(self) -> Plan:
        """The shown messages as a plan, for another strategy."""
        plan, messages, summary = self.plan, self.messages, self.summarized
        zones = plan.zones or Zones(plan.split.head, plan.split.cut)
        first, recent = self._place(zones.first), self._place(zones.recent)
        return replace(
            plan,
            messages=tuple(messages[i] for i in self.shown),
            counts=tuple(self.count(i) for i in self.shown),
            split=Split(first, recent, tail_tokens=0),
            zones=Zones(first, recent),
            previous=summary.text if summary is not None else plan.previous,
            previous_tokens=summary.tokens if summary is not None else plan.previous_tokens,
            previous_at=self._place(self._summary_at),
            originals={},
        )

    def with_shortened(self, edits: Iterable[EditedMessage]) -> WorkingView:
        """With messages of the rest that were shortened without loss.

        What was edited before is not shortened as well: it could no longer be told how it was.
        """
        shown = self.shown
        new = {shown[edit.index]: _renumbered(edit, shown) for edit in edits}
        return replace(self, edits={**new, **self.edits}).with_what_holds({})

    def with_edited(self, messages: Mapping[int, Message]) -> WorkingView:
        """With messages that were edited, each if it is smaller now.

        An edit of what others point to puts those back, or has them edited too. Where that takes
        more tokens than it saves, what is pointed to stays as it is.
        """
        counts = count_messages(list(messages.values()), self.plan.tokenizer)
        edits = {
            index: EditedMessage(index, message, tokens)
            for (index, message), tokens in zip(messages.items(), counts, strict=True)
            if tokens < self.plan.counts[index]
        }
        smaller = {i: edit for i, edit in edits.items() if edit.tokens < self.count(i)}
        freely = replace(self, edits={**self.edits, **smaller}).with_what_holds(edits, smaller)
        sources = self._sources
        if not sources.intersection(smaller):
            return freely
        spared = {i: edit for i, edit in smaller.items() if i not in sources}
        sparing = replace(self, edits={**self.edits, **spared})
        return freely if freely.tokens < sparing.tokens else sparing

    def with_summarized(
        self, summarized: SummarizedMessages, excerpts: Mapping[int, EditedMessage]
    ) -> WorkingView:
        """Return the view with a summary, in place of the one that was there.

        Edits that point to a summarized message are put back. Excerpts replace their messages.
        """
        kept = {i: edit for i, edit in self.edits.items() if i not in summarized.indexes}
        return replace(self, summarized=summarized, edits=kept).with_excerpts(excerpts)

    def with_excerpts(self, excerpts: Mapping[int, EditedMessage]) -> WorkingView:
        """Return the view with parts of messages in place of the whole."""
        return replace(self, edits={**self.edits, **excerpts}).with_what_holds({})

    def with_what_holds(
        self, instead: Mapping[int, EditedMessage], changed: Collection[int] | None = None
    ) -> WorkingView:
        """Without shortened texts whose sources are no longer shown as they were.

        `instead` are edits to show in place of those; the others are shown in full again. Sources
        that are not in `changed` are shown as they were; None is all.
        """
        now = self
        while wrong := without_sources(now.messages, now._pointing_to(changed)):
            edits = {i: edit for i, edit in now.edits.items() if i not in wrong}
            edits.update({i: instead[i] for i in wrong if i in instead})
            now, changed = replace(now, edits=edits), wrong
        return now

    def _pointing_to(self, changed: Collection[int] | None) -> dict[int, tuple[Shortening, ...]]:
        """The lossless shortenings that use any of these messages."""
        if changed is None:
            return self.shortenings
        return {
            index: shortenings
            for index, shortenings in self.shortenings.items()
            if any(source.message in changed for each in shortenings for source in each.sources)
        }

    @cached_property
    def messages(self) -> dict[int, Message]:
        """The shown messages by index."""
        found = dict(zip(self.shown, map(self.plan.messages.__getitem__, self.shown), strict=True))
        found.update((i, edit.message) for i, edit in self.edits.items() if i in found)
        return found

    @cached_property
    def shortenings(self) -> dict[int, tuple[Shortening, ...]]:
        """The lossless shortenings by message index."""
        return {i: edit.shortenings for i, edit in self.edits.items() if edit.shortenings}

    @property
    def _sources(self) -> set[int]:
        """The messages that others point to."""
        return {
            source.message
            for shortenings in self.shortenings.values()
            for each in shortenings
            for source in each.sources
        }

    @property
    def _summary_at(self) -> int:
        """The index before which the summary stands."""
        previous_at = self.plan.previous_at
        if self.summarized is None:
            return previous_at
        first = min(self.summarized.indexes)
        return min(first, previous_at) if self.plan.previous is not None else first

    def _place(self, index: int) -> int:
        """Return the number of shown messages before an index."""
        return bisect_left(self.shown, index)


def _renumbered(edit: EditedMessage, shown: Sequence[int]) -> EditedMessage:
    """An edit of the rest with the indexes of the whole."""
    shortenings = tuple(
        replace(
            each,
            sources=tuple(
                replace(source, message=shown[source.message]) for source in each.sources
            ),
        )
        for each in edit.shortenings
    )
    return replace(edit, index=shown[edit.index], shortenings=shortenings)


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """Writes the summaries of one run and collects their costs and warnings."""

    means: Summarizers
    turns: asyncio.Semaphore
    costs: list[float | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    invented: list[Invention] = field(default_factory=list)
    """Items and quotations of summaries that their inputs do not have."""

    async def write(
        self,
        profile: str | None,
        request: SummaryRequest,
        review: ItemReview | None = None,
        *,
        most: int | None = None,
    ) -> Summary:
        """A summary by the profile's model, when it is its turn; see `write_summary`."""
        async with self.turns:
            with track_spending() as spent:
                writer = self._summarizer(profile)
                try:
                    written = await write_summary(writer, request, review, most=most)
                except EnfoldError:
                    raise
                except Exception as error:
                    # A third party's summarizer may raise anything; its words may quote a message.
                    if type(writer).__module__.startswith("enfold.summaries"):
                        raise
                    raise SummaryError(f"{writer.name} failed: {type(error).__name__}") from error
                finally:
                    self.costs.append(spent.total())
        self.invented.extend(written.invented)
        self._warn(*written.summary.notes)
        return written.summary

    def _summarizer(self, profile: str | None) -> Summarizer:
        """The profile's; the one in use, and a warning, where there is no such profile.

        Without profiles the built-in summarizer is the cheapest.
        """
        if profile is None:
            return self.means.summarizer
        if profile == LOCAL:
            return LocalSummarizer()
        try:
            return self.means.by_profile(profile)
        except SummaryError as error:
            if profile == CHEAPEST:
                return LocalSummarizer()
            self._warn(f"{error}; {self.means.summarizer.name} writes instead")
            return self.means.summarizer

    def _warn(self, *notes: str) -> None:
        self.warnings.extend(note for note in notes if note not in self.warnings)


def selected(selection: Selection, working: WorkingView) -> tuple[int, ...]:
    """Indexes of the messages that a pass processes, of those that are still shown.

    System messages are instructions, and left alone unless their role is asked for.
    """
    shown, messages = working.shown, working.plan.messages
    if selection.type == "custom":
        found = [
            index
            for index in shown
            if (selection.indexes is None or index in selection.indexes)
            and (selection.roles is None or messages[index].role in selection.roles)
        ]
    else:
        percent = selection.keep_percentage or 0.0
        spared = (
            selection.keep_recent_count or 0
            if selection.type == "preserve_recent"
            else ceil(len(shown) * percent / 100)
        )
        found = list(shown[: max(0, len(shown) - spared)])
    allowed = selection.roles or ()
    return tuple(
        index for index in found if "system" in allowed or not is_instruction(messages[index])
    )


def messages_touched(step: Pass, working: WorkingView) -> frozenset[int]:
    """Indexes of the messages that a pass may summarize or edit."""
    if step.mode == "batch":
        return _to_summarize(step, working)
    return frozenset(selected(step.selection, working)).intersection(working.plan.editable)


async def run_pass(
    step: Pass, working: WorkingView, writer: SummaryWriter, *, is_last: bool = False
) -> WorkingView:
    """Run one pass and return the view after it.

    The last pass goes further than its config says if the target needs it.
    """
    if step.mode == "batch":
        return await _batch(step, working, writer, is_last=is_last)
    return await _individual(step, working, writer)


async def _batch(
    step: Pass, working: WorkingView, writer: SummaryWriter, *, is_last: bool
) -> WorkingView:
    """Old messages become one summary, which takes in the one before."""
    if step.batch_config is None or step.batch_config.operation == "keep":
        return working
    new = _to_summarize(step, working)
    excerpts: Mapping[int, EditedMessage] = {}
    plan = working.plan
    if is_last and plan.target is not None and _expected(working, new) > plan.target:
        new, excerpts = _more_to_summarize(working)
    if not new:
        return working.with_excerpts(excerpts)
    how = step.batch_config.summarization_config
    earlier = working.summarized
    tokens = sum(working.count(index) for index in new)
    written = earlier.text if earlier is not None else plan.previous
    previous, words = (None, ()) if written is None else take_words(written)
    quotes = [text for index, text in plan.quotes.items() if index in new]
    most = None
    if plan.target is not None:
        most = plan.target - _tokens_without_summary(working, new, excerpts)
        most -= words_tokens((*words, *quotes), plan.tokenizer)
    limit = _summary_limit(working, tokens)
    # A small target is planned with a shorter summary than others have.
    shortest = min(TIGHTEST_SUMMARY, plan.summary_tokens)
    request = SummaryRequest(
        messages=tuple(_summarized_messages(working, new, excerpts)),
        previous=previous,
        recent=_recent(working, new) if plan.show_recent else (),
        max_tokens=limit if most is None else max(shortest, min(limit, most)),
        tokenizer=plan.tokenizer,
        style=style_for((plan.messages[index] for index in new), previous),
        prompt=how.custom_prompt,
    )
    review = None
    if writer.means.reviewed:
        review = await compute_async(_review, working, request, new)
    summary = await writer.write(how.api_profile, request, review, most=most)
    indexes = tuple(sorted({*new, *(earlier.indexes if earlier is not None else ())}))
    text = add_words(summary.text, (*words, *quotes))
    size = summary_tokens(text, plan.tokenizer)
    return working.with_summarized(
        SummarizedMessages(indexes, text, size, summary.author), excerpts
    )


def _more_to_summarize(
    working: WorkingView,
) -> tuple[frozenset[int], Mapping[int, EditedMessage]]:
    """Return the messages that a summary must replace to reach the target, and excerpts to show.

    The oldest messages go first, whatever their role. If that is not enough, all messages go that
    the plan lets go, and only excerpts stay of those that it shortens.
    """
    plan = working.plan
    last = last_user_message(plan.messages)
    candidates = {index for index in plan.split.summarized if index != last}
    staying = {*plan.split.kept, last}
    found = _whole_groups(working, candidates, staying, stop_at_target=True)
    if found and _expected(working, found) <= (plan.target or 0):
        return found, {}
    found = _whole_groups(working, candidates, staying, stop_at_target=False)
    shown = set(working.shown)
    return found, {i: edit for i, edit in plan.excerpts.items() if i in shown and i not in found}


def _expected(working: WorkingView, indexes: Collection[int]) -> int:
    """Return the most tokens of the view after these messages are summarized."""
    if not indexes:
        return working.tokens
    tokens = sum(working.count(index) for index in indexes)
    return _tokens_without_summary(working, indexes, {}) + _summary_limit(working, tokens)


def _tokens_without_summary(
    working: WorkingView, indexes: Collection[int], excerpts: Mapping[int, EditedMessage]
) -> int:
    """Return the tokens of the view after these messages are summarized, without the summary.

    Content that markers point to is counted where it must be put back.
    """
    earlier = working.summarized.indexes if working.summarized is not None else ()
    empty = SummarizedMessages(tuple(sorted({*indexes, *earlier})), "", 0, "")
    after = working.with_summarized(empty, excerpts)
    return after.tokens + fence_tokens(working.plan.tokenizer)


def _summarized_messages(
    working: WorkingView, indexes: Collection[int], excerpts: Mapping[int, EditedMessage]
) -> Iterator[Message]:
    """Yield what a summarizer reads: the messages, and what excerpts leave out of others."""
    for index in sorted({*indexes, *excerpts}):
        message = _material(working, index)
        is_excerpt = index in excerpts
        yield removed_parts(message, excerpts[index].message) if is_excerpt else message


def _review(working: WorkingView, request: SummaryRequest, new: Collection[int]) -> ItemReview:
    """Return the review of a summary that takes the place of the new messages."""
    plan = working.plan
    earlier = (Message("system", (Text(request.previous),)),) if request.previous else ()
    return ItemReview(
        (*earlier, *request.messages),
        [message for index, message in working.messages.items() if index not in new],
        plan.restorable_by is not None,
        by=plan.restorable_by,
        summary_tokens=request.max_tokens,
    )


def _to_summarize(step: Pass, working: WorkingView) -> frozenset[int]:
    """The messages that a batch summarizes: whole tool groups only, never what must stay."""
    config = step.batch_config
    if config is None or config.operation == "keep":
        return frozenset()
    plan = working.plan
    chosen = _without_ends(selected(step.selection, working), config.summarization_config, working)
    last = last_user_message(plan.messages)
    allowed = {index for index in plan.split.summarized if index != last}
    candidates = allowed.intersection(chosen)
    staying = {*plan.split.kept, last}
    if config.summarization_config.keep_user_messages:
        messages = plan.messages
        typed = {i for i in candidates if is_from_user(messages[i])}
        staying |= typed
        candidates -= {i for i in typed if not answers_a_call(messages[i])}
    found = _whole_groups(working, candidates, staying, stop_at_target=True)
    return found if is_worth_summarizing(plan, found) else frozenset()


def _whole_groups(
    working: WorkingView,
    candidates: Collection[int],
    staying: Collection[int | None],
    *,
    stop_at_target: bool,
) -> frozenset[int]:
    """Return the candidates of groups that can leave the view without breaking a tool pair.

    Of such a group only messages of `staying` may remain. With `stop_at_target` the oldest groups
    go, and only as many as the target needs.
    """
    messages = working.plan.messages
    shown = set(working.shown)
    found: set[int] = set()
    tokens = 0
    for first, end in pairwise(cut_points(messages)):
        group = {index for index in range(first, end) if index in shown}
        leaving = group.intersection(candidates)
        stays = group - leaving
        if stays.issubset(staying) and not any(answers_a_call(messages[i]) for i in stays):
            found |= leaving
            tokens += sum(map(working.count, leaving))
            if stop_at_target and _is_enough(working, tokens):
                break
    return frozenset(found)


def _is_enough(working: WorkingView, tokens: int) -> bool:
    """Return True if the view meets the target after this many tokens are summarized."""
    plan = working.plan
    if plan.target is None:
        return False
    summary = fence_tokens(plan.tokenizer) + _summary_limit(working, tokens)
    earlier = working.summarized.tokens if working.summarized is not None else plan.previous_tokens
    return working.tokens - earlier - tokens + summary <= plan.target


def _summary_limit(working: WorkingView, tokens: int) -> int:
    """Return the most tokens of a summary that replaces this many."""
    return max(TIGHTEST_SUMMARY, min(working.plan.summary_tokens, tokens // 2))


def _without_ends(
    chosen: Sequence[int], how: SummarizationConfig, working: WorkingView
) -> Sequence[int]:
    """Return the messages without the first and last that stay; none is first after a summary."""
    summary_at = _summary_at(working)
    first = [index for index in chosen if summary_at is None or index < summary_at]
    spared = set(first[: how.keep_first])
    kept = [index for index in chosen if index not in spared]
    return kept[: max(0, len(kept) - how.keep_last)]


def _summary_at(working: WorkingView) -> int | None:
    if working.summarized is not None:
        return min(working.summarized.indexes)
    return working.plan.previous_at if working.plan.previous is not None else None


def _material(working: WorkingView, index: int) -> Message:
    """Return a message for the summarizer, uncut if an earlier compression cut it."""
    plan = working.plan
    return working.material(index) if index in working.edits else plan.original(index)


def _recent(working: WorkingView, summarized: Iterable[int]) -> tuple[Message, ...]:
    last, end = max(summarized), working.plan.recent_end
    return tuple(
        working.material(index)
        for index in working.shown
        if index > last and (end is None or index < end)
    )


async def _individual(step: Pass, working: WorkingView, writer: SummaryWriter) -> WorkingView:
    """Edit messages one by one, each type of content as its operation says.

    With a target the oldest messages go first, a few at a time, until the target is met.
    """
    config = step.individual_config
    if config is None:
        return working
    chosen = sorted(messages_touched(step, working))
    target = working.plan.target
    start, end = 0, len(chosen)
    while start < len(chosen):
        if target is not None:
            if working.tokens <= target:
                break
            end = _end_of_step(chosen, start, working, working.tokens - target)
        working = await _edit(step, config, chosen[start:end], working, writer)
        start = end
    return working


def _end_of_step(chosen: Sequence[int], start: int, working: WorkingView, surplus: int) -> int:
    """Return the end of the messages that are edited before the target is looked at again.

    An edit saves at most the tokens of its message, so that fewer tokens than the surplus cannot
    reach the target; the last messages of a step may.
    """
    sizes = accumulate(working.count(index) for index in chosen[start:])
    needed = sum(size < surplus for size in sizes)
    return start + _AT_ONCE * (1 + needed // _AT_ONCE)


def saved_by_operation(step: Pass, before: WorkingView, after: WorkingView) -> dict[str, int]:
    """Return the tokens that each operation of a pass saved, by the type of content."""
    config = step.individual_config
    if step.mode == "batch" or config is None:
        return {"summarize": before.tokens - after.tokens} if after is not before else {}
    tokenizer = get(before.plan.tokenizer)
    saved: dict[str, int] = {}
    for index in after.edits:
        if after.edits[index] is before.edits.get(index):
            continue
        operations = operations_for(index, config)
        changed = [name for name in CONTENT_TYPES if _PARTS[name] in _changes(operations)]
        old = new = MessageContent()
        if len(changed) != 1:
            old, new = decompose(before.messages[index]), decompose(after.messages[index])
            changed = [name for name in CONTENT_TYPES if getattr(old, name) != getattr(new, name)]
        rest = before.count(index) - after.count(index)
        for name in changed:
            tokens = rest
            if name != changed[-1]:  # the last one also saves what belongs to no type
                tokens = _content_tokens(old, name, tokenizer) - _content_tokens(
                    new, name, tokenizer
                )
            rest -= tokens
            operation = f"{getattr(operations, name).operation} {name}"
            saved[operation] = saved.get(operation, 0) + tokens
    return saved


def _content_tokens(content: MessageContent, name: str, tokenizer: Tokenizer) -> int:
    return sum(tokenizer.count_many(list(_texts(getattr(content, name)))))


_AT_ONCE = 8
"""Messages that are edited before the size of the view is compared with the target, at least."""


async def _edit(
    step: Pass,
    config: IndividualConfig,
    indexes: Sequence[int],
    working: WorkingView,
    writer: SummaryWriter,
) -> WorkingView:
    tokenizer = get(working.plan.tokenizer)
    chosen = {index: (working.material(index), operations_for(index, config)) for index in indexes}
    wanted = dict.fromkeys(
        text
        for message, operations in chosen.values()
        for text in texts_to_summarize(message, operations, tokenizer)
    )
    editor = Editor(tokenizer, await _summaries(step, list(wanted), working.plan, writer))
    edited = {
        index: new
        for index, (message, operations) in chosen.items()
        if (new := editor.edit(message, operations)) is not message
    }
    return working.with_edited(edited)


async def _summaries(
    step: Pass, wanted: Sequence[TextToSummarize], plan: Plan, writer: SummaryWriter
) -> Mapping[TextToSummarize, str]:
    """Summaries of all texts, written side by side; a text that none was made of is left out."""
    done = await asyncio.gather(
        *(_summary(text, plan, writer) for text in wanted), return_exceptions=True
    )
    failures = [each for each in done if isinstance(each, BaseException)]
    for failure in failures:
        if not isinstance(failure, CompressionError):
            raise failure
    if failures and len(failures) == len(done):
        raise failures[0]
    if failures:
        writer.warnings.append(
            f"{step.id}: {len(failures)} of {len(done)} summaries failed, their texts stay as they "
            f"are: {failures[0]}"
        )
    return {text: each for text, each in zip(wanted, done, strict=True) if isinstance(each, str)}


async def _summary(wanted: TextToSummarize, plan: Plan, writer: SummaryWriter) -> str:
    request = SummaryRequest(
        messages=(Message(wanted.role, (Text(wanted.text),)),),
        max_tokens=wanted.how.max_tokens,
        tokenizer=plan.tokenizer,
        prompt=wanted.how.custom_prompt,
    )
    return marked((await writer.write(wanted.how.api_profile, request)).text)
