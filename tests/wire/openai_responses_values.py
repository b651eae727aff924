"""Valid values of the `openai-responses` wire."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.wire.openai_values import (
    Values,
    arguments,
    around,
    base64,
    block,
    content,
    ids,
    sounds,
    texts,
    unknown_blocks,
    urls,
)
from tests.wire.round_trips import json_objects, json_values, names, objects

_statuses = st.none() | st.sampled_from(["in_progress", "completed", "incomplete"])
_item_ids = st.none() | st.just("") | st.from_regex(r"(msg|fc|rs)_[a-f0-9]{4}", fullmatch=True)


def _items(kind: str, /, **fields: Values) -> Values:
    """Items of one type; every field but the type may be missing."""
    return objects({"type": st.just(kind)}, id=_item_ids, status=_statuses, **fields)


input_texts = block("input_text", text=texts)
output_texts = st.one_of(
    block("output_text", text=texts, annotations=st.lists(json_objects, max_size=1)),
    block("refusal", refusal=texts),
)
images = objects(
    {"type": st.just("input_image")},
    image_url=st.none() | urls,
    file_id=st.none() | st.just("file-1"),
    detail=st.none() | st.sampled_from(["auto", "low", "high", "original"]),
)
files = objects(
    {"type": st.just("input_file")},
    file_data=st.none() | base64 | urls,
    file_url=st.none() | urls,
    file_id=st.none() | st.just("file-1"),
    filename=st.none() | texts,
)
input_blocks = st.one_of(input_texts, images, files, sounds, unknown_blocks)

messages = st.one_of(
    objects(
        {"role": st.sampled_from(["user", "system", "developer"])},
        content=content(input_blocks),
        type=st.none() | st.just("message"),
        id=_item_ids,
        status=_statuses,
    ),
    objects(
        {"role": st.just("assistant")},
        content=content(output_texts | unknown_blocks),
        type=st.none() | st.just("message"),
        id=_item_ids,
        status=_statuses,
        phase=st.none() | st.sampled_from(["commentary", "final_answer"]),
    ),
)
calls = st.one_of(
    _items(
        "function_call",
        call_id=st.none() | ids,
        name=names,
        arguments=st.none() | arguments | json_objects,
        namespace=names,
    ),
    _items("custom_tool_call", call_id=ids, name=names, input=texts),
)
results = st.one_of(
    _items(
        "function_call_output",
        call_id=st.none() | ids,
        output=content(input_blocks),
        name=st.none() | names,
    ),
    _items("custom_tool_call_output", call_id=ids, output=content(input_blocks)),
)
thoughts = _items(
    "reasoning",
    summary=st.none() | st.lists(block("summary_text", text=st.none() | texts), max_size=2),
    content=st.none() | st.lists(block("reasoning_text", text=texts), max_size=2),
    encrypted_content=st.none() | texts,
)
other_items = st.one_of(
    _items("item_reference"),
    objects({"id": st.just("msg_1")}, type=st.none()),
    _items("web_search_call", action=json_objects),
    _items("local_shell_call", call_id=ids, action=json_objects),
    _items("local_shell_call_output", output=texts),
    _items("mcp_call", name=json_values, arguments=texts, output=json_values),
    _items("compaction", encrypted_content=texts),
    _items("item_of_next_year", role=json_values, content=json_values, output=json_values),
)
items = st.one_of(messages, calls, results, thoughts, other_items)

with_texts = around(
    st.one_of(
        objects({"role": st.just("user"), "content": texts.filter(bool)}),
        objects({"role": st.just("user"), "content": st.lists(input_texts, min_size=1)}),
        objects({"role": st.just("assistant"), "content": st.lists(output_texts, min_size=1)}),
    ),
    items,
)
with_calls = around(calls, items)
with_results = around(results, items)
with_one_part = around(calls | results | thoughts, items)

tools = st.one_of(
    objects(
        {"type": st.just("function"), "name": names},
        description=st.none() | texts,
        parameters=st.none() | json_objects,
        strict=st.none() | st.booleans(),
    ),
    objects({"type": st.just("custom"), "name": names}, description=texts, format=json_objects),
    objects({"type": st.just("web_search")}, filters=json_values, parameters=json_values),
)
_fields: dict[str, Values] = {
    "model": texts,
    "instructions": st.none() | texts,
    "tools": st.none() | st.lists(tools, max_size=2),
    "include": st.just(["reasoning.encrypted_content"]),
    "store": st.booleans(),
    "metadata": json_objects,
    "messages": json_values,
}
bodies = st.one_of(
    objects({"input": texts | st.lists(items, max_size=4)}, **_fields),
    objects({"previous_response_id": st.just("resp_1")}, input=st.none(), **_fields),
)
conversations = bodies | st.lists(items, max_size=4)
