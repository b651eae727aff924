"""Valid values of the `gemini` wire, in both spellings."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from tests.wire.round_trips import json_objects, json_values, names, objects, texts

Objects = st.SearchStrategy[dict[str, Any]]

_base64 = st.sampled_from(["", "aGk=", "aGVsbG8h", "AA=="])
_ids = st.none() | st.from_regex(r"call-[a-z0-9]{4}", fullmatch=True)
_signatures = st.none() | st.sampled_from(["c2ln", ""])


def _in_snake_case(value: dict[str, Any]) -> dict[str, Any]:
    return {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key): value[key] for key in value}


def _spelt(
    required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> Objects:
    """Objects whose fields are written as in REST or as in the Python SDK."""
    camel = objects(required, **optional)
    return camel | camel.map(_in_snake_case)


def _one_or_many(items: st.SearchStrategy[Any], *, min_size: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=min_size, max_size=4) | items


texts_said = _spelt(
    {"text": texts}, thought=st.none() | st.just(False), thoughtSignature=_signatures
)
thoughts = st.one_of(
    _spelt({"text": texts, "thought": st.just(True)}, thoughtSignature=_signatures),
    st.builds(
        lambda key: {key: "c2ln"}, st.sampled_from(["thoughtSignature", "thought_signature"])
    ),
)
files = st.one_of(
    _spelt(
        {"inlineData": _spelt({"mimeType": st.just("image/png"), "data": _base64})},
        videoMetadata=json_objects,
    ),
    _spelt(
        {
            "fileData": _spelt(
                {"fileUri": st.sampled_from(["gs://bucket/a", "https://example.org/a"])},
                mimeType=st.just("video/mp4"),
                displayName=texts,
            )
        }
    ),
)
calls = _spelt(
    {"functionCall": objects({"name": names}, args=st.none() | json_objects, id=_ids)},
    thoughtSignature=_signatures,
)
results = _spelt(
    {
        "functionResponse": objects(
            {"name": names},
            response=st.none() | json_objects | st.just({"error": "no such file"}),
            id=_ids,
            parts=st.none() | st.lists(files, max_size=2),
            willContinue=st.booleans(),
        )
    }
)
provider_parts: Objects = st.one_of(
    _spelt({"executableCode": objects({"language": st.just("PYTHON"), "code": texts})}),
    _spelt({"codeExecutionResult": objects({"outcome": st.just("OUTCOME_OK")}, output=texts)}),
    _spelt({"videoMetadata": json_objects}),
    _spelt({"partOfNextYear": json_values}),
    st.just({}),
)


def _contents(role: str, parts: Objects) -> Objects:
    return objects({"role": st.just(role)}, parts=st.none() | _one_or_many(parts))


said_by_user = texts_said | files | results | provider_parts
said_by_model = texts_said | thoughts | calls | files | provider_parts
contents = st.one_of(
    _contents("user", said_by_user),
    objects({"parts": _one_or_many(said_by_user)}, role=st.none()),
    _contents("model", said_by_model),
    _contents("function", results),
)
declarations = _spelt(
    {"name": names}, description=texts, parameters=json_objects, parametersJsonSchema=json_objects
)
tools = st.one_of(
    _spelt({"functionDeclarations": st.lists(declarations, max_size=2)}),
    _spelt({"googleSearch": st.just({})}, codeExecution=st.none() | json_objects),
)
arrays = st.lists(contents, max_size=6)
bodies = _spelt(
    {"contents": arrays | contents},
    systemInstruction=st.none()
    | objects({}, role=texts, parts=_one_or_many(texts_said | provider_parts)),
    tools=st.none() | _one_or_many(tools),
    generationConfig=json_objects,
)
values = arrays | bodies


def holding(role: str, parts: Objects, others: Objects) -> st.SearchStrategy[Any]:
    """Arrays of contents, one of them of this role and with at least one of these parts."""
    few = st.lists(others, max_size=2)
    many = st.builds(lambda before, it, after: [*before, it, *after], few, parts, few)
    content = objects({"role": st.just(role), "parts": parts | many})
    return st.builds(lambda before, it, after: [*before, it, *after], arrays, content, arrays)


with_text = holding("user", texts_said.filter(lambda part: part["text"]), said_by_user)
with_call = holding("model", calls, said_by_model)
with_result = holding("user", results, said_by_user)
with_thought = holding("model", thoughts, said_by_model)
