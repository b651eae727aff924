"""Valid values of the `openai` wire, and messages from elsewhere to be written on it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from tests.wire.round_trips import fresh, json_objects, json_values, names, objects
from tests.wire.round_trips import texts as common_texts

Values = st.SearchStrategy[Any]

texts = common_texts | st.sampled_from(["", "\x00", "half of a pair: \ud83d", "two\n\nparagraphs"])
ids = st.from_regex(r"call_[A-Za-z0-9]{4}", fullmatch=True)
arguments = (
    st.sampled_from(["", "{}", '{"path": "a.py", "n": 9007199254740993}', '{"path": ']) | texts
)
base64 = st.sampled_from(["", "aGk=", "aGVsbG8h", "AA=="])
urls = st.sampled_from(["", "https://example.org/a.png", "data:image/png;base64,aGk=", "data:,hi"])


def block(kind: str, /, **required: Values) -> Values:
    """Content blocks of one type, some of them the end of a cached prefix."""
    cache = st.none() | objects({"type": st.just("ephemeral")})
    return objects({"type": st.just(kind), **required}, cache_control=cache)


sounds = block(
    "input_audio",
    input_audio=objects({"data": base64, "format": st.sampled_from(["wav", "mp3"])}),
)
unknown_blocks: Values = st.one_of(
    block("video_url", video_url=json_values), block("block_of_next_year"), st.just({})
)
text_blocks = block("text", text=texts)
refusal_blocks = block("refusal", refusal=texts)
image_urls = objects({"url": urls}, detail=st.sampled_from(["auto", "low", "high"]))
files = objects(
    {},
    file_data=st.none() | base64 | urls,
    file_id=st.none() | st.just("file-1"),
    filename=st.none() | texts,
)
user_blocks = st.one_of(
    text_blocks,
    block("image_url", image_url=image_urls | urls),
    sounds,
    block("file", file=files),
    unknown_blocks,
)


def content(blocks: Values) -> Values:
    """A text, an array of blocks, or nothing."""
    return st.none() | texts | st.lists(blocks, max_size=3)


def around(one: Values, others: Values) -> Values:
    """Arrays that hold one value of a kind, with any others before and after it."""
    some = st.lists(others, max_size=2)
    return st.builds(lambda before, it, after: [*before, it, *after], some, one, some).map(fresh)


functions = objects({"name": names}, arguments=st.none() | arguments | json_objects)
calls = st.one_of(
    objects({"id": ids, "type": st.just("function"), "function": functions}),
    objects({"function": functions}, id=st.none() | ids, index=st.integers(0, 3)),
    objects({"id": ids, "type": st.just("builtin_function"), "function": functions}),
    objects(
        {"id": ids, "type": st.just("custom"), "custom": objects({"name": names}, input=texts)}
    ),
    objects({"id": ids, "type": st.just("call_of_next_year"), "anything": json_values}),
)
thoughts: dict[str, Values] = {
    "reasoning_content": st.none() | texts,
    "reasoning": st.none() | texts,
    "reasoning_text": st.none() | texts,
    "reasoning_opaque": st.none() | texts,
    "reasoning_details": st.none()
    | st.lists(
        st.one_of(
            objects({"type": st.just("reasoning.text"), "text": st.none() | texts}),
            objects({"type": st.just("reasoning.summary"), "summary": texts}),
            objects({"type": st.just("reasoning.encrypted"), "data": texts}),
        ),
        max_size=2,
    ),
    "thinking_blocks": json_values,
}
system_messages = objects(
    {"role": st.sampled_from(["system", "developer"]), "content": content(text_blocks)},
    name=names,
)
user_messages = objects(
    {"role": st.just("user")},
    content=content(user_blocks),
    name=st.none() | texts,
    id=json_values,
    tool_calls=json_values,
    reasoning=json_values,
)
assistant_messages = objects(
    {"role": st.just("assistant")},
    content=content(text_blocks | refusal_blocks | unknown_blocks),
    name=st.none() | texts,
    refusal=st.none() | texts,
    audio=st.none() | objects({"id": texts}),
    tool_calls=st.none() | st.lists(calls, max_size=3),
    function_call=st.none() | functions,
    annotations=json_values,
    **thoughts,
)
tool_messages = st.one_of(
    objects(
        {"role": st.just("tool"), "content": content(user_blocks)},
        tool_call_id=st.none() | ids,
        name=st.none() | names,
    ),
    objects({"role": st.just("function"), "name": names, "content": st.none() | texts}),
)
messages = st.one_of(system_messages, user_messages, assistant_messages, tool_messages)

definitions = objects(
    {"name": names},
    description=st.none() | texts,
    parameters=st.none() | json_objects,
    strict=st.none() | st.booleans(),
)
tools = st.one_of(
    objects({"type": st.just("function"), "function": definitions}),
    objects(
        {
            "type": st.just("custom"),
            "custom": objects({"name": names}, description=texts, format=json_objects),
        }
    ),
    objects({"type": st.just("web_search")}, parameters=json_values, name=st.none() | names),
)
with_texts = around(
    st.one_of(
        objects({"role": st.just("user"), "content": texts.filter(bool)}),
        objects({"role": st.just("system"), "content": st.lists(text_blocks, min_size=1)}),
        objects({"role": st.just("assistant"), "refusal": texts.filter(bool)}),
        objects({"role": st.just("assistant"), "content": st.lists(refusal_blocks, min_size=1)}),
    ),
    messages,
)
with_calls = around(
    st.one_of(
        objects({"role": st.just("assistant"), "tool_calls": st.lists(calls, min_size=1)}),
        objects({"role": st.just("assistant"), "function_call": functions}),
    ),
    messages,
)
with_results = around(tool_messages, messages)
with_thoughts = around(
    assistant_messages.filter(lambda raw: any(raw.get(field) for field in thoughts)), messages
)
bodies = objects(
    {"messages": st.lists(messages, max_size=4)},
    model=texts,
    tools=st.none() | st.lists(tools, max_size=2),
    functions=st.none() | st.lists(definitions, max_size=2),
    temperature=st.floats(0, 2),
    seed=st.integers(),
    system=json_values,
)
conversations = bodies | st.lists(messages, max_size=4)

_foreign_extras: Values = st.just({}) | json_objects
_foreign_words = st.one_of(
    st.builds(Text, texts, _foreign_extras),
    st.builds(Data, json_values, _foreign_extras),
    st.builds(Unknown, json_objects),
    st.builds(
        Attachment,
        name=st.just("") | texts,
        mime=st.sampled_from(["", "image/png", "audio/mpeg", "application/pdf"]),
        data=st.none() | base64,
        url=st.none() | urls,
        extras=_foreign_extras,
    ),
)
_foreign_calls = st.builds(
    ToolCall, st.just("") | ids, names, arguments | json_objects, _foreign_extras
)
_foreign_results = st.builds(
    ToolResult,
    st.just("") | ids,
    st.lists(_foreign_words, max_size=3).map(tuple),
    st.booleans(),
    names,
    _foreign_extras,
)
_foreign_thoughts = st.builds(Reasoning, texts, _foreign_extras)


def _foreign_messages(role: str, *parts: Values) -> Values:
    return st.builds(
        Message,
        st.just(role),
        st.lists(st.one_of(_foreign_words, *parts), max_size=4).map(tuple),
        id=st.none() | texts,
        name=st.none() | texts,
        dialect=st.just("enfold"),
        extras=_foreign_extras,
    )


foreign_conversations = st.builds(
    Conversation,
    st.lists(
        st.one_of(
            _foreign_messages("system"),
            _foreign_messages("user", _foreign_results),
            _foreign_messages("assistant", _foreign_calls, _foreign_thoughts, _foreign_results),
            _foreign_messages("tool", _foreign_results),
        ),
        max_size=5,
    ).map(tuple),
    dialect=st.just("enfold"),
    system=st.none() | _foreign_messages("system"),
    tools=st.lists(
        st.builds(Tool, names, texts, st.none() | json_objects, _foreign_extras), max_size=2
    ).map(tuple),
    extras=st.none() | json_objects,
)
