"""The Python reference: every public name with its signature and docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module

from scripts.reference import source

import enfold

AROUND: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Sessions": {
        "enfold.engine.engine": ("Engine",),
        "enfold.engine.session": ("Session",),
        "enfold.engine.results": ("Prepared", "Preview", "Status"),
        "enfold.pipeline": ("Outcome",),
        "enfold.records": ("StoredMessage", "Hit", "Snapshot"),
    },
    "Condensed conversations": {
        "enfold.engine.stateless": ("Condensed",),
        "enfold.report": ("Report",),
        "enfold.receipt": ("Receipt",),
        "enfold.ledger": ("Ledger",),
    },
    "LangGraph": {
        "enfold.langgraph.node": ("SummarizationNode",),
        "enfold.langgraph.summarization": (
            "summarize_messages",
            "asummarize_messages",
            "RunningSummary",
        ),
    },
    "Adapters": {
        "enfold.adapters.langchain": ("EnfoldMiddleware",),
        "enfold.adapters.llama_index": ("EnfoldMemory",),
        "enfold.adapters.openai_agents": ("AgentSession",),
        "enfold.adapters.pydantic_ai": ("HistoryProcessor",),
    },
    "For your tests": {
        "enfold.testing": (
            "ScriptedSummarizer",
            "ScriptedGateway",
            "system",
            "user",
            "assistant",
            "call",
            "result",
        ),
    },
}
"""Classes that public functions return, and modules with their own import path."""

_MADE_BY_CALLERS = ("enfold.adapters.", "enfold.langgraph.", "enfold.testing")
"""Modules whose classes callers construct."""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Python reference\n"
    yield "Generated from the docstrings when this site was built. The names in `enfold.__all__` "
    yield "are stable in version 0.1. The other sections describe the classes that they return and "
    yield "modules with their own import path.\n"
    yield "## `enfold`\n"
    for name in enfold.__all__:
        value = getattr(enfold, name)
        module = getattr(value, "__module__", None) or "enfold.budget"
        yield from _entry(module, name, prefix="enfold.")
    for title, modules in AROUND.items():
        yield f"## {title}\n"
        for module, names in modules.items():
            import_module(module)  # fails if a name has moved
            for name in names:
                yield from _entry(module, name, prefix="")


def _entry(module: str, name: str, *, prefix: str) -> Iterator[str]:
    node = source.find(module, name)
    yield f"### `{prefix}{name}`\n"
    if not prefix:
        yield f"From `{_home(module)}`.\n"
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _function(node)
        case ast.ClassDef():
            yield from _class(node, is_made_by_callers=module.startswith(_MADE_BY_CALLERS))
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield f"{source.text_after(module, name)} `{ast.unparse(value)}`\n"


def _home(module: str) -> str:
    """Return the module to import from; a package re-exports the names of its modules."""
    package = module.rpartition(".")[0]
    return package if package == "enfold.langgraph" else module


def _function(node: source.Function) -> Iterator[str]:
    yield f"```text\n{source.signature(node)}\n```\n"
    yield f"{ast.get_docstring(node) or ''}\n"


def _class(node: ast.ClassDef, *, is_made_by_callers: bool) -> Iterator[str]:
    yield f"{ast.get_docstring(node) or ''}\n"
    found = list(source.fields(node.body))
    if found:
        yield "| field | type | |\n|---|---|---|"
        for each in found:
            default = f" Default: `{each.default}`." if _is_plain(each.default) else ""
            yield f"| `{each.name}` | `{each.annotation}` | {_cell(each.text)}{default} |"
        yield ""
    for method in node.body:
        if not isinstance(method, source.Function):
            continue
        if _is_shown(method, is_made_by_callers=is_made_by_callers):
            is_property = "property" in map(ast.unparse, method.decorator_list)
            kind = ", a property" if is_property else ""
            yield f"#### `{node.name}.{method.name}`{kind}\n"
            yield from [f"{ast.get_docstring(method)}\n"] if is_property else _function(method)


def _is_shown(method: source.Function, *, is_made_by_callers: bool) -> bool:
    return not method.name.startswith("_") or (method.name == "__init__" and is_made_by_callers)


def _is_plain(default: str) -> bool:
    return bool(default) and "field(" not in default


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
