"""Punctuation of many scripts. Written as escapes, because many marks look like ASCII's."""

from __future__ import annotations

STOPS = ".!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964"
"""End a sentence: also the ideographic, the full-width, the Arabic and the Devanagari ones."""
UNSPACED_STOPS = "\u3002\uff01\uff1f\uff61"
"""Those of scripts in which no blank follows."""
QUESTION_MARKS = "?\uff1f\u061f"
COLONS = (":", "\uff1a")
SEMICOLONS = ";\u061b"
COMMAS = ",\u060c"
UNSPACED_PAUSES = "\uff0c\uff1b\u3001"
"""Comma, semicolon and enumeration comma, full-width."""
QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
OPENING = "\u300c\u300e\u300a\u3010\u201c"
CLOSING = "\u300d\u300f\u300b\u3011\u201d"
"""Quotation marks and title marks of East Asia, in pairs."""
UNSPACED_CLOSING = f"{CLOSING}\uff09"
UNSPACED_ENDS = tuple(f"{UNSPACED_STOPS}{UNSPACED_PAUSES}{UNSPACED_CLOSING}")
"""After one of these no blank follows."""
EDGES = (
    f"{STOPS}{QUOTES}{OPENING}{CLOSING}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}"
    "`()[]{}<>*_|~=+\uff08\uff09\u2014\u2013-"
)
"""What may stand around a word without belonging to it."""
PAUSES = tuple(f"{STOPS}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}")
"""After one of these, text goes on without another mark."""
