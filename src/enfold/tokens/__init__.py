"""Tokens: how many a text, a message or a conversation has, exactly and offline.

`get` names a tokenizer, `count_message`, `count_messages` and `count_conversation` say what of a
message is counted, `correction` says how far a count is from that of a model whose tokenizer
nobody has published.
"""

from enfold.tokens.counts import (
    STRUCTURE_TOKENS,
    Count,
    compute_async,
    count_async,
    count_conversation,
    count_message,
    count_messages,
    counting_threads,
)
from enfold.tokens.tokenizers import (
    DEFAULT,
    NAMES,
    Correction,
    Tokenizer,
    correction,
    get,
    use_fastest_library_only,
    use_small_memos,
    warm,
)

__all__ = [
    "DEFAULT",
    "NAMES",
    "STRUCTURE_TOKENS",
    "Correction",
    "Count",
    "Tokenizer",
    "compute_async",
    "correction",
    "count_async",
    "count_conversation",
    "count_message",
    "count_messages",
    "counting_threads",
    "get",
    "use_fastest_library_only",
    "use_small_memos",
    "warm",
]
