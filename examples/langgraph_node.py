"""A LangGraph chat that stays within its budget: a node summarizes old messages.

Runs without a key: the models here repeat a text; replace them by your own. If you use LangMem's
node, only the import changes. Needs
`pip install 'enfold[langgraph]' langgraph-checkpoint-sqlite`.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from enfold.langgraph import FENCED_FINAL_SUMMARY_PROMPT, SummarizationNode

answers = FakeListChatModel(responses=["Noted in the log."])
writer = FakeListChatModel(responses=["The ship sailed west; the log was kept every day."])
remembered: list[Any] = []


class State(MessagesState):
    """All messages, the messages for the model, and the state of the node."""

    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def answer(state: State) -> dict[str, Any]:
    """Send the summary and the newest messages to the model."""
    return {"messages": [answers.invoke(state["summarized_messages"])]}


def build(checkpointer: SqliteSaver) -> Any:
    """Return a graph that summarizes if needed, then answers."""
    summarize = SummarizationNode(
        model=writer,
        max_tokens=600,
        max_summary_tokens=200,
        final_prompt=FENCED_FINAL_SUMMARY_PROMPT,  # a summary is reference, not an instruction
        summarize_in_parts=True,  # every message is summarized, in several calls if needed
        enforce=True,  # an error is raised if a budget is exceeded
        memory_flush_hook=remembered.extend,  # in the background, for long-term memory
    )
    graph = StateGraph(State)
    graph.add_node("summarize", summarize)
    graph.add_node("answer", answer)
    graph.add_edge(START, "summarize")
    graph.add_edge("summarize", "answer")
    return graph.compile(checkpointer=checkpointer)


def main() -> None:
    """Keep a log for thirty days, in two runs over one database."""
    thread = {"configurable": {"thread_id": "voyage"}}
    for days in (range(1, 16), range(16, 31)):
        with SqliteSaver.from_conn_string("graph.db") as checkpointer:
            graph = build(checkpointer)
            for day in days:
                log = f"Day {day}: " + "wind from the west, sea moderate. " * 5
                state = graph.invoke({"messages": [HumanMessage(log)]}, thread)
    shown = state["summarized_messages"]
    print(f"After 30 days: {len(state['messages'])} messages, all of them in the state.")
    print(f"Sent to the model at the last turn: {len(shown)} messages.")
    print(f"The first one begins: {str(shown[0].content)[:31]}")
    print(f"Summarized: {len(state['context']['running_summary'].summarized_message_ids)}")


if __name__ == "__main__":
    main()
