"""Our messages as the client library's, and back."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from enfold.amounts import CallUsage
from enfold.errors import InputError
from enfold.llm.calls import Call
from enfold.llm.clients import from_library, text_in, to_library, tools_of, usage_of
from enfold.messages import (
    Attachment,
    Data,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)


def translated(
    *messages: tuple[Role, Part | str],
    system: str | None = None,
    inline_system: bool = True,
    image_urls: bool = True,
) -> list[ModelMessage]:
    parts = tuple(
        Message(role, (Text(part) if isinstance(part, str) else part,)) for role, part in messages
    )
    return to_library(Call(parts, system), inline_system=inline_system, image_urls=image_urls)


def parts_of(messages: list[ModelMessage]) -> list[list[Any]]:
    return [list(message.parts) for message in messages]


def test_user_messages_between_two_answers_become_one_request() -> None:
    sent = translated(("user", "One"), ("user", "two"), ("assistant", "Yes"), ("user", "three"))
    assert [type(message) for message in sent] == [ModelRequest, ModelResponse, ModelRequest]
    assert [part.content for part in parts_of(sent)[0]] == ["One", "two"]


def test_the_system_prompt_comes_first() -> None:
    first, *_ = parts_of(translated(("user", "Hello"), system="Be brief."))
    assert [type(part) for part in first] == [SystemPromptPart, UserPromptPart]
    assert first[0].content == "Be brief."


@pytest.mark.parametrize(
    ("inline_system", "kind"), [(True, SystemPromptPart), (False, UserPromptPart)]
)
def test_a_system_message_stays_in_its_place(inline_system: bool, kind: type[object]) -> None:
    sent = translated(
        ("system", "Rules"),
        ("user", "Hello"),
        ("assistant", "Yes?"),
        ("system", "A summary"),
        ("user", "Go on"),
        inline_system=inline_system,
    )
    assert type(parts_of(sent)[0][0]) is SystemPromptPart
    later = parts_of(sent)[2]
    assert type(later[0]) is kind
    assert [part.content for part in later] == ["A summary", "Go on"]


def test_results_find_their_calls() -> None:
    calls = Message("assistant", (ToolCall("a", "one", "{}"), ToolCall("b", "two", {"x": 1})))
    results = (
        Message("tool", (ToolResult("b", (Text("2"),)),)),
        Message("tool", (ToolResult("a", (Text("no"),), is_error=True),)),
    )
    call = Call((Message("user", (Text("Go"),)), calls, *results))
    _, made, given = parts_of(to_library(call, inline_system=True, image_urls=True))
    assert [(part.tool_call_id, part.tool_name, part.args) for part in made] == [
        ("a", "one", "{}"),
        ("b", "two", {"x": 1}),
    ]
    assert [(part.tool_call_id, part.tool_name, part.content, part.outcome) for part in given] == [
        ("b", "two", "2", "success"),
        ("a", "one", "no", "failed"),
    ]


def test_calls_without_an_id_are_answered_in_their_order() -> None:
    calls = Message("assistant", (ToolCall("", "one", {}), ToolCall("", "two", {})))
    results = Message("user", (ToolResult("", (Text("1"),)), ToolResult("", (Text("2"),))))
    made, given = parts_of(to_library(Call((calls, results)), inline_system=True, image_urls=True))
    assert [part.tool_call_id for part in made] == [part.tool_call_id for part in given]
    assert len({part.tool_call_id for part in made}) == 2
    assert [part.tool_name for part in given] == ["one", "two"]


def test_results_stand_before_what_else_a_message_says() -> None:
    message = Message("user", (Text("And now?"), ToolResult("a", (Text("1"),), name="one")))
    ((result, text_part),) = parts_of(
        to_library(Call((message,)), inline_system=True, image_urls=True)
    )
    assert isinstance(result, ToolReturnPart)
    assert text_part.content == "And now?"


def test_an_attachment_is_sent_with_its_content() -> None:
    picture = Attachment("a.png", "image/png", data=b64encode(b"pixels").decode())
    ((part,),) = parts_of(translated(("user", picture)))
    assert part.content == [BinaryContent(b"pixels", media_type="image/png")]


def test_an_address_is_sent_only_to_providers_that_fetch_it() -> None:
    picture = Attachment("a.png", "image/png", url="https://example.org/a.png")
    ((part,),) = parts_of(translated(("user", picture)))
    assert part.content == [ImageUrl("https://example.org/a.png")]
    ((part,),) = parts_of(translated(("user", picture), image_urls=False))
    assert "https://example.org/a.png" in part.content


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Attachment("a.pdf", "application/pdf", url="https://example.org/a.pdf"), "a.pdf"),
        (Attachment("b.png", "image/png", data="no base64!"), "b.png"),
        (Attachment(), "unnamed"),
        (Unknown({"type": "novelty"}), "cannot be shown"),
        (Data({"town": "Łódź"}), '{"town": "Łódź"}'),
    ],
    ids=["document", "broken", "nothing", "unknown", "data"],
)
def test_parts_that_cannot_be_sent_are_named(part: Part, words: str) -> None:
    ((sent,),) = parts_of(translated(("user", part)))
    assert words in sent.content


def test_earlier_reasoning_is_left_out() -> None:
    thinking = Message("assistant", (Reasoning("Hm."), Text("Yes.")))
    (_, answer) = parts_of(
        to_library(
            Call((Message("user", (Text("Well?"),)), thinking)), inline_system=True, image_urls=True
        )
    )
    assert answer == [TextPart("Yes.")]


def test_a_call_without_messages_is_refused() -> None:
    with pytest.raises(InputError, match="at least one message"):
        translated()


def test_tools_are_declared() -> None:
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    tools = ({"name": "weather", "description": "Of a town.", "parameters": schema}, {"name": "x"})
    declared = tools_of(Call((), tools=tools)).function_tools
    assert [(each.name, each.description) for each in declared] == [
        ("weather", "Of a town."),
        ("x", None),
    ]
    assert [each.parameters_json_schema for each in declared] == [schema, {"type": "object"}]


def test_an_answer_becomes_a_message() -> None:
    response = ModelResponse(
        [
            ThinkingPart("Hm."),
            TextPart("Yes."),
            TextPart(""),
            ToolCallPart("one", '{"a": 1}', tool_call_id="c1"),
            ToolCallPart("two", None, tool_call_id="c2"),
        ]
    )
    assert from_library(response).parts == (
        Reasoning("Hm."),
        Text("Yes."),
        ToolCall("c1", "one", '{"a": 1}'),
        ToolCall("c2", "two", {}),
    )


def test_usage_is_unknown_if_none_is_reported() -> None:
    assert usage_of(RequestUsage()) == CallUsage()
    assert usage_of(RequestUsage(unmeasured_requests=1)) == CallUsage()
    counted = RequestUsage(
        input_tokens=9, output_tokens=2, cache_read_tokens=4, cache_write_tokens=1
    )
    assert usage_of(counted) == CallUsage(9, 2, 4, 1)


def test_only_text_is_text() -> None:
    assert text_in(PartStartEvent(index=0, part=TextPart("a"))) == "a"
    assert text_in(PartDeltaEvent(index=0, delta=TextPartDelta("b"))) == "b"
    assert text_in(PartStartEvent(index=0, part=ThinkingPart("c"))) == ""
