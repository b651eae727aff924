"""Blocks that another text shows already."""

from __future__ import annotations

import json

import pytest

from enfold.messages import Attachment, Data, Message, Text, ToolResult
from enfold.testing import user
from tests.strategies.lossless.sessions import Session, code, condense, numbered, results

APP = code("app", 60)
OTHER = code("other", 60)
STYLES = [
    pytest.param(6, "→", id="arrow"),
    pytest.param(6, "\t", id="cat -n"),
    pytest.param(0, "\t", id="tab"),
    pytest.param(0, ":", id="colon"),
    pytest.param(4, "|", id="bar"),
    pytest.param(0, "-", id="hyphen"),
]


def changed(lines: list[str], at: int, *new: str) -> list[str]:
    return [*lines[:at], *new, *lines[at + 1 :]]


def test_a_file_read_again_after_an_edit_shows_what_became_new() -> None:
    after = condense(
        Session()
        .read("app.py", numbered(APP))
        .act("edit", {"path": "app.py"}, "ok")
        .read("app.py", numbered(changed(APP, 30, "    fixed = True", "    twice = True")))
        .end()
    )
    assert results(after)[2] == (
        "⟨ lines 1-30 as in read app.py ⟩\n"
        "31\t    fixed = True\n"
        "    twice = True\n"
        "⟨ lines 33-61 as 32-60 in read app.py ⟩"
    )


def test_another_range_of_the_same_file_shows_what_is_new() -> None:
    session = Session().read("app.py", numbered(APP[:40])).read("app.py", numbered(APP[20:], 21))
    first, second = results(condense(session.end()))
    assert first.startswith("1\t")
    assert second.startswith("⟨ lines 21-40 as in app.py ⟩\n41\t")


@pytest.mark.parametrize(("width", "separator"), STYLES)
def test_lines_are_the_same_under_other_numbers(width: int, separator: str) -> None:
    session = (
        Session().read("a.py", "\n".join(APP)).read("a.py", numbered(APP, 101, width, separator))
    )
    _, second = results(condense(session.end(), deduplicate_file_reads=False))
    assert second == "⟨ lines 101-160 as in a.py ⟩"


@pytest.mark.parametrize(("width", "separator"), STYLES)
def test_lines_without_numbers_are_found_among_those_with(width: int, separator: str) -> None:
    session = (
        Session().read("a.py", numbered(APP, 101, width, separator)).run("cat a.py", "\n".join(APP))
    )
    _, second = results(condense(session.end()))
    assert second == "⟨ lines 101-160 in a.py ⟩"


def test_written_file_content_is_not_shown_again() -> None:
    session = Session().act("write", {"path": "a.py", "content": "\n".join(APP)}, "written")
    _, read = results(condense(session.read("a.py", numbered(APP)).end()))
    assert read == "⟨ lines 1-60 as in a.py ⟩"


def test_arguments_that_are_json_text_are_read_too() -> None:
    arguments = json.dumps({"path": "a.py", "content": "\n".join(APP)})
    session = Session().act("write", arguments, "written").read("a.py", numbered(APP))
    _, read = results(condense(session.end()))
    assert read == "⟨ lines 1-60 as in a.py ⟩"


def test_arguments_are_never_edited() -> None:
    content = {"path": "a.py", "content": "\n".join(APP)}
    before = Session().read("a.py", "\n".join(APP)).act("write", content, "written").end()
    after = condense(before)
    assert [m for m in after if m.role != "tool"] == [m for m in before if m.role != "tool"]


@pytest.mark.parametrize("ascii_only", [True, False])
def test_output_that_arrives_escaped_on_one_line_is_read(ascii_only: bool) -> None:
    lines = [f'{line} # "é" \\ \t' for line in APP]
    wrapped = json.dumps({"output": "\n".join(lines), "exit": 0}, ensure_ascii=ascii_only)
    session = Session().read("a.py", "\n".join(lines)).run("cat a.py", wrapped)
    _, second = results(condense(session.end(), reencode=False))
    shown = json.loads(second)
    assert shown["exit"] == 0
    assert "in a.py ⟩" in shown["output"]
    assert len(second) < 400


def test_output_that_arrives_escaped_can_be_pointed_to() -> None:
    wrapped = json.dumps({"output": "\n".join(APP)})
    session = Session().run("cat a.py", wrapped).read("a.py", numbered(APP))
    _, second = results(condense(session.end()))
    assert second == "⟨ lines 1-60 as in cat a.py ⟩"


def test_a_very_long_line_is_compared_by_its_pieces() -> None:
    first = ",".join(f'{{"id":{n},"name":"item number {n}"}}' for n in range(200))
    second = f"[{first[1_000:4_000]}]"
    session = Session().run("curl a", f"[{first}]").run("curl b", second)
    _, shown = results(condense(session.end(), reencode=False))
    assert " characters from " in shown
    assert "in curl a ⟩" in shown
    assert len(shown) < 200


def test_lines_of_a_patch_are_compared_without_their_sign() -> None:
    patch = "\n".join(
        ["diff --git a/a.py b/a.py", "@@ -0,0 +1,60 @@", *(f"+{line}" for line in APP)]
    )
    session = Session().read("a.py", numbered(APP)).run("git diff", patch)
    _, second = results(condense(session.end()))
    assert second == "diff --git a/a.py b/a.py\n@@ -0,0 +1,60 @@\n⟨ +lines 1-60 in a.py ⟩"


def test_a_patch_shown_again_is_one_block() -> None:
    hunk = ["@@ -1,9 +1,9 @@", *(f"{'+- '[n % 3]}{line}" for n, line in enumerate(APP))]
    session = (
        Session().run("git diff", "\n".join(hunk)).run("git diff HEAD", "\n".join(["new", *hunk]))
    )
    _, second = results(condense(session.end()))
    assert second == 'new\n⟨ 61 lines from "@@ -1,9…" in git diff ⟩'


def test_lines_that_a_text_repeats_itself_are_shown_once() -> None:
    text = numbered([*APP[:30], "", "# and once more", "", *APP[:30]])
    (shown,) = results(condense(Session().read("a.py", text).end()))
    assert shown.endswith("⟨ lines 34-63 as 1-30 above ⟩")


def test_a_marker_to_another_file_must_save_twice_as_much() -> None:
    shared = APP[:2]
    same = (
        Session()
        .read("a.py", numbered([*shared, *APP[9:]]))
        .read("a.py", numbered([*shared, *OTHER]))
    )
    other = (
        Session()
        .read("a.py", numbered([*shared, *APP[9:]]))
        .read("b.py", numbered([*shared, *OTHER]))
    )
    assert "⟨ lines 1-2 as in a.py ⟩" in results(condense(same.end()))[1]
    assert "⟨" not in results(condense(other.end()))[1]


def test_a_result_without_its_call_is_named_by_its_beginning() -> None:
    first = Message(
        "user",
        (
            ToolResult("call_1", (Text("nothing to see"),)),
            ToolResult("call_2", (Text("\n".join(APP)),)),
        ),
    )
    session = Session().act("a", {}, "x").act("b", {}, "y")
    session.messages[2:] = [first]
    session.run("cat", "\n".join([*APP, "end"]))
    assert results(condense(session.end()))[-1].startswith(
        '⟨ 60 lines from "app_0 =…" in "app_0 = compute(…" ⟩'
    )


def test_keep_last_points_forward() -> None:
    session = Session().read("a.py", numbered(APP[:40])).read("a.py", numbered(APP))
    first, second = results(condense(session.end(), keep="last"))
    assert first == "⟨ lines 1-40 as in a.py below ⟩"
    assert "⟨" not in second


def test_errors_keep_their_first_line() -> None:
    trace = "\n".join(["Traceback (most recent call last):", *APP])
    session = (
        Session().run("python a.py", trace, is_error=True).run("python a.py", trace, is_error=True)
    )
    first, second = results(condense(session.end()))
    assert "⟨" not in first
    assert second.splitlines()[0] == "Traceback (most recent call last):"
    assert "⟨ 60 lines" in second


def test_structured_output_keeps_its_shape() -> None:
    session = Session().read("a.py", "\n".join(APP))
    session.act(
        "run", {}, Data({"code": 0, "output": "\n".join([*APP, "end"]), "list": ["\n".join(OTHER)]})
    )
    after = condense(session.end())
    part = after[4].parts[0]
    assert isinstance(part, ToolResult)
    (data,) = part.parts
    assert isinstance(data, Data)
    assert list(data.value) == ["code", "output", "list"]
    assert data.value["output"] == '⟨ 60 lines from "app_0 =…" in a.py ⟩\nend'
    assert data.value["list"] == ["\n".join(OTHER)]


def test_attachments_and_words_next_to_results_stay() -> None:
    picture = Attachment("a.png", "image/png", data="aGk=")
    session = Session().read("a.py", "\n".join(APP))
    session.act("look", {}, "\n".join([*APP, "end"]), picture)
    session.messages.append(user("\n".join(APP)))
    after = condense(session.end())
    part = after[4].parts[0]
    assert isinstance(part, ToolResult)
    assert part.parts[1] == picture
    assert after[5] == user("\n".join(APP))


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\n\n\n", "x", "\r\n" * 40, "é" * 900, "⟨ ⟩", "\ud800" * 50, "0→" * 200],
    ids=repr,
)
def test_odd_texts_come_through(text: str) -> None:
    session = Session().run("a", text).run("b", text).run("c", f"{text}\n{text}\nend")
    condense(session.end(), min_saving=1)


def test_text_like_a_marker_is_neither_shortened_nor_referenced() -> None:
    text = "\n".join([*APP[:20], "⟨ lines 1-20 as in a.py ⟩", *APP[20:40]])
    session = Session().run("a", text).run("b", text).run("c", "\n".join([*APP[:40], "end"]))
    first, second, third = results(condense(session.end()))
    assert first == second == text
    assert third.count("⟨ 20 lines from ") == 2


def test_line_ends_of_windows_are_kept() -> None:
    lines = [f"{line}\r" for line in APP]
    session = Session().read("a.py", "\n".join(lines)).read("a.py", "\n".join([*lines, "end\r"]))
    _, second = results(condense(session.end()))
    assert second.endswith("⟩\nend\r")


def test_a_long_line_that_only_looks_escaped_is_divided_into_pieces() -> None:
    line = '\\n"'.join(f'"{n}" and "{n + 1}" and so on' for n in range(40))
    session = Session().run("a", line).run("b", f"x {line} y")
    _, second = results(condense(session.end(), reencode=False))
    assert "⟨" in second
    assert len(second) < 200


def test_hits_of_a_search_shown_again_are_one_block_although_numbers_are_missing() -> None:
    hits = "\n".join(f"{n * n}:{line}" for n, line in enumerate(APP[:20]))
    session = Session().run("grep -n a", hits).run("grep -n b", f"{hits}\n900:end")
    _, second = results(condense(session.end()))
    assert second == '⟨ 20 lines from "0: app_0…" in grep -n a ⟩\n900:end'
