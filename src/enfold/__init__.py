"""enfold keeps long conversations with language models inside the model's window, losing nothing.

The names below are the library; everything else may change without notice. They are loaded when
they are first used, so that `import enfold` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from enfold.budget import (
        MAX_CONDENSE_THRESHOLD,
        MIN_CONDENSE_THRESHOLD,
        TOKEN_BUFFER_PERCENTAGE,
        should_condense,
    )
    from enfold.errors import (
        CompressionError,
        ConfigError,
        EnfoldError,
        InputError,
        StoreError,
        TokenCountError,
    )
    from enfold.library import condense, condense_sync, count, open, restore  # noqa: A004
    from enfold.llm.costs import calculate_api_cost_anthropic, calculate_api_cost_openai
    from enfold.messages import (
        Attachment,
        Conversation,
        Message,
        Reasoning,
        Text,
        Tool,
        ToolCall,
        ToolResult,
    )

__all__ = [
    "MAX_CONDENSE_THRESHOLD",
    "MIN_CONDENSE_THRESHOLD",
    "TOKEN_BUFFER_PERCENTAGE",
    "Attachment",
    "CompressionError",
    "ConfigError",
    "Conversation",
    "EnfoldError",
    "InputError",
    "Message",
    "Reasoning",
    "StoreError",
    "Text",
    "TokenCountError",
    "Tool",
    "ToolCall",
    "ToolResult",
    "calculate_api_cost_anthropic",
    "calculate_api_cost_openai",
    "condense",
    "condense_sync",
    "count",
    "open",
    "restore",
    "should_condense",
]


_HOMES = {
    "CompressionError": "enfold.errors",
    "ConfigError": "enfold.errors",
    "EnfoldError": "enfold.errors",
    "InputError": "enfold.errors",
    "StoreError": "enfold.errors",
    "TokenCountError": "enfold.errors",
    "MAX_CONDENSE_THRESHOLD": "enfold.budget",
    "MIN_CONDENSE_THRESHOLD": "enfold.budget",
    "TOKEN_BUFFER_PERCENTAGE": "enfold.budget",
    "calculate_api_cost_anthropic": "enfold.llm.costs",
    "calculate_api_cost_openai": "enfold.llm.costs",
    "condense": "enfold.library",
    "condense_sync": "enfold.library",
    "count": "enfold.library",
    "open": "enfold.library",
    "restore": "enfold.library",
    "should_condense": "enfold.budget",
}
"""Where a name is loaded from; the others are values of `enfold.messages`."""


def __getattr__(name: str) -> Any:
    """Load a public name from its module, once."""
    if name not in __all__:
        raise AttributeError(f"module 'enfold' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "enfold.messages")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return __all__
