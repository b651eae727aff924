"""Counts where a graph names no counter: exact, and a guess with one warning where none loads."""

from __future__ import annotations

import subprocess
import sys

from langchain_core.messages import AIMessage, HumanMessage

from enfold import tokens
from enfold.langgraph import count_tokens
from enfold.tokens import STRUCTURE_TOKENS

TEXT = "Grüße aus Köln: 3.14 is not 22/7. " * 20


def test_counts_are_those_of_cl100k_base() -> None:
    exact = tokens.get("cl100k_base").count(TEXT)
    assert count_tokens([HumanMessage(TEXT)]) == exact + STRUCTURE_TOKENS
    assert count_tokens([HumanMessage(TEXT), ("ai", TEXT)]) == 2 * (exact + STRUCTURE_TOKENS)


def test_calls_are_counted() -> None:
    call = {"name": "look", "args": {"at": TEXT}, "id": "1"}
    assert count_tokens([AIMessage("", tool_calls=[call])]) > count_tokens([HumanMessage(TEXT)])


def test_without_a_tokenizer_a_quarter_of_the_characters_is_taken() -> None:
    program = (
        "import logging, sys, warnings\n"
        "logging.basicConfig(format='%(name)s %(levelname)s %(message).24s', stream=sys.stdout)\n"
        "sys.modules['toktok'] = sys.modules['splintr'] = None\n"
        "from langchain_core.messages import HumanMessage\n"
        "from enfold.langgraph import count_tokens\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    print(*(count_tokens([HumanMessage('x' * n)]) for n in (400, 8)))\n"
        "    print(*(warning.category.__name__ for warning in caught))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "enfold.tokens ERROR counting failed: tokeniz",
        "enfold.tokens WARNING no tokenizer library loa",
        f"{100 + STRUCTURE_TOKENS} {2 + STRUCTURE_TOKENS}",
        "RuntimeWarning",
    ]
