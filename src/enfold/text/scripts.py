"""Characters: the scripts that are written without spaces, and punctuation of all scripts."""

from __future__ import annotations

import re

UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005\u3040-\u30ff"
    "\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of scripts without spaces between words (Chinese, Japanese, Thai, Khmer …), as ranges
for a regular expression."""
UNSPACED_MARKS = "\u3000-\u303f\uff00-\uffef"
"""The punctuation of these scripts."""
UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")

STOPS = ".!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964"
"""End a sentence; includes the ideographic, full-width, Arabic and Devanagari marks."""
UNSPACED_STOPS = "\u3002\uff01\uff1f\uff61"
"""End a sentence in a script without spaces, so no space follows."""
QUESTION_MARKS = "?\uff1f\u061f"
COLONS = (":", "\uff1a")
SEMICOLONS = ";\u061b"
COMMAS = ",\u060c"
UNSPACED_PAUSES = "\uff0c\uff1b\u3001"
"""Full-width comma and semicolon, and the enumeration comma."""
QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
OPENING_QUOTES = "\u300c\u300e\u300a\u3010\u201c"
CLOSING_QUOTES = "\u300d\u300f\u300b\u3011\u201d"
"""East Asian quotation and title marks, in the order of their opening marks."""
UNSPACED_CLOSING = f"{CLOSING_QUOTES}\uff09"
UNSPACED_ENDS = tuple(f"{UNSPACED_STOPS}{UNSPACED_PAUSES}{UNSPACED_CLOSING}")
"""No space follows one of these."""
PAUSES = tuple(f"{STOPS}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}")
"""Text continues after one of these without further punctuation."""
EDGES = (
    f"{STOPS}{QUOTES}{OPENING_QUOTES}{CLOSING_QUOTES}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}"
    f"{''.join(COLONS)}`()[]{{}}<>*_|~=+\uff08\uff09\u2014\u2013-"
)
"""Punctuation around a word that is not part of it."""
