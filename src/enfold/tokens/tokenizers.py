"""Tokenizers: named counters of tokens.

`o200k_base` and `cl100k_base` are exact: the counts of tiktoken, for every text. `claude` (models
from 4.7 on) and `claude-3` (models before) count as Anthropic's API does, and need the extra
`enfold[claude]`. `chars4` is a guess: it is asked for by name, or as the `fallback` for a machine
where no library loads.

A text that looks like a special token, such as `<|endoftext|>`, is text like any other. Whatever
fails in a library is a `TokenCountError`; nothing is approximated in its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from threading import Lock
from typing import Literal, TypeVar

from enfold.errors import ConfigError, EnfoldError, TokenCountError
from enfold.tokens import libraries
from enfold.tokens.libraries import CountTexts
from enfold.tokens.memo import UNKNOWN, Memo

DEFAULT = "o200k_base"

Result = TypeVar("Result")


class Tokenizer:
    """A named counter with a memo of what it counted. Threads may share it.

    The library behind it is loaded at the first count, or by `warm`.
    """

    def __init__(
        self, name: str, load: Callable[[], CountTexts], *, memo: Memo | None = None
    ) -> None:
        self.name = name
        self._load = load
        self._loading = Lock()
        self._count_texts: CountTexts | None = None
        self._memo = Memo() if memo is None else memo

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r})"

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return self.count_many((text,))[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text; one call for many texts is faster than many calls."""
        counts = self._memo.find(texts)
        if UNKNOWN not in counts:
            return counts
        unseen = dict.fromkeys(
            (text for text, count in zip(texts, counts, strict=True) if count == UNKNOWN), 0
        )
        unseen.update(self._count([text for text in unseen if text]))
        self._memo.keep(unseen)
        return [
            unseen[text] if count == UNKNOWN else count
            for text, count in zip(texts, counts, strict=True)
        ]

    def load(self) -> CountTexts:
        """What the library offers, loaded once."""
        with self._loading:
            if self._count_texts is None:
                self._count_texts = self._mapping_errors(self._load)
            return self._count_texts

    def _count(self, texts: list[str]) -> dict[str, int]:
        count_texts = self._count_texts or self.load()
        return self._mapping_errors(lambda: dict(zip(texts, count_texts(texts), strict=True)))

    def _mapping_errors(self, work: Callable[[], Result]) -> Result:
        """The work's result; whatever a library raises becomes one error of ours.

        A panic in Rust is not even an `Exception`. The library's own words are not repeated: they
        may quote the text that was being counted.
        """
        try:
            return work()
        except EnfoldError:
            raise
        except BaseException as error:
            kind = type(error).__name__
            if not isinstance(error, Exception) and kind != "PanicException":
                raise
            raise TokenCountError(
                f"the library behind {self.name} failed ({kind}); nothing was counted, try again"
            ) from None


_TOKENIZERS = {
    tokenizer.name: tokenizer
    for tokenizer in (
        Tokenizer("o200k_base", partial(libraries.openai, "o200k_base")),
        Tokenizer("cl100k_base", partial(libraries.openai, "cl100k_base")),
        Tokenizer("claude", partial(libraries.claude, "4.8")),
        Tokenizer("claude-3", partial(libraries.claude, "3.0")),
        Tokenizer("chars4", libraries.chars4, memo=Memo(size=0)),
    )
}

NAMES = tuple(_TOKENIZERS)
"""Every tokenizer; those of Claude need the extra `enfold[claude]`."""


def get(name: str | Tokenizer = DEFAULT, *, fallback: Literal["chars4"] | None = None) -> Tokenizer:
    """The tokenizer of that name; a tokenizer is returned as it is.

    With a `fallback` the library is loaded at once. If it does not load, the fallback is returned,
    under its own name, with one warning per process.
    """
    if isinstance(name, Tokenizer):
        return name
    if name not in _TOKENIZERS:
        raise ConfigError(f"no tokenizer {name!r}; there are {', '.join(NAMES)}")
    if fallback not in {None, "chars4"}:
        raise ConfigError(f"no fallback {fallback!r}; there is only 'chars4'")
    tokenizer = _TOKENIZERS[name]
    if fallback is not None:
        return _loaded_or_chars4(tokenizer)
    if name.startswith("claude") and find_spec("ctok") is None:
        raise ConfigError(libraries.CTOK_IS_MISSING)
    return tokenizer


def warm(name: str = DEFAULT) -> None:
    """Load the library now, about half a second's work, so that no request waits for it."""
    get(name).load()


def _loaded_or_chars4(tokenizer: Tokenizer) -> Tokenizer:
    try:
        tokenizer.load()
    except (ConfigError, TokenCountError):
        _warn_of_guesses()
        return _TOKENIZERS["chars4"]
    return tokenizer


@cache  # so that the process hears it once
def _warn_of_guesses() -> None:
    warnings.warn(
        "no tokenizer library loads: tokens are guessed as a quarter of the characters; "
        "install toktok-rs or splintr-rs for exact counts",
        RuntimeWarning,
        stacklevel=4,  # whoever called `get`
    )
