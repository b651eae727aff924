"""Pages of the documentation, and their fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.source import ROOT

DOCS = ROOT / "docs"

_FENCE = re.compile(r'```(?P<language>[\w-]*)(?: title="(?P<title>[^"]+)")?\s*')
_REASON = re.compile(r"<!-- not run: (?P<reason>.+?) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str
    title: str | None = None
    """The name of the file that the block defines."""
    reason: str | None = None
    """The reason why it is not run."""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return all written pages, including the README."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the blocks of the page, in order."""
    return list(_blocks(name_of(page), page.read_text(encoding="utf-8")))


def _blocks(name: str, text: str) -> Iterator[Block]:
    lines = iter(enumerate(text.splitlines(), 1))
    before = ""
    for number, line in lines:
        opening = _FENCE.fullmatch(line)
        if not opening:
            before = line if line.strip() else before
            continue
        inside = []
        for _, each in lines:
            if each.rstrip() == "```":
                break
            inside.append(each)
        else:
            raise ValueError(f"{name}:{number}: the block has no end")
        reason = _REASON.fullmatch(before.strip())
        yield Block(
            page=name,
            line=number,
            language=opening["language"],
            text="\n".join(inside) + "\n",
            title=opening["title"],
            reason=reason["reason"] if reason else None,
        )
        before = ""
