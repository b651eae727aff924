"""Vectors: words of nearly the same meaning, by static word vectors.

They are those of the library wordllama, which the extra `enfold[vectors]` installs. Its two files
are read here directly, because its own loader asks a server for the tokenizer. Without the extra,
no word has similar ones.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from enfold.errors import ConfigError
from enfold.jsontext import loads
from enfold.text.sentences import is_content_word

if TYPE_CHECKING:
    import numpy as np

_LIBRARY = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_VOCABULARY = "tokenizers/l2_supercat_tokenizer_config.json"
_WORD_START = "\u2581"
"""The first character of a token that begins a word."""
_MIN_WORD_LENGTH = 3
_MAX_SIMILAR = 30
"""The nearest words that are considered."""
_HEADER_SIZE = 8
"""Bytes at the beginning of the weights that hold the length of their description."""


class SimilarWord(NamedTuple):
    """A word of nearly the same meaning as another."""

    text: str
    similarity: float
    """The cosine of both vectors; 1 for the same direction."""


class _Table(NamedTuple):
    """Words and their vectors, which have the length 1."""

    rows: dict[str, int]
    words: list[str]
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]


@cache
def are_installed() -> bool:
    """Return True if the extra `enfold[vectors]` is installed."""
    folder = _folder()
    return folder is not None and all((folder / each).is_file() for each in (_WEIGHTS, _VOCABULARY))


def _folder() -> Path | None:
    found = find_spec(_LIBRARY)
    return Path(found.origin).parent if found and found.origin else None


@lru_cache(maxsize=4_096)
def similar_words(word: str) -> tuple[SimilarWord, ...]:
    """Return the words of nearest meaning, the nearest first; none for a word without a vector.

    The first call reads the vectors, which takes a few tenths of a second.
    """
    if not are_installed():
        return ()
    import numpy as np

    table = _table()
    row = table.rows.get(word)
    if row is None:
        return ()
    # One thread: the product of matrices would start as many as there are cores.
    scores = np.einsum("ij,j->i", table.vectors, table.vectors[row])
    nearest = scores.argsort()[::-1][: _MAX_SIMILAR + 1]
    return tuple(
        SimilarWord(table.words[at], float(scores[at])) for at in nearest.tolist() if at != row
    )


@cache
def _table() -> _Table:
    """Return the vectors of the tokens that are whole words, read from the library's files.

    Words in upper case are left out: the words near a name are other names.
    """
    import numpy as np

    folder = _folder()
    if folder is None:
        raise ConfigError("word vectors are not installed; install enfold[vectors]")
    vocabulary = loads((folder / _VOCABULARY).read_bytes())["model"]["vocab"]
    content = (folder / _WEIGHTS).read_bytes()
    start = _HEADER_SIZE + int.from_bytes(content[:_HEADER_SIZE], "little")
    (description,) = loads(content[_HEADER_SIZE:start]).values()
    stored = np.frombuffer(content, dtype=np.float16, offset=start).reshape(description["shape"])
    tokens = {
        token.removeprefix(_WORD_START): row
        for token, row in vocabulary.items()
        if token.startswith(_WORD_START) and _is_word(token.removeprefix(_WORD_START))
    }
    chosen = stored[list(tokens.values())].astype(np.float32)
    lengths = np.linalg.norm(chosen, axis=1, keepdims=True)
    words = list(tokens)
    return _Table(
        {word: at for at, word in enumerate(words)}, words, chosen / np.maximum(lengths, 1e-9)
    )


def _is_word(text: str) -> bool:
    is_plain = len(text) >= _MIN_WORD_LENGTH and text.isalpha() and text.islower()
    return is_plain and is_content_word(text)
