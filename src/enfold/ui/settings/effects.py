"""Effects: what an operation makes of a text, shown on an example while it is adjusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.messages import Message, Text, text_of
from enfold.strategies import configs
from enfold.strategies.smart.config import OperationConfig, Operations
from enfold.strategies.smart.operations import Editor, marked
from enfold.tokens import get

EXAMPLE = "\n".join(
    f"{line:>3}  step {line}: {line * 37 % 91} records read in {line * 53 % 57} ms"
    for line in range(1, 41)
)
"""What a tool might have printed: forty lines."""


def effect(operation: Mapping[str, Any]) -> str | None:
    """What becomes of the example. None while the operation cannot be used as it stands."""
    if configs.faults(OperationConfig, operation):
        return None
    config = configs.read(OperationConfig, operation)
    if config.operation == "summarize":
        return marked(f"… at most {config.summarize.max_tokens:,} tokens …")
    message = Message("assistant", (Text(EXAMPLE),))
    edited = Editor(get(), {}).edit(message, Operations(message_text=config))
    return text_of(edited.parts)
