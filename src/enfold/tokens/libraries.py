"""The libraries that count texts: loaded when first needed, and made to agree with the reference.

toktok is the fastest and has the vocabularies inside. It knows a newer Unicode than the reference,
tiktoken: 4,699 letters, marks and digits that Unicode 17 added are symbols to tiktoken, so a text
with one of them can be split, and counted, differently. splintr agrees with tiktoken on every code
point. It counts those texts, and all texts where toktok has no build.

A lone surrogate is no character and has no bytes. It is counted as U+FFFD, and a pair of surrogates
as the character that it stands for, as tiktoken does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, TypeAlias

from enfold.errors import ConfigError, TokenCountError

CountTexts: TypeAlias = Callable[[list[str]], list[int]]
"""Counts each of some texts that are not empty. May raise anything: the caller maps it."""

CTOK_IS_MISSING = (
    "Claude's tokenizers need the library ctok, which needs Python 3.12 or later: "
    "pip install 'enfold[claude]', or choose o200k_base"
)

_DOUBTFUL = re.compile(
    "["
    "\u088f\u0c5c\u0cdc\u1acf-\u1aeb\ua7ce-\ua7f1"
    "\ud800-\udfff"
    "\U00010940-\U0001e6ff\U0002b73a-\U00033479"
    "]"
)
"""Every code point that toktok may take for something else than tiktoken does, and the surrogates.

Few and wide, because each range costs time on every text that is not ASCII. They also hold rare
characters that both agree on; splintr counts those as well."""

_ALL_CORES = 1_000_000
"""From so many characters on, every core counts. Each starts with an empty cache, so that less text
is counted faster one by one, where the cache is the thread's own and lasts."""


def openai(encoding: str) -> CountTexts:
    """Counts as tiktoken does."""
    exact = _Exact(encoding)
    fast = _load_toktok(encoding)
    if fast is None:
        exact.load()
        return exact

    def count(texts: list[str]) -> list[int]:
        doubtful = [text for text in texts if not text.isascii() and _DOUBTFUL.search(text)]
        if not doubtful:
            return _count_fast(fast, texts)
        exactly = dict(zip(doubtful, exact(doubtful), strict=True))
        quickly = iter(_count_fast(fast, [text for text in texts if text not in exactly]))
        return [exactly[text] if text in exactly else next(quickly) for text in texts]

    return count


def claude(version: str) -> CountTexts:
    """Counts as Anthropic's API does for the models of one generation."""
    try:
        ctok = import_module("ctok")
    except ImportError:
        raise ConfigError(CTOK_IS_MISSING) from None
    frame = ctok.tokenize("", version).count("⟨pad⟩")  # what the API adds around a message

    def count(texts: list[str]) -> list[int]:
        return [ctok.token_count(_repair(text), version) - frame for text in texts]

    return count


def chars4() -> CountTexts:
    """A quarter of the characters: a guess, for those who ask for it."""
    return lambda texts: [len(text) // 4 for text in texts]


class _Toktok(Protocol):
    def count(self, text: str) -> int: ...
    def count_batch(self, texts: list[str], threads: int, with_special: bool) -> list[int]: ...  # noqa: FBT001


def _load_toktok(encoding: str) -> _Toktok | None:
    try:
        toktok = import_module("toktok")
    except ImportError:
        return None
    # Its documentation names this way to the tokenizer. The function it offers first, batch_count,
    # starts every call with an empty cache: 40 µs for a text that takes 1 µs.
    tokenizer: _Toktok = toktok._encoding(encoding)  # noqa: SLF001
    return tokenizer


def _count_fast(fast: _Toktok, texts: list[str]) -> list[int]:
    if sum(map(len, texts)) >= _ALL_CORES:
        return fast.count_batch(texts, 0, False)  # noqa: FBT003
    return [fast.count(text) for text in texts]


class _Exact:
    """splintr, loaded at the first text that needs it."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._encode: Callable[[str], list[int]] | None = None

    def __call__(self, texts: list[str]) -> list[int]:
        encode = self._encode or self.load()
        return [len(encode(_repair(text))) for text in texts]

    def load(self) -> Callable[[str], list[int]]:
        try:
            splintr = import_module("splintr")
        except ImportError as error:
            raise TokenCountError(
                f"no library that counts {self._encoding} exactly can be loaded ({error}); "
                "install toktok-rs and splintr-rs, or choose the tokenizer chars4"
            ) from None
        # Not `encode`, nor a batch of it: they take `<|endoftext|>` for a command.
        self._encode = splintr.Tokenizer.from_pretrained(self._encoding).encode_ordinary
        return self._encode


def _repair(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
