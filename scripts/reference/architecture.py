"""The tables of the architecture page: layers as the tests hold them, units in their own words."""

from __future__ import annotations

import ast

from tests.source import package
from tests.test_architecture import LAYERS

_TITLES = {0: "the public names", 1: "doors"}


def fill(text: str) -> str:
    """The page with its tables in place of their marks."""
    return text.replace("<!-- layers -->", layers()).replace("<!-- units -->", units())


def layers() -> str:
    """A row for each layer, the topmost first."""
    rows = (
        f"| {_TITLES.get(depth, depth + 1)} | {', '.join(map(_named, each))} |"
        for depth, each in enumerate(LAYERS)
    )
    return "\n".join(("| layer | units |", "|---|---|", *rows))


def _named(unit: str) -> str:
    return f"`{unit or 'enfold'}`"


def units() -> str:
    """A row for each unit: the first line of its docstring."""
    known = {module.name: module for module in package()}
    names = sorted(unit for layer in LAYERS for unit in layer if unit in known and unit)
    rows = (f"| `{name}` | {_first_line(known[name].tree)} |" for name in names)
    return "\n".join(("| unit | answers |", "|---|---|", *rows))


def _first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("|", r"\|")
