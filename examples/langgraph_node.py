"""A LangGraph chat that never outgrows its budget: the node folds what is old into a summary.

Runs as it is, without a key: the models here only repeat a text. With real ones, give the node and
the graph your own. Coming from LangMem, only the import changes. Needs
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
    """All messages, what the model is sent of them, and what the node remembers."""

    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def answer(state: State) -> dict[str, Any]:
    """The model is sent the summary and the newest messages."""
    return {"messages": [answers.invoke(state["summarized_messages"])]}


def build(checkpointer: SqliteSaver) -> Any:
    """Fold if it is time to, then answer."""
    fold = SummarizationNode(
        model=writer,
        max_tokens=600,
        max_summary_tokens=200,
        final_prompt=FENCED_FINAL_SUMMARY_PROMPT,  # a summary instructs nobody
        fold_in_sequence=True,  # every message is summarized, however many there are
        enforce=True,  # the budgets hold, or it is said
        memory_flush_hook=remembered.extend,  # in the background, for long-term memory
    )
    graph = StateGraph(State)
    graph.add_node("fold", fold)
    graph.add_node("answer", answer)
    graph.add_edge(START, "fold")
    graph.add_edge("fold", "answer")
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
    print(f"Said on 30 days: {len(state['messages'])} messages, all of them in the state.")
    print(f"Sent to the model now: {len(shown)} messages.")
    print(f"The first of them begins: {str(shown[0].content)[:31]}")
    print(f"Summarized: {len(state['context']['running_summary'].summarized_message_ids)}")


if __name__ == "__main__":
    main()
