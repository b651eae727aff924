from __future__ import annotations

from typing import Any

import pytest

from enfold import wire
from enfold.errors import DialectError
from enfold.jsontext import dumps
from enfold.messages import Attachment, Reasoning, Text, ToolCall, ToolResult, Unknown
from enfold.transcripts import problems, read
from tests.transcripts.files import (
    CHATGPT_EXPORT,
    chatgpt_conversation,
    chatgpt_node,
    lines,
    outline,
    the_one,
)


def export(*nodes: dict[str, Any], **fields: Any) -> bytes:
    return dumps([chatgpt_conversation(*nodes, **fields)])


def test_a_conversation_with_a_tool() -> None:
    transcript = the_one(dumps(CHATGPT_EXPORT))
    assert (transcript.format, transcript.dialect) == ("chatgpt", "enfold")
    assert (transcript.id, transcript.title) == ("6905", "Sums")
    assert outline(transcript) == [
        "user: What is 2 + 2?",
        "assistant: python(c)",
        "tool: c = 4",
        "assistant: Four.",
    ]
    call, result = (entry.message.parts[0] for entry in transcript.entries[1:3])
    assert call == ToolCall("c", "python", "2+2")
    assert result == ToolResult("c", (Text("4"),), name="python")
    assert problems(transcript.conversation().messages) == ()


def test_fields_of_the_export_are_kept() -> None:
    transcript = the_one(dumps(CHATGPT_EXPORT))
    assert transcript.extras == {
        "title": "Sums",
        "create_time": 1761983488.1,
        "conversation_id": "6905",
        "current_node": "a",
        "skipped": {"empty": 1},
    }
    assert transcript.entries[0].extras["nodes"] == [CHATGPT_EXPORT[0]["mapping"]["u"]]


@pytest.mark.parametrize(
    "content",
    [dumps(CHATGPT_EXPORT * 2), lines(CHATGPT_EXPORT * 2)],
    ids=["the export", "lines"],
)
def test_many_conversations(content: bytes) -> None:
    assert [len(transcript.entries) for transcript in read(content)] == [4, 4]


def test_a_single_conversation_is_read() -> None:
    assert len(the_one(dumps(CHATGPT_EXPORT[0])).entries) == 4


REGENERATED = (
    chatgpt_node("u1", "root", "user", "a word"),
    chatgpt_node("a2", "u1", "assistant", "pear"),
    chatgpt_node("a1", "u1", "assistant", "apple"),
    chatgpt_node("u2", "a1", "user", "another"),
    chatgpt_node("a3", "u2", "assistant", "plum"),
)


def test_every_answer_that_was_regenerated_is_a_branch() -> None:
    transcript = the_one(export(*REGENERATED, current_node="a2"))
    assert outline(transcript) == ["user: a word", "assistant: pear"]
    assert transcript.leaves == ("a2", "a3")
    assert outline(transcript, "a3")[-1] == "assistant: plum"


def test_nodes_may_be_in_any_order() -> None:
    transcript = the_one(export(*reversed(REGENERATED), current_node="a3"))
    assert outline(transcript) == [
        "user: a word",
        "assistant: apple",
        "user: another",
        "assistant: plum",
    ]
    ids = [entry.id for entry in transcript.entries]
    assert ids.index("u1") < ids.index("a1") < ids.index("u2") < ids.index("a3")


@pytest.mark.parametrize("current", [None, "gone"], ids=["none", "unknown"])
def test_without_a_current_node_the_last_is_active(current: str | None) -> None:
    assert the_one(export(*REGENERATED, current_node=current)).tip == "a3"


def test_a_current_node_that_says_nothing_stands_for_the_one_before() -> None:
    nodes = (*REGENERATED, chatgpt_node("e", "a2", "assistant", ""))
    assert the_one(export(*nodes, current_node="e")).tip == "a2"


def test_messages_hidden_from_the_person_are_kept_for_the_model() -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}, "weight": 0.0}
    context = {
        "content_type": "user_editable_context",
        "user_profile": "Name: Ada",
        "user_instructions": "Be brief.",
    }
    nodes = (
        chatgpt_node("e", "root", "system", "", **hidden),
        chatgpt_node("p", "e", "user", context, **hidden),
        chatgpt_node("u", "p", "user", "hi"),
    )
    transcript = the_one(export(*nodes))
    assert outline(transcript) == ["user: Name: Ada, Be brief.", "user: hi"]
    assert transcript.extras["skipped"] == {"empty": 1}


def test_a_tool_that_answers_in_several_nodes_gives_one_result() -> None:
    display = {"content_type": "tether_browsing_display", "result": "3 hits", "summary": ""}
    quote = {"content_type": "tether_quote", "title": "T", "url": "https://t.example", "text": "so"}
    nodes = (
        chatgpt_node("c", "root", "assistant", "search('x')", recipient="browser"),
        chatgpt_node("t1", "c", "tool", display, name="browser"),
        chatgpt_node("t2", "t1", "tool", quote, name="browser"),
        chatgpt_node("a", "t2", "assistant", "So."),
    )
    transcript = the_one(export(*nodes, current_node="a"))
    assert outline(transcript) == [
        "assistant: browser(c)",
        "tool: c = 3 hits + T\nhttps://t.example\nso",
        "assistant: So.",
    ]
    assert [node["id"] for node in transcript.entries[1].extras["nodes"]] == ["t1", "t2"]
    assert problems(transcript.conversation().messages) == ()


def test_a_result_that_two_branches_share_is_not_changed_by_one_of_them() -> None:
    output = {"content_type": "execution_output", "text": "4"}
    nodes = (
        chatgpt_node("c", "root", "assistant", "2+2", recipient="python"),
        chatgpt_node("t1", "c", "tool", output, name="python"),
        chatgpt_node("t2", "t1", "tool", output, name="python"),
        chatgpt_node("a", "t1", "assistant", "Four."),
    )
    transcript = the_one(export(*nodes, current_node="a"))
    assert outline(transcript) == ["assistant: python(c)", "tool: c = 4", "assistant: Four."]
    assert outline(transcript, "t2") == ["assistant: python(c)", "tool: c = 4", "tool: c = 4"]


def test_a_tool_that_printed_nothing_has_answered() -> None:
    nodes = (
        chatgpt_node("c", "root", "assistant", "x = 1", recipient="python"),
        chatgpt_node("t", "c", "tool", {"content_type": "execution_output", "text": ""}),
        chatgpt_node("a", "t", "assistant", "Done."),
    )
    transcript = the_one(export(*nodes))
    assert outline(transcript) == ["assistant: python(c)", "tool: c = ", "assistant: Done."]


def test_a_tool_that_failed() -> None:
    error = {"content_type": "system_error", "name": "RateLimit", "text": "try later"}
    nodes = (
        chatgpt_node("c", "root", "assistant", "2+2", recipient="python"),
        chatgpt_node("t", "c", "tool", error, name="python"),
    )
    [_, entry] = the_one(export(*nodes)).entries
    assert entry.message.parts == (
        ToolResult("c", (Text("RateLimit: try later"),), is_error=True, name="python"),
    )


def test_tool_messages_without_a_call_are_context() -> None:
    nodes = (
        chatgpt_node("u", "root", "user", "read it"),
        chatgpt_node("f", "u", "tool", "the file's text", name="file_search"),
        chatgpt_node("a", "f", "assistant", "I have."),
    )
    transcript = the_one(export(*nodes))
    assert outline(transcript) == ["user: read it", "system: the file's text", "assistant: I have."]
    assert transcript.entries[1].message.name == "file_search"
    assert problems(transcript.conversation().messages) == ()


FILE = {"id": "file_7", "name": "plan.png", "mime_type": "image/png", "size": 410}
IMAGE = {
    "content_type": "image_asset_pointer",
    "asset_pointer": "sediment://file_7",
    "size_bytes": 410,
}
VOICE = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://f8", "format": "wav"}


@pytest.mark.parametrize(
    ("content", "files", "expected"),
    [
        ({"content_type": "text", "parts": ["a", "", "b"]}, [], (Text("a"), Text("b"))),
        ({"parts": ["old exports name no type"]}, [], (Text("old exports name no type"),)),
        ({"content_type": "code", "language": "python", "text": "x"}, [], (Text("x"),)),
        (
            {"content_type": "multimodal_text", "parts": [IMAGE, "look"]},
            [FILE],
            (Attachment("plan.png", "image/png", 410), Text("look")),
        ),
        (
            {"content_type": "multimodal_text", "parts": [IMAGE]},
            [],
            (Attachment(size=410),),
        ),
        (
            {"content_type": "text", "parts": ["read it"]},
            [FILE],
            (Text("read it"), Attachment("plan.png", "image/png", 410)),
        ),
        (
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "audio_transcription", "text": "hello", "direction": "in"},
                    {
                        "content_type": "real_time_user_audio_video_asset_pointer",
                        "audio_asset_pointer": VOICE,
                    },
                ],
            },
            [],
            (Text("hello"), Attachment(mime="audio/wav")),
        ),
        (
            {"content_type": "thoughts", "thoughts": [{"summary": "Sum", "content": "Add."}]},
            [],
            (Reasoning("Sum\nAdd."),),
        ),
        (
            {"content_type": "reasoning_recap", "content": "Thought for 9s"},
            [],
            (Reasoning("Thought for 9s"),),
        ),
        (
            {"content_type": "model_editable_context", "model_set_context": "Likes tea."},
            [],
            (Text("Likes tea."),),
        ),
        (
            {
                "content_type": "sonic_webpage",
                "title": "T",
                "url": "https://t.example",
                "text": "x",
            },
            [],
            (Text("T\nhttps://t.example\nx"),),
        ),
        ({"content_type": "new", "x": 1}, [], (Unknown({"content_type": "new", "x": 1}),)),
        (
            {"content_type": "multimodal_text", "parts": [{"content_type": "new"}]},
            [],
            (Unknown({"content_type": "new"}),),
        ),
    ],
    ids=[
        "text",
        "no type",
        "code",
        "an image with a name",
        "an image without a name",
        "an upload",
        "speech",
        "thoughts",
        "a recap",
        "memory",
        "a web page",
        "an unknown content",
        "an unknown part",
    ],
)
def test_contents(content: dict[str, Any], files: list[Any], expected: tuple[Any, ...]) -> None:
    node = chatgpt_node("u", "root", "user", content, metadata={"attachments": files})
    parts = the_one(export(node)).entries[0].message.parts
    assert tuple(_without_pointer(part) for part in parts) == expected


def _without_pointer(part: Any) -> Any:
    """Attachments as typed fields; where the service keeps a file is in their extras."""
    if not isinstance(part, Attachment):
        return part
    assert part.extras["asset_pointer"]
    return Attachment(part.name, part.mime, part.size, part.data, part.url)


@pytest.mark.parametrize(
    "content",
    [
        {"content_type": "thoughts", "thoughts": [{"summary": "", "content": ""}]},
        {"content_type": "reasoning_recap", "content": ""},
        {"content_type": "tether_browsing_display", "result": "", "summary": None},
        {"content_type": "text", "parts": None},
    ],
    ids=["thoughts", "a recap", "a spinner", "no parts"],
)
def test_contents_that_say_nothing(content: dict[str, Any]) -> None:
    transcript = the_one(export(chatgpt_node("u", "root", "tool", content)))
    assert (transcript.entries, transcript.tip) == ((), None)


@pytest.mark.parametrize("dialect", ["enfold", "openai", "anthropic"])
def test_a_conversation_can_be_sent_elsewhere(dialect: str) -> None:
    rendered = wire.render(the_one(dumps(CHATGPT_EXPORT)).conversation(), dialect)
    assert len(rendered) == 4


def broken(**fields: Any) -> dict[str, Any]:
    node = chatgpt_node("u", "root", "user", "hi")
    node["message"].update(fields)
    return node


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (7, "[0]: mapping.u: expected an object"),
        ({"id": "u", "parent": 7}, "[0]: mapping.u.parent: expected text"),
        ({"id": "u", "parent": "u"}, "[0]: the parents of message 'u' form a circle"),
        ({"id": "u", "message": 7}, "[0]: mapping.u.message: expected an object"),
        (broken(author=None), "[0]: mapping.u.message.author: expected an object"),
        (broken(author={"role": "cat"}), "[0]: mapping.u.message.author.role: expected one of"),
        (broken(content="hi"), "[0]: mapping.u.message.content: expected an object"),
        (
            broken(content={"content_type": "text", "parts": [7]}),
            "[0]: mapping.u.message.content.parts[0]: expected an object",
        ),
        (
            broken(content={"content_type": "code", "text": 7}),
            "[0]: mapping.u.message.content.text: expected text",
        ),
        (broken(recipient=7), "[0]: mapping.u.message.recipient: expected text"),
        (
            broken(metadata={"attachments": 7}),
            "[0]: mapping.u.message.metadata.attachments: expected an array",
        ),
    ],
    ids=[
        "no node",
        "no parent",
        "a circle",
        "no message",
        "no author",
        "no role",
        "no content",
        "no part",
        "no text",
        "no recipient",
        "no attachments",
    ],
)
def test_errors_name_the_node_and_the_field(node: Any, words: str) -> None:
    content = dumps([{"mapping": {"u": node}}])
    with pytest.raises(DialectError) as caught:
        list(read(content))
    assert str(caught.value).startswith(words)
