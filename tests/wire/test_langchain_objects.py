"""The `langchain` dialect as objects: LangChain's objects come back themselves."""

from __future__ import annotations

import pickle
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given

from enfold import wire
from enfold.errors import DialectError
from enfold.messages import Attachment, Conversation, Message, Text, ToolCall, ToolResult
from enfold.wire import langchain
from tests.wire import langchain_values
from tests.wire.conversations import without_extras
from tests.wire.round_trips import edited
from tests.wire.test_langchain import PARSED, weather

lc = pytest.importorskip("langchain_core.messages")
load = pytest.importorskip("langchain_core.load")


def objects() -> list[Any]:
    return langchain_values.as_objects(weather("flat"))


def test_objects_are_detected_and_read_like_dicts() -> None:
    conversation = wire.parse(objects())
    assert conversation.dialect == "langchain"
    assert without_extras(conversation.messages) == without_extras(PARSED)


@given(langchain_values.arrays)
def test_untouched_messages_are_the_same_objects(value: Any) -> None:
    given_objects = _objects_or_skip(value)
    before = deepcopy(given_objects)
    rendered = langchain.render(langchain.parse(given_objects))
    assert [id(message) for message in rendered] == [id(message) for message in given_objects]
    assert given_objects == before


@given(langchain_values.arrays)
def test_dicts_become_the_objects_that_langchain_makes_of_them(value: Any) -> None:
    made = _objects_or_skip(value)
    assert langchain.render(langchain.parse(value), "object") == made


def _objects_or_skip(value: Any) -> list[Any]:
    """LangChain is stricter than its dumps: broken usage, for one, is refused."""
    try:
        return langchain_values.as_objects(value)
    except DialectError:
        assume(False)
        raise


@pytest.mark.parametrize(
    ("shape", "dump"),
    [
        ("data", lc.messages_to_dict),
        ("flat", lambda messages: [message.model_dump() for message in messages]),
        ("lc", load.dumpd),
    ],
)
def test_dumps_of_langchain_are_read_and_written(shape: str, dump: Any) -> None:
    dumped = dump(objects())
    conversation = langchain.parse(dumped)
    assert without_extras(conversation.messages) == without_extras(PARSED)
    assert langchain.render(conversation) == dumped
    assert langchain.render(conversation, "object") == objects()
    again = langchain.parse(langchain.render(langchain.parse(objects()), shape))
    assert without_extras(again.messages) == without_extras(PARSED)


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_dicts_of_our_own_making_are_loaded_by_langchain() -> None:
    conversation = Conversation(PARSED[:5])
    dicts = langchain.render(conversation)
    assert lc.messages_from_dict(dicts) == langchain.render(conversation, "object")
    flat = langchain.render(conversation, "flat")
    assert [m.content for m in lc.convert_to_messages(flat)] == [m["content"] for m in flat]
    assert load.load(
        langchain.render(conversation, "lc"), allowed_objects="messages"
    ) == lc.messages_from_dict(dicts)


def test_an_edited_object_keeps_its_class_and_all_else() -> None:
    class Reply(lc.AIMessage):  # type: ignore[misc, name-defined]  # the module is not typed here
        """A custom message class."""

        mood: str = "calm"

    reply = Reply(
        content="It is clear.",
        mood="glad",
        tool_calls=[{"name": "sky", "args": {"city": "Rome"}, "id": "c1"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    )
    conversation = langchain.parse([reply])
    text, call = conversation.messages[0].parts
    assert isinstance(call, ToolCall)
    conversation = edited(conversation, 0, text, Text("Clear."))
    conversation = edited(conversation, 0, call, replace(call, arguments={"city": "Oslo"}))
    (rendered,) = langchain.render(conversation)
    assert rendered == reply.model_copy(
        update={
            "content": "Clear.",
            "tool_calls": [
                {"name": "sky", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
            ],
        }
    )
    assert (type(rendered), rendered.mood, reply.content) == (Reply, "glad", "It is clear.")


def test_a_chunk_of_a_stream_keeps_its_calls_in_step() -> None:
    parts = [
        lc.AIMessageChunk(
            "", tool_call_chunks=[lc.tool.tool_call_chunk(name="f", id="c", index=0)]
        ),
        lc.AIMessageChunk("", tool_call_chunks=[lc.tool.tool_call_chunk(args='{"a":1}', index=0)]),
    ]
    whole = parts[0] + parts[1]
    message = langchain.parse_message(whole)
    (call,) = message.parts
    assert isinstance(call, ToolCall)
    assert (call.id, call.arguments) == ("c", {"a": 1})
    rendered = langchain.render_message(replace(message, parts=(replace(call, arguments={}),)))
    assert rendered.tool_calls[0]["args"] == {}
    assert rendered.tool_call_chunks[0]["args"] == "{}"


def test_new_messages_among_objects_are_objects() -> None:
    conversation = langchain.parse(objects())
    added = (
        Message("system", (Text("[Previous conversation summary]"),), id="s"),
        Message("assistant", (Text("So"), ToolCall("c9", "f", '{"a": 1}'))),
        Message("tool", (ToolResult("c9", (Text("no"),), is_error=True),)),
        Message("user", (Text("And"), Attachment(mime="image/png", data="aGk="))),
    )
    rendered = langchain.render(replace(conversation, messages=(*added, *conversation.messages)))
    assert rendered == [
        lc.SystemMessage("[Previous conversation summary]", id="s"),
        lc.AIMessage("So", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "c9"}]),
        lc.ToolMessage("no", tool_call_id="c9", status="error", name="f"),
        lc.HumanMessage(
            [
                {"type": "text", "text": "And"},
                {"type": "image", "mime_type": "image/png", "base64": "aGk="},
            ]
        ),
        *objects(),
    ]


def test_parsed_objects_can_be_pickled() -> None:
    conversation = langchain.parse(objects())
    again = pickle.loads(pickle.dumps(conversation))
    assert again == conversation
    assert langchain.render(again) == objects()


def test_errors_of_langchain_are_reported_without_quoting_messages() -> None:
    conversation = langchain.parse([{"type": "ai", "content": "secret", "usage_metadata": 5}])
    with pytest.raises(DialectError, match="refuses these fields in a ai message") as caught:
        langchain.render(conversation, "object")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [object(), lc.HumanMessage, Message("user")], ids=["object", "class", "enfold"]
)
def test_other_objects_are_refused(value: Any) -> None:
    with pytest.raises(DialectError, match=r"found a Python \w+$") as caught:
        langchain.parse([value])
    assert caught.value.place == "messages[0]"


def test_langchain_is_imported_only_to_make_objects() -> None:
    program = """
import sys
from enfold import wire as dialects
conversation = dialects.parse([{"role": "user", "content": "Hi"}])
dialects.render(conversation, "langchain")
assert "langchain_core" not in sys.modules
print(dialects.langchain.render(conversation, "object")[0].content)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Hi\n"
