"""OpenHands: a turn after earlier compressions, and one compression, by tokens."""

import logging
import os
import types

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")

from openhands.sdk.agent.utils import prepare_llm_messages
from openhands.sdk.context.condenser.llm_summarizing_condenser import LLMSummarizingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import Condensation, MessageEvent
from openhands.sdk.event.base import LLMConvertibleEvent
from openhands.sdk.llm import LLM, Message, TextContent
from pydantic import SecretStr
from stopwatch import KEEP_TOKENS, KEPT, SUMMARY, peak, start, timed, turns

logging.disable(logging.CRITICAL)
LIMIT = 10**9


def answer_at_once(*_arguments, **_options):
    """A response without a model."""
    reply = Message(role="assistant", content=[TextContent(text=SUMMARY)])
    return types.SimpleNamespace(message=reply, id="answer")


LLM.generate = answer_at_once


def model(limit):
    """Return a model with this window."""
    return LLM(model="gpt-4o", api_key=SecretStr("x"), usage_id="bench", max_input_tokens=limit)


def native(messages):
    """Return the messages as events; a system prompt becomes a user message."""
    return [_native(number, message) for number, message in enumerate(messages)]


def _native(number, message):
    is_agent = message["role"] == "assistant"
    reply = Message(
        role="assistant" if is_agent else "user", content=[TextContent(text=message["content"])]
    )
    return MessageEvent(
        source="agent" if is_agent else "user",
        llm_message=reply,
        llm_response_id=f"r{number}" if is_agent else None,
    )


def condenser(limit):
    """Return a condenser with this limit in tokens."""
    return LLMSummarizingCondenser(llm=model(limit), max_size=LIMIT, max_tokens=limit, keep_first=2)


def one_turn(messages):
    """Measure a turn: all events are kept, the view omits the summarized ones."""
    events, view = native(messages), View()
    for event in events:
        view.append_event(event)
    old = events[2:-KEPT]
    if old:
        view.append_event(
            Condensation(
                forgotten_event_ids={event.id for event in old},
                summary=SUMMARY,
                summary_offset=2,
                llm_response_id="r",
            )
        )
    large, summarizer = model(LIMIT), condenser(LIMIT)

    def step(question, answer):
        for event in native([question, answer]):
            view.append_event(event)
        return prepare_llm_messages(view, summarizer, llm=large)

    return turns(step, "memory")


def compress(messages):
    """Measure one summary by tokens and the new view."""
    events = native(messages)

    def step(_number=0):
        view = View()
        view.events = list(events)
        summarizer = condenser(2 * KEEP_TOKENS)
        view.append_event(summarizer.condense(view, agent_llm=summarizer.llm))
        return LLMConvertibleEvent.events_to_messages(view.events)

    seconds, after = timed(step, rounds=2)
    return {"seconds": seconds, "sent": len(after), "orphans": 0, "peak": peak(step)}


name = "OpenHands LLMSummarizingCondenser"
start({"turn": {name: one_turn}, "compress": {name: compress}})
