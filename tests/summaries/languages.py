"""The conversations of `languages.toml`, which holds them because their punctuation is not ours."""

from __future__ import annotations

import tomllib
from pathlib import Path

from enfold.testing import assistant, user
from tests.summaries.facts import FactSet

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _fact_set(name: str) -> FactSet:
    texts = _TABLE[name]["messages"]
    messages = tuple(
        assistant(text) if number % 2 else user(text) for number, text in enumerate(texts)
    )
    return FactSet(name, messages, tuple((fact,) for fact in _TABLE[name]["facts"]))


CHINESE = _fact_set("chinese")
SPANISH = _fact_set("spanish")
ARABIC = _fact_set("arabic")
LANGUAGES = (CHINESE, SPANISH, ARABIC)
