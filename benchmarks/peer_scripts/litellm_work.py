"""LiteLLM: a trimmed turn, and removed tool results."""

import logging
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from litellm import token_counter
from litellm.utils import trim_messages
from stopwatch import KEPT, start, timed, turns

litellm.suppress_debug_info = True
logging.disable(logging.CRITICAL)
MODEL = "gpt-4o"


def count(messages):
    """Count the whole history."""
    token_counter(model=MODEL, messages=messages[:1])
    seconds, tokens = timed(lambda _number: token_counter(model=MODEL, messages=messages), rounds=3)
    return {"seconds": seconds, "tokens": tokens}


def one_turn(messages):
    """Measure a turn: a list has everything and is trimmed each time."""
    state = list(messages)
    limit = token_counter(model=MODEL, messages=state[-KEPT:])

    def step(question, answer):
        state.extend((question, answer))
        return trim_messages(state, model=MODEL, max_tokens=limit)

    return turns(step, "memory", rounds=3)


def prune(messages):
    """Replace messages that are not relevant to the newest question by stubs."""
    from litellm.compression.compress import compress

    def step(_number):
        return compress(
            messages=list(messages),
            model=MODEL,
            call_type="completion",
            compression_trigger=100_000,
            compression_target=100_000,
        )["messages"]

    seconds, after = timed(step, rounds=2)
    return {"seconds": seconds, "after": after, "restored": False}


start(
    {
        "count": {"LiteLLM token_counter": count},
        "turn": {"LiteLLM trim_messages": one_turn},
        "prune": {"LiteLLM compress": prune},
    }
)
