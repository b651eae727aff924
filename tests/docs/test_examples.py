"""Every code block of the documentation and of the README runs and prints what the page shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page_runner import RUNS, Runner
from tests.docs.pages import Block, blocks, name_of, pages
from tests.docs.upstream import upstream

NOT_RUN: dict[str, str] = {
    "README.md:pip install": "it installs packages",
    "README.md:client = OpenAI": "it calls a model",
    "README.md:make run": "it installs packages and serves until it is stopped",
    "docs/architecture.md:door": "a drawing",
    "docs/clients/aider.md:pip install": "it installs packages",
    "docs/clients/aider.md:enfold: 212 requests": "the figures depend on your work",
    "docs/clients/claude-code.md:pip install 'enfold[mcp]'": "it needs Claude Code",
    "docs/clients/claude-code.md:pip install": "it installs packages",
    "docs/clients/claude-code.md:enfold: 212 requests": "the figures depend on your work",
    "docs/clients/codex.md:pip install 'enfold[mcp]'": "it needs Codex",
    "docs/clients/codex.md:pip install": "it installs packages",
    "docs/clients/codex.md:enfold: 212 requests": "the figures depend on your work",
    "docs/clients/gemini-cli.md:pip install": "it installs packages",
    "docs/clients/gemini-cli.md:enfold: 212 requests": "the figures depend on your work",
    "docs/clients/langgraph.md:pip install": "it installs packages",
    "docs/clients/opencode.md:pip install": "it installs packages",
    "docs/clients/opencode.md:enfold: 212 requests": "the figures depend on your work",
    "docs/evaluation.md:enfold eval": "its files are published elsewhere, and it calls a model",
    "docs/evaluation.md:export ENFOLD_DATA": "it needs recorded conversations and takes an hour",
    "docs/guides/operations.md:export POSTGRES_PASSWORD": "it needs Docker and a network",
    "docs/start/install.md:pip install enfold": "it installs packages",
    "docs/start/install.md:uvx enfold demo": "it installs packages",
    "docs/start/install.md:pip install --no-deps": "it installs packages",
    "docs/start/cli.md:enfold profiles add": "it calls a model and needs a terminal",
}
"""Reasons by `page:start of the block`; a comment above the block has the same reason."""

PAGES = [page for page in pages() if blocks(page)]


@pytest.fixture
def runner(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Return a runner with a provider on loopback, and PostgreSQL if the page uses it."""
    text = request.getfixturevalue("page").read_text(encoding="utf-8")
    variables = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    if "postgresql://enfold@localhost/enfold" in text:
        variables["POSTGRESQL"] = request.getfixturevalue("server").new_database()
    with upstream() as address:
        for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
            variables[f"ENFOLD_{name}_BASE_URL"] = address
        made = Runner(tmp_path, variables)
        try:
            yield made
        finally:
            made.stop()


@pytest.mark.timeout(600)  # a limit for blocks that hang; a page may start several servers
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_the_page_runs(page: Path, runner: Runner) -> None:
    for block in blocks(page):
        if block.reason is None:
            runner.run(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_checked_language(page: Path) -> None:
    unknown = [block.place for block in blocks(page) if block.language not in RUNS]
    assert unknown == []


def test_blocks_that_do_not_run_are_listed_with_their_reasons() -> None:
    reasons = {
        _key(block): block.reason for page in PAGES for block in blocks(page) if block.reason
    }
    assert reasons == NOT_RUN


def _key(block: Block) -> str:
    """Return the key of the block's row, or the key that a new row should have."""
    rows = (row.partition(":")[2] for row in NOT_RUN if row.startswith(f"{block.page}:"))
    begins = next((row for row in rows if block.text.startswith(row)), block.text[:30])
    return f"{block.page}:{begins}"
