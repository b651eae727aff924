"""The library: functions that take a conversation in whatever form a program has it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold import tokens, wire
from enfold.errors import ConfigError, InputError
from enfold.messages import Conversation, Message

if TYPE_CHECKING:
    from enfold.engine import Engine
    from enfold.engine.stateless import Condensed
    from enfold.flush import Sink
    from enfold.ledger import Ledger
    from enfold.llm.calls import Gateway
    from enfold.llm.costs import Prices
    from enfold.summaries import Summarizer

Messages: TypeAlias = (
    Conversation | Sequence[Message] | Sequence[Mapping[str, Any]] | Mapping[str, Any]
)
"""A conversation, its messages, or the input of an API: a request body or its messages."""


def count(messages: str | Messages, tokenizer: str = tokens.DEFAULT) -> int:
    """The exact tokens of a conversation, or of one text.

    The wire format of a request body or an array of messages is recognised. A text is counted as
    it is; a message counts a few tokens of structure beside its content.
    """
    if isinstance(messages, str):
        return tokens.get(tokenizer).count(messages)
    return tokens.count_conversation(conversation_of(messages), tokenizer).total


async def condense(  # noqa: PLR0913 - a door's options, all but two by name
    messages: Messages,
    strategy: str | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    preset: str | Mapping[str, Any] | None = None,
    target: int | None = None,
    window: int | None = None,
    keep_tokens: int | None = None,
    tokenizer: str = tokens.DEFAULT,
    summarizer: Summarizer | None = None,
    profile: str | None = None,
    model: str | None = None,
) -> Condensed:
    """The conversation made smaller, with a report, and a ledger that `restore` undoes it with.

    The strategy is native if none is named. `config` is the strategy's own, as its JSON schema
    says; a `preset` has both, by name or as its file says. The conversation ends at or below
    `target` tokens, or 60 % of a `window`, if either is given and it can. `keep_tokens` of the
    newest stay verbatim, else what the config says. `summarizer` writes summaries; or models do, as
    in sessions with the `profile` of that name in the database that the settings name; the built-in
    one if neither is given. With the `model` that the conversation is for, as provider:model, the
    report says what every later request saves, if its prices are known.
    """
    from enfold import wiring
    from enfold.engine import stateless
    from enfold.settings import Settings
    from enfold.strategies import presets

    model_prices = _prices(model) if model is not None else None
    options = stateless.CondenseOptions(tokenizer, target, window, keep_tokens, model_prices)
    if summarizer is not None and profile is not None:
        raise ConfigError("a summarizer and a profile are given; one of them writes summaries")
    name, settled = presets.choose(preset, strategy, config)
    settings = Settings(strategy=name, strategy_config={name: settled})
    conversation = conversation_of(messages)
    raw: list[Any] | None = None
    if isinstance(messages, list) and all(isinstance(each, dict) for each in messages):
        raw = [dict(each) for each in messages]  # a program may change its messages meanwhile
    if summarizer is not None:
        chosen = wiring.make_strategy(settings, summarizer)
        return await stateless.condense(conversation, chosen, options, raw=raw)
    async with wiring.open_strategy(settings, profile) as chosen:
        return await stateless.condense(conversation, chosen, options, raw=raw)


def condense_sync(messages: Messages, strategy: str | None = None, **options: Any) -> Condensed:
    """`condense` for programs without an event loop."""
    return asyncio.run(condense(messages, strategy, **options))


def restore(messages: Any, ledger: Ledger | Mapping[str, Any]) -> Any:
    """Return the conversation of before `condense`, and the messages that were added after it.

    Messages that were altered since are named in an `enfold.ledger.AlteredWarning`.
    """
    from enfold.engine import stateless
    from enfold.ledger import Ledger

    written = ledger if isinstance(ledger, Ledger) else Ledger.from_json(ledger)
    return stateless.restore(messages, written)


def open(  # noqa: A001 - `enfold.open`, as other libraries have it
    url: str | None = None,
    *,
    sink: Sink | None = None,
    summarizers: Mapping[str, Summarizer] | None = None,
    gateway: Gateway | None = None,
) -> AbstractAsyncContextManager[Engine]:
    """The engine over a database: `async with enfold.open("sqlite:///chats.db") as engine`.

    Without an address it is the one the settings name. `sink` takes summarized messages in place of
    the built-in memory; `summarizers` are further ones by name; `gateway` asks models in place of
    the one that asks real ones.
    """
    from enfold.wiring import open_engine

    return open_engine(url, sink=sink, summarizers=summarizers, gateway=gateway)


def _prices(model: str) -> Prices | None:
    from enfold.llm.costs import prices

    provider, colon, name = model.partition(":")
    if not (provider and colon and name):
        raise ConfigError(f"model {model!r}: expected provider:model")
    return prices(provider, name)


def conversation_of(messages: Messages) -> Conversation:
    """The conversation that was meant."""
    if isinstance(messages, Conversation):
        return messages
    if isinstance(messages, Mapping):
        return wire.parse(messages)
    if not any(isinstance(each, Message) for each in messages):
        return wire.parse(list(messages))
    own = tuple(each for each in messages if isinstance(each, Message))
    if len(own) != len(messages):
        raise InputError("messages of enfold and of a wire format are mixed; give one kind")
    return Conversation(own, dialect=own[0].dialect)
