"""Conversations that are worth condensing, as files have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enfold.bulk.files import BulkFile, condense_paths, find_files
from enfold.bulk.tasks import CondenseTask
from enfold.engine.stateless import CondenseOptions
from enfold.jsontext import dumps
from enfold.settings import Settings

TRUNCATION = CondenseTask(Settings(strategy="truncation"), CondenseOptions())


def chat(name: str, turns: int = 20) -> dict[str, Any]:
    """A request body with long tool results, unlike that of any other name."""
    messages: list[Any] = [{"role": "user", "content": f"Look at {name}."}]
    for turn in range(turns):
        call = {"name": "read", "arguments": dumps({"path": f"{name}/{turn}.py"}).decode()}
        lines = "\n".join(f"{name} {turn}: value_{line} = {line * turn}" for line in range(40))
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": lines},
        ]
    return {"id": name, "messages": [*messages, {"role": "user", "content": "Go on."}]}


def write(path: Path, *values: Any) -> Path:
    """The values as lines of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(dumps(value) + b"\n" for value in values))
    return path


def place_of(source: Path, out: Path) -> BulkFile:
    """Where the results of one file go."""
    return condense_paths(find_files([source]), out, None)[0]
