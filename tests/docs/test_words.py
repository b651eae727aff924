"""Texts for people use plain words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import name_of, pages
from tests.source import ROOT

TEXTS = [
    *pages(),
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "src").rglob("README.md")),
]

UNCLEAR = re.compile(
    r"\b(?:un)?fold(?:s|ed|ing)?\b|\bso many\b|\bnobody\b|\bsomebody\b|\bwhoever\b", re.IGNORECASE
)
"""Words that have a plain replacement: summarized, condensed, "this number of"."""
PRODUCT = '"Fold" is the product\'s name'
"""The sentence of CONTRIBUTING.md that explains the rule."""


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_a_text_has_no_unclear_words(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if UNCLEAR.search(line) and PRODUCT not in line]
    assert found == []
