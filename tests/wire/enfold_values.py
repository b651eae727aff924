"""Valid values of the `enfold` wire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.wire.round_trips import json_objects, json_values, names, objects, texts

Objects = st.SearchStrategy[dict[str, Any]]

ROLES = ("system", "user", "assistant", "tool")

_ids = st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True)
_null_or_texts = st.none() | texts


def _blocks(
    kind: str, required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> Objects:
    return objects({"type": st.just(kind), **required}, **optional)


text_blocks = _blocks("text", {"text": texts})
attachments = _blocks(
    "attachment",
    {},
    name=_null_or_texts,
    mime=st.none() | st.just("image/png"),
    size=st.none() | st.integers(0),
    data=st.none() | st.just("aGk="),
    url=st.none() | st.just("https://example.org/a.png"),
)
data_blocks = _blocks("data", {"value": json_values})
thoughts = _blocks("reasoning", {}, text=_null_or_texts)
calls = _blocks(
    "tool_use",
    {},
    id=st.none() | _ids,
    name=st.none() | names,
    input=st.none() | json_objects | texts,
)
results = _blocks(
    "tool_result",
    {},
    tool_use_id=st.none() | _ids,
    content=st.none()
    | texts
    | st.lists(st.one_of(text_blocks, data_blocks, attachments, calls), max_size=3),
    is_error=st.none() | st.booleans(),
    name=st.none() | names,
)
unknown_blocks = objects({}, type=st.none() | st.integers() | st.just("block_of_next_year"))
blocks = st.one_of(text_blocks, attachments, data_blocks, thoughts, calls, results, unknown_blocks)
contents = st.none() | texts | st.lists(blocks, max_size=4)
messages = objects(
    {"role": st.sampled_from(ROLES)},
    content=contents,
    id=_null_or_texts,
    name=_null_or_texts,
    parent_id=_null_or_texts,
    ts=texts,
    kind=texts,
)
tools = objects({}, name=st.none() | names, description=_null_or_texts, parameters=json_objects)
arrays = st.lists(messages, max_size=5)
bodies = objects(
    {"messages": arrays},
    system=contents | messages,
    tools=st.none() | st.lists(tools, max_size=3),
    id=texts,
    meta=json_values,
)
values = arrays | bodies

# Messages as they usually are: with an id, and with a tool's words inside its results.
_some_text = st.text(min_size=1, max_size=8)
usual_messages = st.one_of(
    objects(
        {"role": st.sampled_from(["system", "user", "assistant"]), "id": _some_text},
        content=contents,
        name=_some_text,
        parent_id=_null_or_texts,
    ),
    objects({"role": st.just("tool"), "id": _some_text, "content": st.lists(results, min_size=1)}),
)
usual_values = st.lists(usual_messages, min_size=1, max_size=5)
