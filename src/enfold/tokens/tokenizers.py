"""Tokenizers: named counters of tokens.

`o200k_base` and `cl100k_base` are exact: the counts of tiktoken, for every text. `claude` (models
from 4.7 on) and `claude-3` (models before) count as Anthropic's API does, and need the extra
`enfold[claude]`. `chars4` is an estimate: it is used only by name, or as the `fallback` if no
library loads.

A text that looks like a special token, such as `<|endoftext|>`, is ordinary text. A failure of a
library is a `TokenCountError`; it is never replaced by an estimate.
"""

from __future__ import annotations

import logging
import re
import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from threading import Lock
from typing import Literal, Protocol, TypeAlias, TypeVar

from enfold.errors import ConfigError, EnfoldError, TokenCountError
from enfold.text import key_of

CountTexts: TypeAlias = Callable[[list[str]], list[int]]
"""Returns the tokens of each non-empty text. May raise any error; the caller translates it."""

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
"""Every code point that toktok may classify otherwise than tiktoken, and the surrogates.

The ranges are few and wide, because each one costs time on every text that is not ASCII. They also
contain rare characters on which both agree; splintr counts those as well."""

_STEP = 65_536
"""Characters of a text that are searched in one step."""
_ALL_CORES = 1_000_000
"""Number of characters from which all cores are used. Each core starts with an empty cache, so
shorter texts are counted faster one by one, with the lasting cache of the thread."""


_LONG_RUN = 1_500_000
"""Characters after which toktok is loaded. It reads new text seven times as fast, but takes 0.5 s
to load, splintr takes 0.05 s: then both took the same time. A file or a few requests are less."""


class TiktokenCounter:
    """A counter with the counts of tiktoken: with splintr at first, in a long run with toktok."""

    long_run = _LONG_RUN
    """Characters after which a run is long."""

    def __init__(self, encoding: str, *, fast_after: int | None = None) -> None:
        fast_after = self.long_run if fast_after is None else fast_after
        self._encoding = encoding
        self._exact = _Exact(encoding)
        self._fast: _Toktok | None = None
        self._left: int | None = fast_after
        """Characters to count before toktok is loaded. None: it was loaded, or is not installed."""
        if not self._exact.is_installed or fast_after == 0:
            self.load_fast()
        if self._fast is None:
            self._exact.load()

    def __call__(self, texts: list[str]) -> list[int]:
        if self._left is not None:
            self._left -= len(texts[0]) if len(texts) == 1 else sum(map(len, texts))
            if self._left <= 0:
                self.load_fast()
        fast = self._fast
        if fast is None:
            return self._exact(texts)
        if len(texts) == 1 and texts[0].isascii():
            return [fast.count(texts[0])]
        doubtful = [text for text in texts if not text.isascii() and _is_doubtful(text)]
        if not doubtful:
            return _count_fast(fast, texts)
        exactly = dict(zip(doubtful, self._exact(doubtful), strict=True))
        quickly = iter(_count_fast(fast, [text for text in texts if text not in exactly]))
        return [exactly[text] if text in exactly else next(quickly) for text in texts]

    def load_fast(self) -> None:
        """Load toktok, if it is installed; splintr is not kept in memory then."""
        self._fast = self._fast or _load_toktok(self._encoding)
        self._left = None
        if self._fast is not None:
            self._exact = _Exact(self._encoding)


def claude(version: str) -> CountTexts:
    """Return a counter with the counts of the provider's API, for one generation of models."""
    try:
        ctok = import_module("ctok")
    except ImportError:
        raise ConfigError(CTOK_IS_MISSING) from None
    frame = ctok.tokenize("", version).count("⟨pad⟩")  # tokens that the API adds

    def count(texts: list[str]) -> list[int]:
        return [ctok.token_count(_repair(text), version) - frame for text in texts]

    return count


def chars4() -> CountTexts:
    """Return a counter that estimates: a quarter of the characters."""
    return lambda texts: [len(text) // 4 for text in texts]


class _Toktok(Protocol):
    def count(self, text: str) -> int: ...
    def count_batch(self, texts: list[str], threads: int, with_special: bool) -> list[int]: ...  # noqa: FBT001


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # a test or a program says that it is not there
        return False


def _load_toktok(encoding: str) -> _Toktok | None:
    try:
        toktok = import_module("toktok")
    except ImportError:
        return None
    # This way is documented. The more prominent function, batch_count, starts every call with an
    # empty cache: 40 µs for a text that takes 1 µs.
    tokenizer: _Toktok = toktok._encoding(encoding)  # noqa: SLF001
    return tokenizer


def _is_doubtful(text: str) -> bool:
    """Return True if toktok may count the text differently.

    A search in a long text holds the interpreter's lock until its end, so it is done in steps.
    """
    return any(_DOUBTFUL.search(text, at, at + _STEP) for at in range(0, len(text), _STEP))


def _count_fast(fast: _Toktok, texts: list[str]) -> list[int]:
    if sum(map(len, texts)) >= _ALL_CORES:
        return fast.count_batch(texts, 0, False)  # noqa: FBT003
    return [fast.count(text) for text in texts]


class _Exact:
    """Counts with splintr, which is loaded for the first text that needs it."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._encode: Callable[[str], list[int]] | None = None

    @property
    def is_installed(self) -> bool:
        return self._encode is not None or _is_installed("splintr")

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
        # Not `encode` or its batch form: they read `<|endoftext|>` as a special token.
        self._encode = splintr.Tokenizer.from_pretrained(self._encoding).encode_ordinary
        return self._encode


def _repair(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


UNKNOWN = -1

_ENTRIES = 40_000
"""An entry takes about 100 bytes, however long its text is."""
_SLOTS = 2**18
"""Places of the table of dropped counts, an even number. It takes 3 MB."""
_SERVER_ENTRIES = 10_000
"""Entries in a server, which has a cache of the counts of messages besides."""
_SERVER_SLOTS = 2**16
"""Places of the table in a server."""
_PRIME = (1 << 61) - 1
_TAG = (1 << 64) - 1


class _CountTable:
    """Counts by the key of a text, in a table of a fixed size; a new one may replace another.

    It serves conversations that have more texts than a memo has entries: 12 bytes for a text.
    """

    def __init__(self, slots: int = _SLOTS) -> None:
        self._slots = slots
        self._tags = array("Q")
        self._counts = array("I")

    def find(self, key: int) -> int:
        """Return the count of a text, or `UNKNOWN`."""
        if self._tags:
            slot, tag = self._place(key)
            for place in (slot, slot ^ 1):
                if self._tags[place] == tag:
                    return self._counts[place]
        return UNKNOWN

    def keep(self, key: int, count: int) -> None:
        """Remember the count of a text."""
        if not self._tags:
            self._counts = array("I", bytes(4 * self._slots))
            self._tags = array("Q", bytes(8 * self._slots))
        slot, tag = self._place(key)
        if self._tags[slot] not in (0, tag):
            self._tags[slot ^ 1], self._counts[slot ^ 1] = self._tags[slot], self._counts[slot]
        self._counts[slot] = count
        self._tags[slot] = tag

    def _place(self, key: int) -> tuple[int, int]:
        return key % _PRIME % self._slots, key & _TAG or 1


class Memo:
    """Counts by text, in two generations; `entries` is the maximum number of counts in each.

    No text is held, only its key.

    New texts go to the young generation. When it is full it becomes the old one, and the old one
    is dropped whole; a text that the old one still knows moves to the young. That keeps what is in
    use, as a queue of the least recently used would, but a known text costs one lookup and no
    lock: a generation is replaced, never emptied under a reader. The counts of texts that were
    dropped are found in a table.
    """

    def __init__(self, *, entries: int = _ENTRIES) -> None:
        self._entries = entries
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._dropped = _CountTable()
        self._changing = Lock()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def limit(self, entries: int, slots: int = _SERVER_SLOTS) -> None:
        """Lower the limit of entries in a generation, and the places of dropped counts."""
        with self._changing:
            self._entries = min(self._entries, entries)
            self._dropped = _CountTable(slots)

    def get(self, text: str) -> int:
        """The count of one text, or `UNKNOWN`."""
        count = self._young.get(key_of(text), UNKNOWN)
        return self.find((text,))[0] if count == UNKNOWN and self._old else count

    def find(self, texts: Sequence[str]) -> list[int]:
        """The count of each text, or `UNKNOWN`."""
        counts = list(map(self._young.get, map(key_of, texts), repeat(UNKNOWN)))
        if self._old and UNKNOWN in counts:
            with self._changing:
                old = self._old
                for index, text in enumerate(texts):
                    if counts[index] == UNKNOWN:
                        key = key_of(text)
                        count = counts[index] = old.get(key, UNKNOWN)
                        if count == UNKNOWN:
                            counts[index] = self._dropped.find(key)
                        else:
                            self._keep(key, count)
        return counts

    def keep_one(self, text: str, count: int) -> None:
        """Remember one count for later."""
        with self._changing:
            self._keep(key_of(text), count)

    def keep(self, counted: Mapping[str, int]) -> None:
        """Remember counts for later."""
        keys = map(key_of, counted)
        with self._changing:
            if len(self._young) + len(counted) <= self._entries:
                self._young.update(zip(keys, counted.values(), strict=True))
                return
            for key, count in zip(keys, counted.values(), strict=True):
                self._keep(key, count)

    def _keep(self, key: int, count: int) -> None:
        if not self._entries:
            return
        if len(self._young) >= self._entries and key not in self._young:
            for old_key, old_count in self._old.items():
                self._dropped.keep(old_key, old_count)
            self._old, self._young = self._young, {}
        self._young[key] = count


DEFAULT = "o200k_base"

Result = TypeVar("Result")

_log = logging.getLogger("enfold.tokens")


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
        # Written out, because a single short text would take longer to pass around than to count.
        if not text:
            return 0
        tokens = self._memo.get(text)
        if tokens == UNKNOWN:
            one = [text]
            tokens = self._mapping_errors(partial(self._count_texts or self.load(), one), one)[0]
            self._memo.keep_one(text, tokens)
        return tokens

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text; one call for many texts is faster than many calls."""
        counts = self._memo.find(texts)
        if UNKNOWN not in counts:
            return counts
        pairs = zip(texts, counts, strict=True)
        unseen = list(dict.fromkeys(text for text, count in pairs if text and count == UNKNOWN))
        counted = self._count(unseen) if unseen else {}
        del unseen
        self._memo.keep(counted)
        return [
            counted.get(text, 0) if count == UNKNOWN else count
            for text, count in zip(texts, counts, strict=True)
        ]

    def use_small_memo(self) -> None:
        """Remember fewer counts from now on."""
        self._memo.limit(_SERVER_ENTRIES)

    def load(self) -> CountTexts:
        """Return the library's interface, loaded once."""
        with self._loading:
            if self._count_texts is None:
                self._count_texts = self._mapping_errors(self._load, ())
            return self._count_texts

    def _count(self, texts: list[str]) -> dict[str, int]:
        count_texts = self._count_texts or self.load()
        return self._mapping_errors(
            lambda: dict(zip(texts, count_texts(texts), strict=True)), texts
        )

    def _mapping_errors(self, work: Callable[[], Result], texts: Sequence[str]) -> Result:
        """Run the work; an error of a library becomes an error of enfold, and is logged.

        A panic in Rust is not an `Exception`. The library's message is not repeated, because it
        may quote the counted text.
        """
        try:
            return work()
        except EnfoldError as error:
            self._log_failure(texts, str(error))
            raise
        except BaseException as error:
            kind = type(error).__name__
            if not isinstance(error, Exception) and kind != "PanicException":
                raise
            self._log_failure(texts, kind)
            raise TokenCountError(
                f"the library behind {self.name} failed ({kind}); nothing was counted, try again"
            ) from None

    def _log_failure(self, texts: Sequence[str], cause: str) -> None:
        # Counts and the cause, never the text.
        _log.error(
            "counting failed: tokenizer=%s texts=%d characters=%d cause=%s",
            self.name,
            len(texts),
            sum(map(len, texts)),
            cause,
        )


_TOKENIZERS = {
    tokenizer.name: tokenizer
    for tokenizer in (
        Tokenizer("o200k_base", partial(TiktokenCounter, "o200k_base")),
        Tokenizer("cl100k_base", partial(TiktokenCounter, "cl100k_base")),
        Tokenizer("claude", partial(claude, "4.8")),
        Tokenizer("claude-3", partial(claude, "3.0")),
        Tokenizer("chars4", chars4, memo=Memo(entries=0)),
    )
}

NAMES = tuple(_TOKENIZERS)
"""Every tokenizer; those of Claude need the extra `enfold[claude]`."""


def get(name: str | Tokenizer = DEFAULT, *, fallback: Literal["chars4"] | None = None) -> Tokenizer:
    """Return the tokenizer of that name; a tokenizer is returned as it is.

    With a `fallback` the library is loaded at once. If it does not load, the fallback is returned,
    with its own name and one warning per process.
    """
    if isinstance(name, Tokenizer):
        return name
    if name not in _TOKENIZERS:
        raise ConfigError(f"no tokenizer {name!r}; available: {', '.join(NAMES)}")
    if fallback not in {None, "chars4"}:
        raise ConfigError(f"no fallback {fallback!r}; there is only 'chars4'")
    tokenizer = _TOKENIZERS[name]
    if fallback is not None:
        return _loaded_or_chars4(tokenizer)
    if name.startswith("claude") and find_spec("ctok") is None:
        raise ConfigError(CTOK_IS_MISSING)
    return tokenizer


def use_fastest_library_only() -> None:
    """Load only the fastest library from now on: the other one never frees its 13 MB."""
    TiktokenCounter.long_run = 0


def use_small_memos() -> None:
    """Remember fewer counts from now on, to save memory in a server."""
    for tokenizer in _TOKENIZERS.values():
        tokenizer.use_small_memo()


def warm(name: str = DEFAULT) -> None:
    """Load the fastest library now, which takes half a second, so that no count waits for it."""
    counter = get(name).load()
    if isinstance(counter, TiktokenCounter):
        counter.load_fast()


@cache  # a failed load is logged once, and counts of one process stay comparable
def _loaded_or_chars4(tokenizer: Tokenizer) -> Tokenizer:
    try:
        tokenizer.load()
    except (ConfigError, TokenCountError):
        _warn_of_guesses()
        return _TOKENIZERS["chars4"]
    return tokenizer


@cache  # one warning per process
def _warn_of_guesses() -> None:
    warning = (
        "no tokenizer library loads: tokens are guessed as a quarter of the characters; "
        "install toktok-rs or splintr-rs for exact counts"
    )
    _log.warning(warning)
    warnings.warn(warning, RuntimeWarning, stacklevel=4)  # the caller of `get`


@dataclass(frozen=True, slots=True)
class Correction:
    """The factor that a limit is divided by, and its reason."""

    factor: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Family:
    label: str
    figure: float
    own_tokenizer: str | None = None
    """The name of the tokenizer that is exact for these models, if there is one."""


_CLAUDE_TO_4_6 = _Family("Claude up to 4.6", 1.18, "claude-3")
_CLAUDE_FROM_4_7 = _Family("Claude 4.7 and later", 1.43, "claude")
_GPT = _Family("OpenAI's models from GPT-4o on", 1.0, "o200k_base")

_FAMILIES: tuple[tuple[re.Pattern[str], _Family], ...] = (
    (re.compile("gemini|gemma"), _Family("Gemini", 1.15)),
    (re.compile("mistral|mixtral|codestral|devstral|magistral"), _Family("Mistral", 1.10)),
    (re.compile("qwen|qwq"), _Family("Qwen", 1.05)),
    (re.compile("(?<!o)llama|deepseek|glm|kimi"), _Family("Llama, DeepSeek, GLM and Kimi", 1.02)),
    (re.compile(r"gpt-?(3\.?5|4(?!o|\.|\d))"), _Family("GPT-4 and GPT-3.5", 1.05, "cl100k_base")),
    (re.compile(r"gpt|openai|azure|(^|[:/])o\d"), _GPT),
    (re.compile("^google|^vertex"), _Family("Gemini", 1.15)),
)
"""The first row whose pattern matches in `provider:model` is the model's family."""

_TOKENIZER_FIGURES = {
    "o200k_base": 1.0,
    "cl100k_base": 1.0,
    "claude-3": _CLAUDE_TO_4_6.figure,
    "claude": _CLAUDE_FROM_4_7.figure,
    "chars4": 0.92,
}
"""Tokens of each tokenizer for one token of `o200k_base`, as a rule at least."""

_CLAUDE_VERSION = re.compile(r"claude\D*?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


def correction(provider: str, model: str, tokenizer: str = "o200k_base") -> Correction:
    """Return the correction for a model whose conversations are counted with a tokenizer."""
    if tokenizer not in _TOKENIZER_FIGURES:
        raise ConfigError(f"no tokenizer {tokenizer!r}; available: {', '.join(_TOKENIZER_FIGURES)}")
    family = _family_of(f"{provider}:{model}".lower())
    if family is None:
        return Correction(
            1.0, f"the tokenizer of {provider}:{model} is unknown; {tokenizer} is used"
        )
    if family.own_tokenizer == tokenizer:
        return Correction(1.0, f"{family.label}: {tokenizer} is exact")
    factor = round(family.figure / _TOKENIZER_FIGURES[tokenizer], 2)
    if factor <= 1:
        return Correction(1.0, f"{family.label}: {tokenizer} counts no less")
    return Correction(factor, f"{family.label}: about {factor:g} tokens for each of {tokenizer}")


def _family_of(name: str) -> _Family | None:
    if "claude" in name or "anthropic" in name:
        return _claude_family(name)
    return next((family for pattern, family in _FAMILIES if pattern.search(name)), None)


def _claude_family(name: str) -> _Family:
    """Return the family by version; without one the latest, whose limit is the tightest."""
    found = _CLAUDE_VERSION.search(name)
    if found is None:
        return _CLAUDE_FROM_4_7
    version = (int(found[1]), int(found[2] or 0))
    return _CLAUDE_TO_4_6 if version < (4, 7) else _CLAUDE_FROM_4_7
