"""A chat engine of LlamaIndex: its memory stores all messages and stays inside the window.

Runs without a key: the model here repeats its input. With your own model, pass it as `llm`. Needs
`pip install 'enfold[llama-index]'`.
"""

from __future__ import annotations

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM

from enfold.adapters.llama_index import EnfoldMemory

DATABASE = "sqlite:///memory.db"


def chat(memory: EnfoldMemory, days: range) -> None:
    """Ask one question per day."""
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=200), memory=memory)
    for day in days:
        engine.chat(f"Log of day {day}: " + "wind from the west, sea moderate. " * 20)


def main() -> None:
    """Chat until the memory is full, stop, and continue from the database."""
    limits = {"max_tokens": 6_000}  # the limit in tokens; by default the model's window
    memory = EnfoldMemory.from_defaults(session_id="voyage", url=DATABASE, settings=limits)
    chat(memory, range(1, 16))
    memory.close()

    memory = EnfoldMemory.from_defaults(session_id="voyage", url=DATABASE, settings=limits)
    chat(memory, range(16, 31))
    stored, sent = memory.get_all(), memory.get()
    print(f"After 30 days: {len(stored)} messages, all of them stored.")
    print(f"Sent to the model at the last turn: {len(sent)} messages.")
    print(f"The first one begins: {(sent[0].content or '')[:31]}")
    print(f"The first stored message begins: {(stored[0].content or '')[:12]}")
    memory.close()


if __name__ == "__main__":
    main()
