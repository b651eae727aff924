"""The operations of tool calls."""

import pytest

from enfold.messages import ToolCall
from enfold.strategies.lossless.config import arguments_of, identity_of, kind_of, path_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Read", "read"),
        ("read_file", "read"),
        ("view", "read"),
        ("str_replace_editor", "edit"),
        ("Write", "edit"),
        ("apply_patch", "edit"),
        ("Bash", "command"),
        ("exec_command", "command"),
        ("LS", "list"),
        ("Glob", "list"),
        ("Grep", "search"),
        ("search_files", "search"),
        ("TodoWrite", "todo"),
        ("update_plan", "todo"),
        ("fetch", "other"),
        ("", "other"),
    ],
)
def test_the_name_of_a_tool_tells(name: str, kind: str) -> None:
    assert kind_of(ToolCall("1", name, {})) == kind


def test_arguments_come_as_text_or_object() -> None:
    assert arguments_of(ToolCall("1", "read", '{"path": "a"}')) == {"path": "a"}
    assert arguments_of(ToolCall("1", "read", {"path": "a"})) == {"path": "a"}
    for broken in ("", "{", "[1]", "text"):
        assert arguments_of(ToolCall("1", "read", broken)) == {}


def test_the_file_of_a_call() -> None:
    assert path_of(ToolCall("1", "Read", {"offset": 1, "file_path": "a.py"})) == "a.py"
    assert path_of(ToolCall("1", "Read", {"path": 7})) is None
    assert path_of(ToolCall("1", "Bash", {"command": "ls"})) is None


def test_calls_are_the_same_whatever_they_say_about_it() -> None:
    def bash(**arguments: object) -> ToolCall:
        return ToolCall("1", "Bash", {"command": "make", **arguments})

    assert identity_of(bash(description="Build")) == identity_of(bash(timeout=60_000))
    assert identity_of(bash()) == identity_of(ToolCall("2", "Bash", '{"command": "make"}'))
    assert identity_of(bash()) != identity_of(bash(cwd="/elsewhere"))
    assert identity_of(ToolCall("1", "run", "make")) != identity_of(ToolCall("1", "run", "test"))
