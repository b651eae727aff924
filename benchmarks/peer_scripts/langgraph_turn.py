"""One turn of a LangGraph graph with its SQLite checkpointer, at a history of so many messages."""

import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

TURNS = 3


def main(size: int, words: int) -> None:
    """Print the median seconds of a turn, and what the file grew by."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.db"
        connection = sqlite3.connect(file, check_same_thread=False)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda _state: {"messages": [AIMessage("beta " * words)]})
        graph.add_edge(START, "model")
        compiled = graph.compile(checkpointer=SqliteSaver(connection))
        config = {"configurable": {"thread_id": "1"}}
        history = [
            (HumanMessage if n % 2 == 0 else AIMessage)(f"{n} " + "alpha " * words, id=str(n))
            for n in range(size)
        ]
        compiled.invoke({"messages": history}, config)
        before = file.stat().st_size
        seconds = []
        for turn in range(TURNS):
            started = time.perf_counter()
            compiled.invoke(
                {"messages": [HumanMessage(f"turn {turn} " + "alpha " * words)]}, config
            )
            seconds.append(time.perf_counter() - started)
        growth = (file.stat().st_size - before) / TURNS
        connection.close()
    print(json.dumps({"seconds": sorted(seconds)[TURNS // 2], "bytes_per_turn": growth}))


main(int(sys.argv[1]), int(sys.argv[2]))
