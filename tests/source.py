"""The package's source, read as text and syntax for the architecture test."""

from __future__ import annotations

import ast
import gc
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "enfold"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True)
class Import:
    """One name brought in: `from enfold.errors import InputError` is `enfold.errors.InputError`."""

    target: str
    line: int
    late: bool
    """Inside a function, or for type checkers only: not loaded when the module is."""

    @property
    def library(self) -> str:
        """The top-level package of the target."""
        return self.target.partition(".")[0]

    @property
    def is_ours(self) -> bool:
        """Return True if it is a part of enfold."""
        return self.library == "enfold"


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    """Dotted, from the package on: `dialects.openai`. Empty for the package itself."""
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return _parsed(self.text)

    @property
    def unit(self) -> str:
        """Its topmost part, which has a layer: `dialects`."""
        return self.name.partition(".")[0]

    @property
    def package(self) -> str:
        """The package it is in, dotted; empty for those at the top."""
        return self.name.rpartition(".")[0]

    def is_within(self, place: str) -> bool:
        """Return True if it is that module or inside that package."""
        return self.name == place or self.name.startswith(f"{place}.")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every piece of its syntax."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Everything it imports, wherever the import stands."""
        return tuple(_imports(self.tree, late=False))

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every function and method."""
        return tuple(node for node in self.nodes if isinstance(node, Function))

    def public_definitions(self) -> Iterator[Definition]:
        """Functions and classes that others may use, with the classes' public methods.

        A protocol's methods are left out: it says what others define.
        """
        for node in self.tree.body:
            if not isinstance(node, Definition) or node.name.startswith("_"):
                continue
            yield node
            if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases):
                methods = (part for part in node.body if isinstance(part, Function))
                yield from (method for method in methods if not method.name.startswith("_"))

    def comments(self) -> Iterator[tuple[int, str]]:
        """Line and text of every comment."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@cache
def package() -> tuple[Module, ...]:
    """Every module of enfold; read and parsed once in a process."""
    return tuple(
        Module(_dotted(path), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    )


def _parsed(text: str) -> ast.Module:
    """Parse without garbage collection.

    The package has half a million nodes, which all stay. To look through them again and again
    takes longer than parsing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imports(node: ast.AST, *, late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(alias.name, child.lineno, late) for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (Import(f"{module}.{a.name}", child.lineno, late) for a in names)
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                yield Import(name, child.lineno, late)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _imports(child, late=True)
            case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test):
                yield from _imports(child, late=True)
            case _:
                yield from _imports(child, late=late)
