"""LangGraph with its SQLite checkpointer: a turn is one call of a graph that answers at once."""

import sqlite3
import tempfile
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from stopwatch import start, turns


def one_turn(messages):
    """Measure a turn: the state has everything and is written to the file each time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.db"
        connection = sqlite3.connect(file, check_same_thread=False)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda _state: {"messages": [AIMessage("Done.")]})
        graph.add_edge(START, "model")
        compiled = graph.compile(checkpointer=SqliteSaver(connection))
        config = {"configurable": {"thread_id": "1"}}
        compiled.invoke({"messages": [_native(*each) for each in enumerate(messages)]}, config)
        before = file.stat().st_size

        def step(question, _answer):
            inputs = {"messages": [HumanMessage(question["content"])]}
            return compiled.invoke(inputs, config)["messages"]

        result = turns(step, "file", rounds=3)
        result["grown"] = (file.stat().st_size - before) / 3
        connection.close()
    return result


def _native(number, message):
    kind = AIMessage if message["role"] == "assistant" else HumanMessage
    return kind(message["content"], id=str(number))


start({"turn": {"LangGraph SqliteSaver": one_turn}})
