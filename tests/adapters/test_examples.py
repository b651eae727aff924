"""Every example runs as it is: a process of its own, an empty folder, no key and no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXAMPLES = {
    "langchain_middleware.py": ("60 messages, all of them in", "[Previous conversation summary]"),
    "langgraph_node.py": ("60 messages, all of them in", "[Previous conversation summary]"),
    "llama_index_memory.py": ("all of them stored", "[Previous conversation summary]"),
    "mcp_client.py": ("recall, search_history", "behind the barometer"),
    "openai_agents_session.py": ("all of them stored", "[Previous conversation summary]"),
    "pydantic_ai_history.py": ("none is lost", "tokens became"),
}
"""What each must say, beside ending well."""


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_runs(name: str, tmp_path: Path) -> None:
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
    environment = {key: value for key, value in os.environ.items() if key not in keys}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / name)],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in EXAMPLES[name]:
        assert words in done.stdout
