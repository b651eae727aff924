"""LangChain and LangMem: a turn after compressions, one compression, cleared tool results."""

import json

from langchain.agents.middleware.context_editing import ClearToolUsesEdit, ContextEditingMiddleware
from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.message import add_messages
from langmem.short_term import RunningSummary, summarize_messages
from stopwatch import KEEP_TOKENS, KEPT, PLENTY, SUMMARY, orphans, peak, start, timed, turns


class InstantChatModel(BaseChatModel):
    """A model that answers at once."""

    @property
    def _llm_type(self):
        return "instant"

    def _generate(self, _messages, _stop=None, _run_manager=None, **_options):
        return ChatResult(generations=[ChatGeneration(message=AIMessage(SUMMARY))])


def native(messages):
    """Return the messages as LangChain's values."""
    return [_native(message, f"m{number}") for number, message in enumerate(messages)]


def _native(message, id=None):
    match message["role"]:
        case "system":
            return SystemMessage(message["content"], id=id)
        case "user":
            return HumanMessage(message["content"], id=id)
        case "tool":
            return ToolMessage(message["content"], tool_call_id=message["tool_call_id"], id=id)
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return AIMessage(message["content"] or "", tool_calls=calls, id=id)


def plain(messages):
    """Return the messages in the `openai` dialect."""
    return [_plain(message) for message in messages]


def _plain(message):
    match message:
        case ToolMessage():
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": message.content,
            }
        case AIMessage():
            calls = [{"id": call["id"], "function": call["args"]} for call in message.tool_calls]
            return {"role": "assistant", "content": message.content, "tool_calls": calls}
        case SystemMessage():
            return {"role": "system", "content": message.content}
    return {"role": "user", "content": message.content}


def middleware_turn(messages):
    """Measure a turn: the state is the summary and the messages after it; the rest is lost."""
    summarize = SummarizationMiddleware(
        InstantChatModel(), trigger=("tokens", PLENTY), keep=("messages", 20)
    )
    state = [HumanMessage(SUMMARY, id="s"), *native(messages[-KEPT:])]

    def step(question, answer):
        nonlocal state
        state = add_messages(state, [_native(question), _native(answer)])
        summarize.before_model({"messages": state}, None)
        return state

    return turns(step, "lost")


def trim_turn(messages):
    """Measure a turn: a list has everything and is trimmed each time."""
    state = native(messages)
    limit = count_tokens_approximately(state[-KEPT:])

    def step(question, answer):
        state.extend((_native(question), _native(answer)))
        return trim_messages(
            state,
            max_tokens=limit,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
            include_system=True,
        )

    return turns(step, "memory")


def langmem_turn(messages):
    """Measure a turn: the state has everything and a running summary."""
    state = native(messages)
    old = state[:-KEPT]
    running = RunningSummary(SUMMARY, {each.id for each in old}, old[-1].id if old else None)

    def step(question, answer):
        nonlocal state, running
        state = add_messages(state, [_native(question), _native(answer)])
        done = summarize_messages(
            state,
            running_summary=running if old else None,
            model=InstantChatModel(),
            max_tokens=PLENTY,
            max_summary_tokens=600,
        )
        running = done.running_summary
        return done.messages

    return turns(step, "memory")


def middleware_compress(messages):
    """Measure one summary and the new state."""
    summarize = SummarizationMiddleware(
        InstantChatModel(), trigger=("tokens", 1_000), keep=("tokens", KEEP_TOKENS)
    )
    state = native(messages)

    def step(_number=0):
        changed = summarize.before_model({"messages": list(state)}, None) or {"messages": []}
        return add_messages(list(state), changed["messages"])

    return compressed(step)


def langmem_compress(messages):
    """Measure one summary of the messages above the limit."""
    state = native(messages)
    total = count_tokens_approximately(state)

    def step(_number=0):
        return summarize_messages(
            list(state),
            running_summary=None,
            model=InstantChatModel(),
            max_tokens=total,
            max_tokens_before_summary=total - KEEP_TOKENS,
            max_summary_tokens=600,
        ).messages

    return compressed(step)


def compressed(step):
    """Return the result of a compression."""
    seconds, after = timed(step)
    return {
        "seconds": seconds,
        "sent": len(after),
        "orphans": orphans(plain(after)),
        "peak": peak(step),
    }


def clear_prune(messages):
    """Replace all tool results except the newest three by a placeholder."""
    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=3)])

    def step(_number):
        state = native(messages)
        got = []
        model_request = ModelRequest(
            model=InstantChatModel(),
            messages=state,
            system_message=None,
            tools=[],
            tool_choice=None,
            response_format=None,
            state={"messages": state},
            runtime=None,
        )
        edit.wrap_model_call(model_request, lambda request: got.extend(request.messages))
        return got

    seconds, after = timed(step, rounds=3)
    return {"seconds": seconds, "after": plain(after), "restored": False}


start(
    {
        "turn": {
            "LangChain SummarizationMiddleware": middleware_turn,
            "LangChain trim_messages": trim_turn,
            "LangMem": langmem_turn,
        },
        "compress": {
            "LangChain SummarizationMiddleware": middleware_compress,
            "LangMem": langmem_compress,
        },
        "prune": {"LangChain ClearToolUsesEdit": clear_prune},
    }
)
