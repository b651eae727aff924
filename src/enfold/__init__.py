"""enfold keeps long conversations with language models inside the model's window, losing nothing.

The names in `__all__` are the public library; everything else may change without notice. Each is
loaded on first use, so that `import enfold` is fast.
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
    from enfold.engine.engine import Engine
    from enfold.engine.results import Prepared, Preview, Status
    from enfold.engine.session import Session
    from enfold.engine.stateless import Condensed
    from enfold.errors import (
        BlockedError,
        CompressionError,
        ConfigError,
        EnfoldError,
        InputError,
        NotFoundError,
        RestoreError,
        StoreError,
        TokenCountError,
    )
    from enfold.ledger import Ledger
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
    from enfold.pipeline import Outcome
    from enfold.receipt import Receipt
    from enfold.report import Report

__all__ = [
    "MAX_CONDENSE_THRESHOLD",
    "MIN_CONDENSE_THRESHOLD",
    "TOKEN_BUFFER_PERCENTAGE",
    "Attachment",
    "BlockedError",
    "CompressionError",
    "Condensed",
    "ConfigError",
    "Conversation",
    "EnfoldError",
    "Engine",
    "InputError",
    "Ledger",
    "Message",
    "NotFoundError",
    "Outcome",
    "Prepared",
    "Preview",
    "Reasoning",
    "Receipt",
    "Report",
    "RestoreError",
    "Session",
    "Status",
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

_MODULES = {
    "enfold.budget": (
        "MAX_CONDENSE_THRESHOLD",
        "MIN_CONDENSE_THRESHOLD",
        "TOKEN_BUFFER_PERCENTAGE",
        "should_condense",
    ),
    "enfold.engine.engine": ("Engine",),
    "enfold.engine.results": ("Prepared", "Preview", "Status"),
    "enfold.engine.session": ("Session",),
    "enfold.engine.stateless": ("Condensed",),
    "enfold.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "enfold.ledger": ("Ledger",),
    "enfold.library": ("condense", "condense_sync", "count", "open", "restore"),
    "enfold.llm.costs": ("calculate_api_cost_anthropic", "calculate_api_cost_openai"),
    "enfold.pipeline": ("Outcome",),
    "enfold.receipt": ("Receipt",),
    "enfold.report": ("Report",),
}
"""Public names by the module that defines them; the others are in `enfold.messages`."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module, once."""
    if name not in __all__:
        raise AttributeError(f"module 'enfold' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF.get(name, "enfold.messages")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return __all__
