"""Records: JSON without the blanks between its values, and arrays of like objects as tables.

A table is `{"columns":[…],"rows":[[…],…]}` in place of the array. A text may hold JSON among other
lines: on one line, or from a line that is a bracket to the line that closes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

_EDGES = re.compile(r"^(?:([\[{])|([\]}])|[\[{].{40,}[\]}])$", re.MULTILINE)
"""A line that opens JSON, one that closes it, or one that may hold all of it."""
_FEWEST_ROWS = 3
_INDENTED: tuple[tuple[Any, bool], ...] = tuple((by, False) for by in (2, 4, "\t", 3, 1))
_ON_ONE_LINE: tuple[tuple[Any, bool], ...] = ((None, True), (None, False))
"""The usual ways to write JSON: what lines are indented by, and whether blanks are left out."""
_COMPACT = (",", ":")


def encode_blanks(text: str) -> tuple[str, Any] | None:
    """Every JSON block of the text on one line, and how each was written."""
    return _encode(text, as_tables=False)


def encode_tables(text: str) -> tuple[str, Any] | None:
    """Arrays of like objects as tables, and where each stands."""
    return _encode(text, as_tables=True)


def decode(text: str, how: Any) -> str:
    """The JSON as it was written."""
    was: list[str] = []
    at = 0
    for start, stop, style, tables in how:
        value = json.loads(text[start:stop])
        for path in reversed(tables):
            value = _replaced(value, path, _rows_as_objects)
        was += (text[at:start], _write(value, style))
        at = stop
    return "".join([*was, text[at:]])


def _encode(text: str, *, as_tables: bool) -> tuple[str, Any] | None:
    shown: list[str] = []
    changed: list[list[Any]] = []
    end = length = 0
    for start, stop in _blocks(text):
        found = _encode_block(text[start:stop], as_tables=as_tables)
        if found is None:
            continue
        block, style, tables = found
        shown += (text[end:start], block)
        length += start - end
        changed.append([length, length + len(block), style, tables])
        length += len(block)
        end = stop
    return ("".join([*shown, text[end:]]), changed) if changed else None


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where JSON may be: from a line that opens it to the one that closes it, or on one line."""
    if not text.startswith(("{", "[")) and "\n{" not in text and "\n[" not in text:
        return
    opened: int | None = None
    for found in _EDGES.finditer(text):
        if found[1]:
            opened = found.start()
        elif not found[2]:
            yield found.span()
        elif opened is not None:
            yield opened, found.end()
            opened = None


def _encode_block(block: str, *, as_tables: bool) -> tuple[str, Any, list[Any]] | None:
    value = _value(block)
    style = None if value is None else _style(block, value)
    if value is None or style is None:
        return None
    tables: list[Any] = []
    if as_tables:
        for path in list(_like_objects(value, [])):
            tables.append(path)
            value = _replaced(value, path, _objects_as_rows)
        if not tables:
            return None
        return _write(value, style), style, tables
    has_surrogates = "\\ud" in block.lower()  # which only escapes can carry safely
    compact = _write(value, {"indent": None, "tight": True, "ascii": has_surrogates})
    return (compact, style, []) if len(compact) < len(block) else None


def _value(block: str) -> Any:
    """The array or object that a text is; None if it is none."""
    try:
        value = json.loads(block)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _style(block: str, value: Any) -> dict[str, Any] | None:
    """How the block was written, if one of the usual ways gives the same text."""
    layouts = _INDENTED if "\n" in block else _ON_ONE_LINE
    escapings = (False, True) if "\\u" in block else (False,)
    for (indent, tight), is_ascii in product(layouts, escapings):
        style = {"indent": indent, "tight": tight, "ascii": is_ascii}
        if _write(value, style) == block:
            return style
    return None


def _write(value: Any, style: Any) -> str:
    indent, tight = style["indent"], style["tight"]
    separators = _COMPACT if tight else (",", ": ") if indent is not None else (", ", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=style["ascii"])


def _like_objects(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    """The paths of all arrays of objects with the same keys; not of arrays inside those."""
    if isinstance(value, list):
        if _are_alike(value):
            yield path
            return
        items: Any = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    else:
        return
    for key, item in items:
        yield from _like_objects(item, [*path, key])


def _are_alike(items: list[Any]) -> bool:
    if len(items) < _FEWEST_ROWS or not isinstance(items[0], dict) or not items[0]:
        return False
    keys = list(items[0])
    return all(isinstance(item, dict) and list(item) == keys for item in items)


def _objects_as_rows(items: Any) -> Any:
    return {"columns": list(items[0]), "rows": [list(item.values()) for item in items]}


def _rows_as_objects(table: Any) -> Any:
    columns = table["columns"]
    return [dict(zip(columns, row, strict=True)) for row in table["rows"]]


def _replaced(value: Any, path: list[Any], change: Any) -> Any:
    """The value with what stands at the path changed."""
    if not path:
        return change(value)
    key, *rest = path
    if isinstance(value, list):
        return [*value[:key], _replaced(value[key], rest, change), *value[key + 1 :]]
    return {**value, key: _replaced(value[key], rest, change)}
