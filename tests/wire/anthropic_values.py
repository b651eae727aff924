"""Valid values of the `anthropic` wire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.wire.round_trips import json_objects, json_values, names, objects, texts

Blocks = st.SearchStrategy[dict[str, Any]]

_base64 = st.sampled_from(["", "aGk=", "aGVsbG8h", "AA=="])
_urls = st.sampled_from(["https://example.org/a", "data:image/png;base64,aGk="])
_ids = st.from_regex(r"toolu_[A-Za-z0-9]{4}", fullmatch=True)
_cache = st.none() | objects({"type": st.just("ephemeral")}, ttl=st.sampled_from(["5m", "1h"]))


def _blocks(kind: str, /, **required: st.SearchStrategy[Any]) -> Blocks:
    return objects({"type": st.just(kind), **required}, cache_control=_cache)


def _texts_with_citations() -> Blocks:
    cited = objects({"type": st.just("char_location"), "cited_text": texts})
    return objects(
        {"type": st.just("text"), "text": texts},
        cache_control=_cache,
        citations=st.none() | st.lists(cited, max_size=2),
    )


text_blocks = _texts_with_citations()
sources = st.one_of(
    objects({"type": st.just("base64"), "data": _base64}, media_type=st.just("image/png")),
    objects({"type": st.just("url"), "url": _urls}),
    objects({"type": st.just("file"), "file_id": texts}),
)
text_sources = objects(
    {"type": st.just("text"), "media_type": st.just("text/plain"), "data": texts}
)
document_sources = st.one_of(
    sources,
    text_sources,
    objects({"type": st.just("content"), "content": texts | st.lists(text_blocks, max_size=2)}),
)
text_documents = _blocks("document", source=text_sources)
images = _blocks("image", source=sources)
documents = objects(
    {"type": st.just("document"), "source": document_sources},
    title=st.none() | texts,
    context=st.none() | texts,
    citations=objects({"enabled": st.booleans()}),
    cache_control=_cache,
)
search_results = _blocks(
    "search_result", source=_urls, title=texts, content=st.lists(text_blocks, max_size=2)
)
thoughts = st.one_of(
    _blocks("thinking", thinking=texts, signature=texts),
    _blocks("redacted_thinking", data=texts),
)
calls = _blocks("tool_use", id=_ids, name=names, input=json_objects)
results = objects(
    {"type": st.just("tool_result"), "tool_use_id": _ids},
    content=st.none()
    | texts
    | st.lists(st.one_of(text_blocks, images, documents, search_results), max_size=3),
    is_error=st.none() | st.booleans(),
    cache_control=_cache,
)
provider_blocks = st.one_of(
    _blocks("server_tool_use", id=_ids, name=st.just("web_search"), input=json_objects),
    _blocks("web_search_tool_result", tool_use_id=_ids, content=json_values),
    _blocks("mcp_tool_use", id=_ids, name=names, server_name=names, input=json_objects),
    _blocks("mcp_tool_result", tool_use_id=_ids, is_error=st.booleans(), content=json_values),
    _blocks("container_upload", file_id=texts),
    _blocks("compaction", content=st.none() | texts),
    _blocks("block_of_next_year", anything=json_values),
)


def _messages(role: str, blocks: Blocks) -> Blocks:
    content = texts | st.lists(blocks, max_size=4)
    return objects({"role": st.just(role), "content": content}, id=texts | st.integers())


messages = st.one_of(
    _messages("user", st.one_of(text_blocks, images, documents, results, provider_blocks)),
    _messages("assistant", st.one_of(text_blocks, thoughts, calls, provider_blocks)),
    _messages("system", text_blocks),
)
tools = st.one_of(
    objects({"name": names, "input_schema": json_objects}, description=texts, cache_control=_cache),
    objects({"type": st.just("web_search_20250305"), "name": st.just("web_search")}),
    objects({"type": st.just("mcp_toolset"), "mcp_server_name": names}),
)
arrays = st.lists(messages, max_size=6)
bodies = objects(
    {"messages": arrays},
    model=texts,
    max_tokens=st.integers(1),
    system=st.none() | texts | st.lists(text_blocks, max_size=3),
    tools=st.none() | st.lists(tools, max_size=3),
    thinking=json_objects,
)
values = arrays | bodies


def holding(
    role: str, content: st.SearchStrategy[str | list[dict[str, Any]]]
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Arrays of messages, one of them of this role and with this content."""
    message = objects({"role": st.just(role), "content": content})
    return st.builds(lambda before, it, after: [*before, it, *after], arrays, message, arrays)


def _some(blocks: Blocks, others: Blocks) -> st.SearchStrategy[list[dict[str, Any]]]:
    """At least one of the first kind, between any of the second."""
    few = st.lists(others, max_size=2)
    return st.builds(lambda before, it, after: [*before, it, *after], few, blocks, few)


with_text = holding(
    "user", st.text(min_size=1, max_size=20) | _some(text_blocks, results | documents)
)
with_text_document = holding("user", _some(text_documents, results | documents))
with_call = holding("assistant", _some(calls, text_blocks | thoughts | calls))
with_result = holding("user", _some(results, text_blocks | images | results))
with_thought = holding("assistant", _some(thoughts, text_blocks | thoughts | calls))
