"""The reference for exact counts, tiktoken, without a download.

tiktoken downloads its rank files at first use. toktok contains the same ranks; in tiktoken's format
they are the same bytes, and tiktoken checks their SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def missing() -> str | None:
    """Return the reason why the reference cannot be loaded; None if it can."""
    absent = [name for name in ("tiktoken", "toktok") if find_spec(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


@cache
def encoding(name: str) -> Any:
    """Return the encoding of that name; tiktoken and toktok must be installed."""
    import tiktoken

    with tempfile.TemporaryDirectory() as folder:
        place = hashlib.sha1(ADDRESS.format(name).encode(), usedforsecurity=False).hexdigest()
        (Path(folder) / place).write_bytes(_rank_file(name))
        with mock.patch.dict(os.environ, TIKTOKEN_CACHE_DIR=folder):
            return tiktoken.get_encoding(name)


def _rank_file(name: str) -> bytes:
    import toktok

    ranks = toktok._encoding(name)  # noqa: SLF001
    tokens = (
        ranks.decode_single_token_bytes(rank) for rank in range(len(ranks.token_byte_values()))
    )
    return b"".join(
        b"%b %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens)
    )
