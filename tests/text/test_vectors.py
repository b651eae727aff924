"""Similar words: found by static vectors where the extra is installed, and by nothing elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import enfold
from enfold.text import questions, vectors
from enfold.text.questions import similar_phrases
from enfold.text.words import Phrase

pytest.importorskip("numpy", reason="the extra enfold[vectors] is not installed")
import numpy as np

VECTORS = {
    "price": (1.0, 0.0),
    "cost": (0.95, 0.31),
    "prices": (1.0, 0.1),
    "rope": (0.0, 1.0),
    "Paris": (1.0, 0.0),
}
"""Tokens that begin a word."""


def _clear() -> None:
    for memo in (vectors.are_installed, vectors.similar_words, vectors._table, questions._similar):
        memo.cache_clear()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the library."""
    monkeypatch.setitem(sys.modules, "wordllama", None)
    _clear()
    yield
    _clear()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a library with the same two files, which hold few words and cannot be imported."""
    folder = tmp_path / "wordllama"
    (folder / "weights").mkdir(parents=True)
    (folder / "tokenizers").mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('only its files are read')")
    rows = {"<s>": 0} | {f"\u2581{word}": at for at, word in enumerate(VECTORS, start=1)}
    table = np.array([(0.0, 0.0), *VECTORS.values()], dtype=np.float16)
    (folder / vectors._VOCABULARY).write_text(json.dumps({"model": {"vocab": rows}}))
    about = {"embedding.weight": {"dtype": "F16", "shape": table.shape, "data_offsets": [0, 24]}}
    header = json.dumps(about).encode()
    content = len(header).to_bytes(8, "little") + header + table.tobytes()
    (folder / vectors._WEIGHTS).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    _clear()
    yield
    _clear()


def test_similar_words_are_the_nearest_whole_words_in_lower_case(small: None) -> None:
    assert vectors.are_installed()
    assert [each.text for each in vectors.similar_words("price")] == ["prices", "cost", "rope"]
    assert vectors.similar_words("price")[1].similarity == pytest.approx(0.95, abs=0.01)
    assert vectors.similar_words("lantern") == ()


def test_similar_phrases_are_other_words_and_count_a_part(small: None) -> None:
    found = similar_phrases("What is the price of the lantern?")
    assert list(found) == [Phrase(("cost",), prefix=True)]  # "prices" is the same word
    assert found[Phrase(("cost",), prefix=True)] == pytest.approx(0.15 * 0.95, abs=0.01)
    assert similar_phrases("Compare the cost and the price of it.") == {}


def test_without_the_extra_no_word_has_similar_ones(without: None) -> None:
    assert not vectors.are_installed()
    assert vectors.similar_words("price") == ()
    assert similar_phrases("What is the price?") == {}


async def test_recall_finds_a_message_that_shares_no_word_with_the_question(
    small: None, tmp_path: Path
) -> None:
    found = await _recall(tmp_path)
    assert [each.position for each in found.passages] == [2]
    assert found.uses_vectors


async def test_without_the_extra_recall_uses_words_only(without: None, tmp_path: Path) -> None:
    found = await _recall(tmp_path)
    assert found.passages == ()
    assert not found.uses_vectors


async def _recall(tmp_path: Path) -> enfold.RecallAnswer:
    async with enfold.open(f"sqlite:///{tmp_path}/history.db") as engine:
        session = await engine.session("harbour", model="openai:gpt-5")
        texts = (
            "The harbour opens at nine.",
            "The lamp oil cost eleven florins.",
            "Noted, thanks.",
        )
        await session.append(*({"role": "user", "content": text} for text in texts))
        return await session.recall("What was the price?")


@pytest.mark.skipif(find_spec("wordllama") is None, reason="enfold[vectors] is not installed")
def test_the_real_vectors_know_that_a_price_is_a_cost() -> None:
    _clear()
    assert "cost" in [each.text for each in vectors.similar_words("price")[:3]]
    assert "wordllama" not in sys.modules
