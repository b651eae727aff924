"""A chat engine of LlamaIndex whose memory is stored whole and never outgrows the model's window.

Runs as it is, without a key: the model here only repeats what it is told. With a real one, give
the chat engine your own `llm`. Needs `pip install 'enfold[llama-index]'`.
"""

from __future__ import annotations

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM

from enfold.adapters.llama_index import EnfoldMemory

DATABASE = "sqlite:///memory.db"


def chat(memory: EnfoldMemory, days: range) -> None:
    """One question a day."""
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=200), memory=memory)
    for day in days:
        engine.chat(f"Log of day {day}: " + "wind from the west, sea moderate. " * 20)


def main() -> None:
    """Talk until the memory is full, stop, and go on from the database."""
    limits = {"max_tokens": 6_000}  # compress above so many tokens; else as the model's window says
    memory = EnfoldMemory.from_defaults(session_id="voyage", url=DATABASE, settings=limits)
    chat(memory, range(1, 16))
    memory.close()

    memory = EnfoldMemory.from_defaults(session_id="voyage", url=DATABASE, settings=limits)
    chat(memory, range(16, 31))
    said, given = memory.get_all(), memory.get()
    print(f"Said on 30 days: {len(said)} messages, all of them stored.")
    print(f"Given to the model now: {len(given)} messages.")
    print(f"The first of them begins: {(given[0].content or '')[:31]}")
    print(f"The first that was said begins: {(said[0].content or '')[:12]}")
    memory.close()


if __name__ == "__main__":
    main()
