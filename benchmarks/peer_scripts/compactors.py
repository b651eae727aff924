"""One library as a compactor: `python compactors.py NAME`.

Each line of the input is a JSON object with `messages` (role, content, tokens) and `target`, the
tokens that the result may have. Each line of the output is the array of messages that are left.
Libraries count by the tokens that came with the messages. There is no model: where a library asks
one for a summary, it gets the beginning of the text to summarize, as long as the summary may be.
"""

import asyncio
import json
import logging
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ.setdefault("HEADROOM_OFFLINE", "1")
os.environ.setdefault("HEADROOM_TELEMETRY", "off")
LETTERS_PER_TOKEN = 4


def enfold(messages, target, _tokens):
    """Condense with the native strategy and the built-in summarizer."""
    from enfold import condense

    done = asyncio.run(condense(messages, "native", target=target, tokenizer="cl100k_base"))
    return done.messages


def newest(messages, target, tokens):
    """Keep the newest messages that fit."""
    kept = []
    for message in reversed(messages):
        target -= tokens(message["content"])
        if target < 0:
            break
        kept.insert(0, message)
    return kept


def langchain_trim(messages, target, tokens):
    """Trim with LangChain's trim_messages."""
    from langchain_core.messages.utils import convert_to_messages, trim_messages

    kept = trim_messages(
        convert_to_messages(messages),
        max_tokens=target,
        token_counter=lambda found: sum(tokens(each.content) for each in found),
        strategy="last",
        include_system=True,
    )
    return _plain(kept)


def langmem(messages, target, tokens):
    """Summarize with LangMem; half of the target is for the summary."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.messages.utils import convert_to_messages
    from langmem.short_term import summarize_messages

    text = "\n".join(message["content"] for message in messages)
    summary = text[: target // 2 * LETTERS_PER_TOKEN]
    given = convert_to_messages(messages)
    for number, message in enumerate(given):
        message.id = f"m{number}"
    done = summarize_messages(
        given,
        running_summary=None,
        model=GenericFakeChatModel(messages=iter([AIMessage(summary)] * 9)),
        max_tokens=target,
        max_tokens_before_summary=max(1, sum(tokens(each.content) for each in given) - target // 2),
        max_summary_tokens=target // 2,
        token_counter=lambda found: sum(tokens(each.content) for each in found),
    )
    return _plain(done.messages)


def litellm_trim(messages, target, _tokens):
    """Trim with LiteLLM's trim_messages."""
    from litellm.utils import trim_messages

    return trim_messages(messages, model="gpt-4", max_tokens=target, trim_ratio=1.0)


def litellm_compress(messages, target, _tokens):
    """Replace the messages that are least relevant to the last one by stubs."""
    from litellm.compression.compress import compress

    return compress(
        messages=list(messages),
        model="gpt-4",
        call_type="completion",
        compression_trigger=target,
        compression_target=target,
    )["messages"]


def llamaindex(messages, target, tokens):
    """Keep what fits LlamaIndex's ChatMemoryBuffer."""
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer

    held = ChatMemoryBuffer.from_defaults(
        chat_history=[ChatMessage(role=each["role"], content=each["content"]) for each in messages],
        token_limit=target,
        # The buffer counts the text of all messages at once.
        tokenizer_fn=lambda text: range(tokens(text)),
    )
    return [{"role": each.role.value, "content": each.content} for each in held.get()]


def headroom(messages, target, _tokens):
    """Compress with headroom's defaults for a window of the target."""
    from headroom import compress

    done = compress(list(messages), model="gpt-4", model_limit=target, kompress_model="disabled")
    return done.messages


def openai_agents(messages, target, tokens):
    """Read the newest items of a session that fit; the caller chooses their number."""
    from agents import SQLiteSession

    async def read():
        session = SQLiteSession("compactor")
        await session.add_items(messages)
        found = await session.get_items(limit=len(newest(messages, target, tokens)) or 1)
        session.close()
        return found

    return asyncio.run(read())


def openhands(messages, target, _tokens):
    """Summarize with OpenHands' condenser; half of the target is for the summary."""
    import types

    import openhands_work as work

    text = "\n".join(message["content"] for message in messages)
    turn = work.Message(
        role="assistant",
        content=[work.TextContent(text=text[: target // 2 * LETTERS_PER_TOKEN])],
    )
    work.LLM.generate = lambda *_given, **_options: types.SimpleNamespace(message=turn, id="answer")
    view = work.View()
    view.events = work.native(messages)
    condenser = work.condenser(target)
    view.append_event(condenser.condense(view, agent_llm=condenser.llm))
    found = work.LLMConvertibleEvent.events_to_messages(view.events)
    return [
        {"role": each.role, "content": "\n".join(part.text for part in each.content)}
        for each in found
    ]


def _plain(messages):
    roles = {"human": "user", "ai": "assistant"}
    return [{"role": roles.get(each.type, each.type), "content": each.content} for each in messages]


COMPACTORS = {
    "enfold native": enfold,
    "newest messages": newest,
    "LangChain trim_messages": langchain_trim,
    "LangMem": langmem,
    "LiteLLM trim_messages": litellm_trim,
    "LiteLLM compress": litellm_compress,
    "LlamaIndex ChatMemoryBuffer": llamaindex,
    "headroom compress": headroom,
    "OpenAI Agents, newest items": openai_agents,
    "OpenHands LLMSummarizingCondenser": openhands,
}


def main():
    """Answer line by line."""
    logging.disable(logging.CRITICAL)
    output, sys.stdout = sys.stdout, sys.stderr
    compact = COMPACTORS[sys.argv[1]]
    for line in sys.stdin:
        given = json.loads(line)
        sizes = {each["content"]: each.pop("tokens") for each in given["messages"]}

        def tokens(text, sizes=sizes):
            return sizes.get(text, -(-len(text) // LETTERS_PER_TOKEN))

        print(json.dumps(compact(given["messages"], given["target"], tokens)), file=output)
        output.flush()


if __name__ == "__main__":
    main()
