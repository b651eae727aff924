"""Options that several commands have, each explained in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from enfold.dialects import AUTO, DIALECTS
from enfold.tokens import NAMES

File: TypeAlias = Annotated[
    str,
    Parameter(
        help="A JSON array of messages, a request body, JSON Lines with one conversation a line, "
        "an agent's session log, or an export of ChatGPT or of enfold; - is standard input."
    ),
]
Dialect: TypeAlias = Annotated[
    str,
    Parameter(help=f"The messages' wire format: {AUTO}, {', '.join(DIALECTS)}.", metavar="NAME"),
]
Tokenizer: TypeAlias = Annotated[
    str,
    Parameter(
        help=f"Who counts: {', '.join(NAMES)}. Those of Claude need the extra enfold[claude]; "
        "chars4 is a guess, a quarter of the characters.",
        metavar="NAME",
    ),
]
Out: TypeAlias = Annotated[
    Path | None, Parameter(help="The file to write, instead of standard output.")
]
Json: TypeAlias = Annotated[bool, Parameter(help="Print the result as JSON.")]
Db: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="The database: sqlite:///file.db or postgresql://host/name. If unset: ENFOLD_DB, "
        "else an SQLite file in your data folder.",
        metavar="URL",
    ),
]
SessionName: TypeAlias = Annotated[str, Parameter(help="The session's name.")]
Limit: TypeAlias = Annotated[int, Parameter(help="Show so many at most.", validator=Number(gte=1))]
