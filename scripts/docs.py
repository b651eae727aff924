"""The documentation site: written pages, pages generated from the code, and a check of the result.

`make docs` runs this. Everything is built in `build/documentation`, the site in its folder `site`.
Generated files are not committed. The built pages load nothing from other servers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from scripts.reference import architecture, cli, http, python, tables

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "documentation"
CONFIG = ROOT / "zensical.toml"

GENERATED: Mapping[str, Callable[[], str]] = {
    "reference/python.md": python.page,
    "reference/http.md": http.page,
    "reference/cli.md": cli.page,
    "reference/settings.md": tables.settings_page,
    "reference/strategies.md": tables.strategies_page,
    "reference/errors.md": tables.errors_page,
    "reference/events.md": tables.events_page,
}
"""Generated pages and their generators."""

FILLED: Mapping[str, Callable[[str], str]] = {"architecture.md": architecture.fill}
"""Pages with generated tables, and the functions that insert them."""

_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?((?:https?:)?//[^"')]+)|@import\s+["'](https?://[^"']+)"""
)
"""Resources that a browser loads from other servers; plain links do not count."""


def main() -> int:
    """Build the site; return 1 if a link is broken or a page loads from another server."""
    stage(BUILD)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=BUILD, check=False
    )
    if done.returncode != 0:
        return 1
    foreign = list(external_resources(BUILD / "site"))
    for each in foreign:
        print(f"a page loads from another server: {each}", file=sys.stderr)
    if not foreign:
        print(f"The site is in {(BUILD / 'site').relative_to(ROOT)}; open index.html there.")
    return 1 if foreign else 0


def stage(folder: Path) -> None:
    """Copy and generate all sources of the site into one folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(CONFIG, folder)
    for name, make in GENERATED.items():
        page = folder / "docs" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make().rstrip() + "\n", encoding="utf-8")
    for name, fill in FILLED.items():
        page = folder / "docs" / name
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


def external_resources(site: Path) -> Iterator[str]:
    """Yield the resources that built pages load from other servers, with the page."""
    for file in sorted(site.rglob("*")):
        if file.suffix not in {".html", ".css"}:
            continue
        for found in _FETCHED.finditer(file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: {next(filter(None, found.groups()))}"


if __name__ == "__main__":
    sys.exit(main())
