"""Valid values of the `langchain` wire, as dicts; `as_objects` makes LangChain's own of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from enfold.jsontext import dump_text
from enfold.wire.langchain import (
    CLASSES,
    make_message,
    read_fields,
    shape_of,
)
from tests.wire.round_trips import json_objects, json_values, names, objects, texts

Objects = st.SearchStrategy[dict[str, Any]]

_ids = st.from_regex(r"call_[a-z0-9]{3}", fullmatch=True)
_base64 = st.sampled_from(["aGk=", "aGVsbG8h"])
_urls = st.sampled_from(["https://example.org/a.png", "data:image/png;base64,aGk="])
_null_or_texts = st.none() | texts


def _blocks(kind: str, /, **required: st.SearchStrategy[Any]) -> Objects:
    return objects({"type": st.just(kind), **required}, id=texts, index=st.integers())


# Content

text_blocks = objects(
    {"type": st.just("text"), "text": texts}, annotations=st.lists(json_objects, max_size=1)
)
files = st.one_of(
    _blocks("image_url", image_url=_urls | objects({"url": _urls}, detail=st.just("low"))),
    _blocks("input_audio", input_audio=objects({"data": _base64, "format": st.just("wav")})),
    _blocks("file", file=objects({"file_data": _urls, "filename": texts})),
    _blocks("file", file=objects({"file_id": texts})),
    _blocks("image", base64=_base64, mime_type=st.just("image/png")),
    _blocks("video", url=_urls),
    _blocks("audio", file_id=texts),
    _blocks("image", source_type=st.just("url"), url=_urls),
    _blocks("file", source_type=st.just("base64"), data=_base64, mime_type=texts),
    _blocks("image", source=objects({"type": st.just("base64"), "data": _base64})),
    _blocks("document", source=objects({"type": st.just("url"), "url": _urls}), title=texts),
    _blocks("media", mime_type=st.just("video/mp4"), file_uri=_urls),
)
written_files = st.one_of(
    _blocks("text-plain", text=texts),
    _blocks("file", source_type=st.just("text"), text=texts),
    _blocks("document", source=objects({"type": st.just("text"), "data": texts})),
)
thoughts = st.one_of(
    _blocks("reasoning", reasoning=texts),
    _blocks("reasoning", summary=st.lists(objects({"text": texts}), max_size=2)),
    _blocks("thinking", thinking=texts, signature=texts),
    _blocks("redacted_thinking", data=texts),
    _blocks("reasoning_content", reasoning_content=objects({"text": texts})),
)
unknown_blocks = st.one_of(
    _blocks("server_tool_call", name=names, args=json_objects),
    _blocks("non_standard", value=json_objects),
    objects({"text": texts}),
)
result_contents = texts | st.lists(
    st.one_of(texts, text_blocks, files, written_files, unknown_blocks), max_size=3
)
result_blocks = objects(
    {"type": st.just("tool_result"), "tool_use_id": _ids},
    content=result_contents,
    is_error=st.booleans(),
)
contents = texts | st.lists(
    st.one_of(texts, text_blocks, files, written_files, unknown_blocks, result_blocks), max_size=4
)


# Calls: each stands in some of the places that LangChain and the providers have for it.


@st.composite
def _calls(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of an `ai` message that hold calls, its content among them."""
    text = draw(texts)
    content: list[Any] = draw(st.lists(st.one_of(texts, text_blocks, thoughts), max_size=3))
    fields: dict[str, Any] = {}
    additional: dict[str, Any] = draw(
        st.fixed_dictionaries({}, optional={"reasoning_content": texts, "x": json_values})
    )
    for call_id in draw(st.lists(st.none() | _ids, max_size=3)):
        name, arguments = draw(names), draw(json_objects)
        written = draw(st.sampled_from([dump_text(arguments), '{"a": ']))
        entry = {"name": name, "args": arguments, "id": call_id}
        chunk = {**entry, "args": written, "index": 0}
        function = {"name": name, "arguments": written}
        places: dict[str, Any] = {
            "tool_calls": entry | draw(st.sampled_from([{}, {"type": "tool_call"}])),
            "invalid_tool_calls": {**entry, "args": written, "error": None},
            "tool_call_chunks": chunk,
            "content": draw(
                st.sampled_from(
                    [
                        {"type": "tool_use", "id": call_id, "name": name, "input": arguments},
                        {"type": "tool_call", **entry},
                        {"type": "tool_call_chunk", **chunk},
                        {"type": "function_call", "call_id": call_id, **function},
                    ]
                )
            ),
            "openai": {"id": call_id, "type": "function", "function": function},
        }
        for place in sorted(draw(st.sets(st.sampled_from(sorted(places)), min_size=1))):
            if place == "content":
                content.insert(draw(st.integers(0, len(content))), places[place])
            elif place == "openai":
                additional.setdefault("tool_calls", []).append(places[place])
            else:
                fields.setdefault(place, []).append(places[place])
    if draw(st.booleans()):
        additional["function_call"] = {"name": draw(names), "arguments": "{}"}
    return {**fields, "content": content or text, "additional_kwargs": additional}


replies = _calls().map(lambda fields: {"type": "ai", **fields})


# Messages

_shared = objects(
    {},
    additional_kwargs=json_objects,
    response_metadata=json_objects,
    name=_null_or_texts,
    id=_null_or_texts,
    usage_metadata=st.none() | st.just({"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}),
)
_fields_by_type: dict[str, Objects] = {
    "human": objects({"content": contents}),
    "system": objects({"content": contents}),
    "ai": _calls(),
    "tool": objects(
        {"content": result_contents, "tool_call_id": _ids},
        status=st.sampled_from(["success", "error"]),
        artifact=json_values,
    ),
    "function": objects({"content": result_contents, "name": names}),
    "chat": objects(
        {"content": contents, "role": st.sampled_from(["user", "Critic", "assistant"])}
    ),
    "remove": objects({"content": st.just(""), "id": texts}),
}


@st.composite
def messages_in(draw: st.DrawFn, *shapes: str) -> dict[str, Any]:
    """Messages of any type, in one of the shapes."""
    type_ = draw(st.sampled_from(sorted(CLASSES)))
    fields = draw(_fields_by_type[type_.removesuffix("MessageChunk").lower()])
    shape = draw(st.sampled_from(shapes))
    made: dict[str, Any] = make_message(shape, type_, {"type": type_, **draw(_shared), **fields})
    return made


messages = messages_in("data", "flat", "lc")
arrays = st.lists(messages, max_size=5)
bodies = objects({"messages": arrays}, tools=st.none() | json_values, context=json_objects)
values = arrays | bodies


def as_objects(values: list[dict[str, Any]]) -> list[Any]:
    """LangChain's own messages of these dicts, whatever their shape."""
    read = [read_fields(value, shape_of(value)) for value in values]
    return [make_message("object", type_, fields) for type_, fields in read]
