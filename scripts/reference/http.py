"""The HTTP reference, generated from the OpenAPI description of the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from scripts.reference.tables import kind_of

from enfold.server.api.app import describe_api

_METHODS = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """Return the page."""
    return "\n".join(_lines(describe_api()))


def _lines(whole: Mapping[str, Any]) -> Iterator[str]:
    yield "# HTTP reference\n"
    yield "Generated from the OpenAPI description when this site was built. A running server has "
    yield "the same at `/docs`, and as OpenAPI at `/openapi.json`. Every error has the shape "
    yield "[`ErrorBody`](#errorbody), with a code from the [table of errors](errors.md).\n"
    operations = [
        (method.upper(), path, operation)
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    for noun, group in groupby(operations, key=lambda each: each[2]["tags"][0]):
        yield f"## {noun.capitalize()}\n"
        for method, path, operation in group:
            yield from _operation(method, path, operation)
    yield "## Shapes\n"
    for name, schema in sorted(whole["components"]["schemas"].items()):
        yield from _shape(name, schema)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {operation['summary']}\n"
    yield f"`{method} {path}`\n"
    yield f"{operation.get('description', '')}\n"
    found = operation.get("parameters", ())
    if found:
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for each in found:
            words = [_cell(each.get("description", "")), "Required." if each["required"] else ""]
            kind = _cell(kind_of(each["schema"]))
            yield f"| `{each['name']}` | {each['in']} | {kind} | {' '.join(words).strip()} |"
        yield ""
    if "requestBody" in operation:
        yield f"Body: {_linked(operation['requestBody'])}\n"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            yield f"Returns {status}: {_linked(answer) or 'nothing'}\n"


def _linked(content: Mapping[str, Any]) -> str:
    """Return a link to the shape of a body, or its type."""
    for kind, each in content.get("content", {}).items():
        schema = each.get("schema", {})
        shape = kind_of(schema.get("items", schema))
        many = "an array of " if "items" in schema else ""
        if "$ref" in schema.get("items", schema):
            return f"{many}[`{shape}`](#{shape.lower()})"
        return f"{many}{shape}, as {kind}" if kind != "application/json" else f"{many}{shape}"
    return ""


def _shape(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"### `{name}`\n\n{schema.get('description', '')}\n"
    required = schema.get("required", ())
    yield "| field | type | |\n|---|---|---|"
    for field, each in schema.get("properties", {}).items():
        text = _cell(each.get("description", ""))
        note = " Required." if field in required else ""
        yield f"| `{field}` | {_cell(kind_of(each))} | {text}{note} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
