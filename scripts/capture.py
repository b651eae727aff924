"""Pictures of commands in a terminal, as SVG.

`.venv/bin/python scripts/capture.py` writes them to docs/.
"""

from __future__ import annotations

import errno
import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
ENFOLD = Path(sys.executable).with_name("enfold")
COLUMNS = 100
SECONDS_PER_LINE = 0.25
PICTURES = {"demo.svg": ("demo",)}
"""File -> the command's arguments."""


def main() -> None:
    """Draw every picture."""
    for name, arguments in PICTURES.items():
        output = in_terminal([str(ENFOLD), *arguments])
        svg = draw(output, title=" ".join(("enfold", *arguments)))
        (ROOT / "docs" / name).write_text(svg, encoding="utf-8")
        print(f"docs/{name}: {len(svg):,} characters")


def in_terminal(command: list[str]) -> str:
    """Return the output of the command in a terminal."""
    ours, its = pty.openpty()
    surroundings = {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        env={**os.environ, **surroundings},
    ) as process:
        os.close(its)
        written = b"".join(iter(lambda: read_some(ours), b"")).decode()
    os.close(ours)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}:\n{written}")
    return written.replace("\r\n", "\n")


def read_some(terminal: int) -> bytes:
    """Return the next output; nothing at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def draw(output: str, title: str) -> str:
    """Return the terminal as an SVG that loads no font from a server."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi(output.strip("\n")))
    template = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=title, theme=MONOKAI, code_format=template, unique_id="enfold")
    return animate(svg)


def animate(svg: str) -> str:
    """Return the picture with lines that appear one after the other, once."""
    style = "@keyframes appear { from { opacity: 0 } to { opacity: 1 } }"

    def delayed(found: re.Match[str]) -> str:
        seconds = int(found[1]) * SECONDS_PER_LINE
        return f'{found[0]} style="animation: appear 0.2s {seconds:.2f}s both"'

    moving = re.sub(r'clip-path="url\(#enfold-line-(\d+)\)"', delayed, svg)
    return moving.replace("</style>", f"    {style}\n    </style>", 1)


if __name__ == "__main__":
    main()
