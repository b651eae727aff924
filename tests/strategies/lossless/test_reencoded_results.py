"""Results written in ways that take fewer tokens."""

from __future__ import annotations

import json

import pytest

from enfold.messages import Data, ToolResult
from enfold.strategies.lossless.config import Encodings
from tests.strategies.lossless.sessions import Session, code, condense, numbered, results

APP = code("app", 40)
SPARSE = "\n".join(line if n % 5 else f"{n + 1}\t{line}" for n, line in enumerate(APP))
ROWS = [{"id": n, "name": f"item {n}", "state": "open", "tags": []} for n in range(12)]
LOG = "2024-01-01 12:00:00 waiting for the server to answer"
COMPACT = (",", ":")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (numbered(APP), SPARSE),
        ("\n".join(f"src/a.py:{n}:x" for n in range(9)), None),
        ("\n".join(f"/home/me/app/file_{n}.py" for n in range(9)), None),
        (json.dumps({"a": ROWS[:2]}, indent=4), json.dumps({"a": ROWS[:2]}, separators=COMPACT)),
        (
            json.dumps(ROWS),
            json.dumps(
                {"columns": list(ROWS[0]), "rows": [list(row.values()) for row in ROWS]},
                separators=COMPACT,
            ),
        ),
        ("".join(f"\x1b[32m{line}\x1b[0m\n" for line in APP), "".join(f"{x}\n" for x in APP)),
        ("".join(f"{n}%\r" for n in range(50)) + "100%\nok", "100%\nok"),
        ("\n".join([LOG] * 30), f"{LOG}\n⟨ the line above 29 more times ⟩"),
        ("\n".join(f"{line} \t \t " for line in APP), "\n".join(APP)),
    ],
    ids=["numbers", "hits", "paths", "json", "table", "colours", "progress", "runs", "blanks"],
)
def test_text_without_information_is_removed(text: str, shown: str | None) -> None:
    (after,) = results(condense(Session().run("a", text).end()))
    assert len(after) < len(text)
    assert shown is None or after == shown


def test_little_to_gain_is_left_alone() -> None:
    (after,) = results(condense(Session().run("a", "one \ntwo ").end()))
    assert after == "one \ntwo "


def test_texts_inside_structured_output_are_written_anew_too() -> None:
    session = Session().act("run", {}, Data({"output": numbered(APP), "code": 0}))
    (part,) = condense(session.end())[2].parts
    assert isinstance(part, ToolResult)
    (data,) = part.parts
    assert isinstance(data, Data)
    assert data.value == {"output": SPARSE, "code": 0}


def test_errors_are_written_anew_and_stay_errors() -> None:
    session = Session().run("a", numbered(APP), is_error=True)
    (part,) = condense(session.end())[2].parts
    assert isinstance(part, ToolResult)
    assert part.is_error


def test_every_encoding_can_be_switched_off() -> None:
    text = "\n".join(
        [
            *(f"src/a.py:{n}:{line}" for n, line in enumerate(APP[:5])),
            *["waiting for the server to answer the call"] * 9,
            "\x1b[1;32mok\x1b[0m" * 9,
            "".join(f"{n}%\r" for n in range(30)) + "100%",
            *(f"{line}   \t" for line in APP[5:25]),
            '{"a": [1, 2, 3], "b": "a text that makes this long enough", "c": null, "d": {}}',
        ]
    )
    names = ("paths", "json", "tables", "colours", "progress", "runs", "blanks", "line_numbers")
    session = Session().run("a", text).end()
    assert results(condense(session, encodings=Encodings(**dict.fromkeys(names, False)))) == [text]
    assert results(condense(session, reencode=False)) == [text]
    for name in ("paths", "json", "colours", "progress", "runs", "blanks"):
        only = Encodings(**{each: each == name for each in names})
        (shown,) = results(condense(session, encodings=only, min_saving=1))
        assert len(shown) < len(text), name
