"""A LangChain agent: its state keeps all messages, and its requests stay inside the window.

Runs without a key: the model here repeats a text. With your own model, leave out `max_tokens`; the
model's window is used. Needs
`pip install 'enfold[langchain]' langgraph-checkpoint-sqlite`.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from enfold.adapters.langchain import EnfoldMiddleware

sent: list[Any] = []


class Echo(FakeListChatModel):
    """A model that stores the messages it receives."""

    def _call(self, messages: Any, *others: Any, **options: Any) -> str:
        sent[:] = messages
        return super()._call(messages, *others, **options)


def main() -> None:
    """Keep a log for thirty days, in two runs over one database."""
    model = Echo(responses=["Noted in the log."])
    thread: Any = {"configurable": {"thread_id": "voyage"}}
    for days in (range(1, 16), range(16, 31)):
        with SqliteSaver.from_conn_string("agent.db") as checkpointer:
            # `model=` would name a chat model for summaries; the default needs none.
            middleware = EnfoldMiddleware(max_tokens=3_000)
            agent: Any = create_agent(model, middleware=[middleware], checkpointer=checkpointer)
            for day in days:
                log = f"Day {day}: " + "wind from the west, sea moderate. " * 20
                state = agent.invoke({"messages": [HumanMessage(log)]}, thread)
    print(f"After 30 days: {len(state['messages'])} messages, all of them in the state.")
    print(f"Sent to the model at the last turn: {len(sent)} messages.")
    summary = next(m for m in sent if m.type == "system")
    print(f"The summary among them begins: {str(summary.content)[:31]}")


if __name__ == "__main__":
    main()
