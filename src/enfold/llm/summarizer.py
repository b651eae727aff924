"""Summaries by a model: one call, and its answer only if it is a summary.

`ModelSummarizer` sends a transcript. `PrefixSummarizer` continues the conversation itself: the same
system prompt, tools and messages, then the instruction, so that the provider's prompt cache serves
nearly all of it.

An answer that is empty, cut off, a refusal or a call of a tool is never passed on. One that is too
long is: the caller then asks again, for less.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

from enfold.amounts import CallUsage, record_cost
from enfold.errors import BadReplyError, GatewayError, SummaryError
from enfold.llm.calls import Call, Connection, Gateway, ModelReply
from enfold.llm.costs import BilledTokens, Prices, cost_of
from enfold.messages import Message, Text, text_of
from enfold.modelconfig import ModelConfig
from enfold.summaries import Summary, SummaryRequest, Usage
from enfold.summaries.checks import refuse_no_summary
from enfold.summaries.prompts import build, build_continuation
from enfold.summaries.request import begin_call, divide, summarize_parts
from enfold.text.secrets import hide
from enfold.tokens import get

TEMPERATURE = 0.3
"""Low, so that the same conversation gives much the same summary."""

_SPARE = 2
"""A model may write so many times the limit: a summary that is too long can be asked for again,
one that was cut off is lost."""
_LEAST_OUTPUT = 4_096
"""Never allow less: models that reason do it within the limit, before they write."""

_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL | re.IGNORECASE)
_UNFINISHED_THINKING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelSummarizer:
    """Writes summaries with a model."""

    gateway: Gateway
    connection: Connection
    config: ModelConfig
    """The model's limits."""
    name: str
    prices: Prices | None = None
    tell: Callable[[CallUsage, float | None], None] = lambda _usage, _cost: None
    """Called with usage and cost of every reply, also of one that is not a summary."""

    @property
    def max_input(self) -> int:
        """The model's input limit, in counted tokens."""
        return self.config.limits.input

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the model's summary.

        A failed call is a `SummaryError`, an answer that is no summary a `NoSummaryError`.
        """
        prompt = build(request)
        call = Call(
            (Message("user", (Text(prompt.user),)),),
            system=prompt.system,
            max_tokens=self.max_output(request),
            temperature=TEMPERATURE,
        )
        reply = None
        try:
            # It is streamed, so that a slow model shows that it is at work.
            async for item in self.gateway.stream(self.connection, call):
                reply = item if isinstance(item, ModelReply) else None
            if reply is None:
                raise BadReplyError(
                    f"{self.connection.name} ended its answer without completing it"
                )
        except GatewayError as error:
            raise SummaryError(f"{self.name}: {error}") from error
        return self.accept(reply, request)

    def accept(self, reply: ModelReply, request: SummaryRequest) -> Summary:
        """Return the summary in a reply; its usage is recorded even if it has none."""
        usage = reply.usage
        cost = cost_of_call(usage, self.prices)
        self.tell(usage, cost)
        # Some servers leave the thinking before the answer.
        text = _THINKING.sub("", text_of(reply.message.parts), count=1).strip()
        failure = _failure(text, reply)
        if failure:
            raise SummaryError(f"{self.name}: {failure}; nothing was changed", cost=cost)
        refuse_no_summary(text, request, self.name, cost=cost)
        text = hide(text)
        return Summary(
            text,
            self.name,
            get(request.tokenizer).count(text),
            Usage(
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
            ),
            cost,
            is_checked=True,
        )

    def max_output(self, request: SummaryRequest) -> int:
        """Return the tokens that the model may write for a request."""
        wanted = max(_LEAST_OUTPUT, ceil(request.max_tokens * self.config.correction * _SPARE))
        return min(wanted, self.config.max_output or wanted)


class ConversationPrefix(Protocol):
    """A conversation as its model was sent it last."""

    @property
    def tokens(self) -> int:
        """Its tokens, with system prompt and tools."""
        ...

    @property
    def is_cached(self) -> bool:
        """True if the provider's prompt cache probably still holds it."""
        ...

    async def ask(self, instruction: str, max_output: int) -> ModelReply:
        """Return the model's reply to the instruction after the conversation.

        Raises `GatewayError` if there is none.
        """
        ...


async def summarize_divided(summarizer: ModelSummarizer, request: SummaryRequest) -> Summary:
    """Return the summarizer's summary, in parts if the request exceeds its input limit."""
    parts = divide(request, summarizer.max_input)

    async def write(part: SummaryRequest) -> Summary:
        begin_call()
        return await summarizer.summarize(part)

    if len(parts) == 1:
        return await write(parts[0])
    return await summarize_parts(summarizer.name, parts, write)


_CACHED_PRICE = 0.25
"""The price of a cached token relative to another one, if prices are unknown."""


@dataclass(slots=True)
class PrefixSummarizer:
    """Writes summaries with the conversation's own model, after the conversation's own prefix.

    The transcript is used instead where the prefix does not fit or costs more, and where the model
    does not answer with a summary.
    """

    by_transcript: ModelSummarizer
    prefix: ConversationPrefix
    has_failed: bool = False
    """True after a request that continues the prefix brought no summary."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.by_transcript.name

    @property
    def max_input(self) -> None:
        """No limit: the conversation fits the model, and a transcript is divided here."""
        return None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the model's summary, from the prefix or from a transcript."""
        instruction = build_continuation(request)
        is_usable = self.prefix.is_cached and not self.has_failed
        if not (is_usable and self._is_possible(request, instruction)):
            return await summarize_divided(self.by_transcript, request)
        failed: float | None = 0.0
        try:
            most = self.by_transcript.max_output(request)
            reply = await self.prefix.ask(instruction, most)
            return self.by_transcript.accept(reply, request)
        except GatewayError as error:
            reason: Exception = error
        except SummaryError as error:
            reason, failed = error, error.cost
        record_cost(failed)
        self.has_failed = True
        summary = await summarize_divided(self.by_transcript, request)
        note = f"written from a transcript, because the conversation's own prefix failed: {reason}"
        return replace(summary, notes=(*summary.notes, note))

    def _is_possible(self, request: SummaryRequest, instruction: str) -> bool:
        """Return True if the request fits, and costs less than a transcript of the messages."""
        config, prefix = self.by_transcript.config, self.prefix.tokens
        prompt = build(request)
        count = get(request.tokenizer).count_many
        new, *written = count([instruction, prompt.system, prompt.user])
        output = ceil(self.by_transcript.max_output(request) / config.correction)
        sent, limits = prefix + new, config.limits
        if sent > limits.input or sent + output > limits.window:
            return False
        prices = self.by_transcript.prices
        cached = cost_of(prices, BilledTokens(new, cache_reads=prefix)).total
        plain = cost_of(prices, BilledTokens(sum(written))).total
        if cached is None or plain is None:
            return new + prefix * _CACHED_PRICE < sum(written)
        return cached < plain


def _failure(text: str, reply: ModelReply) -> str:
    """Return the reason why the reply has no complete text; empty if it has one."""
    if reply.ending == "length":
        return "the answer was cut off before its end"
    if reply.ending == "tool_call":
        return "the model called a tool instead of writing a summary"
    if not text:
        return "the answer was empty"
    if _UNFINISHED_THINKING.match(text):
        return "the model was still thinking when its answer ended"
    return ""


def cost_of_call(usage: CallUsage, prices: Prices | None) -> float | None:
    """US dollars of one call of the gateway; None if a price or a count is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    billed = BilledTokens.reported(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_write_tokens or 0,
        usage.cache_read_tokens or 0,
        includes_cached=True,  # the gateway always counts them in the input
    )
    return cost_of(prices, billed).total
