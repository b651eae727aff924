"""Signatures, docstrings and fields of names, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class."""

    name: str
    annotation: str
    default: str
    """The default as source text; empty if there is none."""
    text: str
    """Its docstring."""


def find(module: str, name: str) -> ast.stmt:
    """Return the node that defines a name in a module."""
    for node in _tree(module).body:
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return node
    raise LookupError(f"{module} has no {name}")


def fields(body: list[ast.stmt]) -> Iterator[Field]:
    """Yield the annotated public fields of a class with their docstrings."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id.startswith("_") or "ClassVar" in ast.unparse(node.annotation):
            continue
        default = "" if node.value is None else ast.unparse(node.value)
        annotation = ast.unparse(node.annotation)
        yield Field(node.target.id, annotation, default, _text(following))


def signature(node: Function) -> str:
    """Return the signature of a function."""
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    one_line = f"{word} {node.name}({ast.unparse(node.args)}){returns}"
    if len(one_line) <= _WIDTH:
        return one_line
    arguments = "".join(f"    {each},\n" for each in _arguments(node.args))
    return f"{word} {node.name}(\n{arguments}){returns}"


_WIDTH = 96


def _arguments(given: ast.arguments) -> Iterator[str]:
    """Yield each argument as source text."""
    plain = [*given.posonlyargs, *given.args]
    without = len(plain) - len(given.defaults)
    for place, each in enumerate(plain):
        value = given.defaults[place - without] if place >= without else None
        yield _argument(each, value)
        if given.posonlyargs and place == len(given.posonlyargs) - 1:
            yield "/"
    if given.vararg:
        yield f"*{ast.unparse(given.vararg)}"
    elif given.kwonlyargs:
        yield "*"
    for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(each, value)
    if given.kwarg:
        yield f"**{ast.unparse(given.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + ("" if default is None else f" = {ast.unparse(default)}")


def _tree(module: str) -> ast.Module:
    path = SOURCES.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def text_after(module: str, name: str) -> str:
    """Return the docstring below an assignment."""
    body = _tree(module).body
    return _text(body[body.index(node) + 1]) if (node := _assignment(body, name)) else ""


def _assignment(body: list[ast.stmt], name: str) -> ast.stmt | None:
    named = (node for node in body if isinstance(node, ast.Assign | ast.AnnAssign))
    return next((node for node in named if name in _targets(node)), None)


def _text(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
        case _:
            return ""
