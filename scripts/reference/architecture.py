"""Tables of the architecture page: layers of the tests, first docstring lines of the units."""

from __future__ import annotations

import ast

from tests.source import package
from tests.test_architecture import LAYERS

_TITLES = {0: "the public names", 1: "doors"}


def fill(text: str) -> str:
    """Return the page with the tables inserted at their marks."""
    return text.replace("<!-- layers -->", layers()).replace("<!-- units -->", units())


def layers() -> str:
    """Return a table of the layers, topmost first."""
    rows = (
        f"| {_TITLES.get(depth, depth + 1)} | {', '.join(map(_named, each))} |"
        for depth, each in enumerate(LAYERS)
    )
    return "\n".join(("| layer | units |", "|---|---|", *rows))


def _named(unit: str) -> str:
    return f"`{unit or 'enfold'}`"


def units() -> str:
    """Return a table of the units with the first lines of their docstrings."""
    modules = {module.name: module for module in package()}
    names = sorted(unit for layer in LAYERS for unit in layer if unit in modules and unit)
    rows = (f"| `{name}` | {_first_line(modules[name].tree)} |" for name in names)
    return "\n".join(("| unit | |", "|---|---|", *rows))


def _first_line(tree: ast.Module) -> str:
    return (ast.get_docstring(tree) or "").partition("\n")[0].replace("|", r"\|")
