"""LlamaIndex's memory: a turn after earlier compressions, and one compression."""

import logging

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.memory import ChatSummaryMemoryBuffer
from stopwatch import KEEP_TOKENS, KEPT, PLENTY, SUMMARY, peak, start, timed, turns

logging.disable(logging.CRITICAL)


class InstantLLM(CustomLLM):
    """A model that answers at once."""

    @property
    def metadata(self):
        return LLMMetadata(context_window=200_000, num_output=512)

    def complete(self, _prompt, _formatted=False, **_options):
        return CompletionResponse(text=SUMMARY)

    def stream_complete(self, _prompt, _formatted=False, **_options):
        raise NotImplementedError

    def chat(self, _messages, **_options):
        return ChatResponse(message=ChatMessage(role="assistant", content=SUMMARY))


def native(message):
    """Return the message as LlamaIndex's value."""
    return ChatMessage(role=message["role"], content=message["content"])


def memory(messages, limit):
    """Return a memory with these messages."""
    held = [native(message) for message in messages]
    return ChatSummaryMemoryBuffer.from_defaults(
        chat_history=held, llm=InstantLLM(), token_limit=limit
    )


def one_turn(messages):
    """Measure a turn: the memory has the summary and the messages after it; the rest is lost."""
    summary = {"role": "system", "content": SUMMARY}
    held = memory([summary, *messages[-KEPT:]], PLENTY)

    def step(question, answer):
        held.put(native(question))
        held.put(native(answer))
        return held.get()

    return turns(step, "lost")


def compress(messages):
    """Measure one compression: messages that do not fit are summarized and dropped."""

    def step(_number=0):
        return memory(messages, KEEP_TOKENS).get()

    seconds, after = timed(step)
    return {"seconds": seconds, "sent": len(after), "orphans": 0, "peak": peak(step)}


name = "LlamaIndex ChatSummaryMemoryBuffer"
start({"turn": {name: one_turn}, "compress": {name: compress}})
