"""Recall through the proxy, with the libraries that clients use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors as google_errors
from starlette.responses import JSONResponse, Response

import enfold
from enfold.server.access import ON_THIS_MACHINE
from enfold.server.proxy.recall import answer_recall
from enfold.testing import assistant, call, result
from tests.server.proxy.stage import Stage, stage
from tests.server.proxy.voices import (
    INPUT,
    OUTPUT,
    TALKERS,
    Say,
    Think,
    Use,
    identifiers,
    long_history,
    script,
)

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
every_form = pytest.mark.parametrize("form", TALKERS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

SECRET = "cabin lamp of teal"
FIRST = f"{identifiers(0)} there hangs a {SECRET} {identifiers(0)}"
RECALL = Use("r1", "recall", {"query": "cabin lamp"})


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


@asynccontextmanager
async def _client(
    on: Stage, form: str, *, key: str = "k", first: str = FIRST
) -> AsyncIterator[Any]:
    talker = TALKERS[form](on.address, key)
    on.provider.script = on.provider.script or script()
    long_history(talker, first=first)
    talker.ask("Which colour has the lamp?")
    try:
        yield talker
    finally:
        await talker.close()


def _sent(on: Stage, at: int = -1) -> list[Any]:
    """The messages of a request that reached the provider."""
    body = json.loads(on.provider.bodies[at])
    found: list[Any] = body.get("messages") or body.get("input") or body["contents"]
    return found


def _mentions(on: Stage, at: int) -> int:
    """Return how often a request mentions the lamp: the summary may, a recalled passage does."""
    return json.dumps(_sent(on, at)).count(SECRET)


@every_form
@both_ways
async def test_summarized_messages_are_recalled_and_the_client_gets_one_reply(
    on: Stage, form: str, stream: bool
) -> None:
    on.provider.script = script([Say("Let me look."), RECALL], [Say("It is teal.")])
    async with _client(on, form) as talker:
        reply = await talker.hear(stream=stream)
    assert "".join(reply.text.split()) == "Letmelook.Itisteal."
    assert reply.calls == []
    assert reply.finish in {"stop", "completed", "end_turn", "STOP"}
    # The client is told the size of the last request; both are paid for.
    assert reply.usage == (INPUT, 2 * OUTPUT)
    (used,) = [total for total in await on.counted("", 1) if total.kind == "reply"]
    assert (used.calls, used.input_tokens, used.output_tokens) == (1, 2 * INPUT, 2 * OUTPUT)
    first, second = (json.loads(body) for body in on.provider.bodies)
    assert FIRST not in json.dumps(first)
    assert SECRET in json.dumps(_sent(on)[-1])
    assert '"recall"' in json.dumps(first["tools"])
    assert '"recall"' in json.dumps(second["tools"])
    assert _sent(on, 1)[: len(_sent(on, 0))] == _sent(on, 0)
    assert "recall" not in str(reply.raw)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_the_model_opens_a_message_by_its_place(on: Stage, form: str) -> None:
    open_first = Use("r1", "recall", {"reference": "1", "around": 1})
    on.provider.script = script([open_first], [Say("It is teal.")])
    async with _client(on, form) as talker:
        await talker.hear(stream=False)
    assert SECRET in json.dumps(_sent(on)[-1])


async def test_the_model_opens_a_shortened_result_by_its_call(tmp_path: Path) -> None:
    output = "\n".join(f"line {n} of the log" for n in range(60))
    async with enfold.open(f"sqlite:///{tmp_path / 'chat.db'}") as engine:
        session = await engine.session("chat", model="openai:gpt-5")
        await session.append("Read it.", assistant("", call("read1", "read", {"path": "log"})))
        await session.append(result("read1", output), "Thanks.", assistant("Done."), "And now?")
        opened = await answer_recall(session, '{"reference": "read1"}', max_tokens=2_000)
        absent = await answer_recall(session, '{"reference": "read2"}', max_tokens=2_000)
    assert output in opened
    assert absent.startswith("Not answered")


@every_form
@both_ways
async def test_later_turns_send_the_recorded_messages_with_the_same_bytes(
    on: Stage, form: str, stream: bool
) -> None:
    on.provider.script = script(
        [Think("Hm"), RECALL], [Think("Ah"), Say("It is teal.")], [Say("Bye.")]
    )
    async with _client(on, form) as talker:
        await talker.hear(stream=stream)
        talker.ask("Thank you")
        await talker.hear(stream=stream)
    before, after = on.provider.bodies[1], on.provider.bodies[2]
    # All that the provider has seen comes again, to the byte: the end of the array is cut off.
    end = before.rindex(SECRET.encode()) + len(SECRET)
    assert after[:end] == before[:end]
    new_messages = _sent(on)[len(_sent(on, 1)) :]
    assert "It is teal." in json.dumps(new_messages[:-1])
    assert "Thank you" in json.dumps(new_messages[-1])


@every_form
@both_ways
async def test_reasoning_goes_up_with_its_call_and_the_client_keeps_only_its_own(
    on: Stage, form: str, stream: bool
) -> None:
    if form in {"openai", "gemini"}:
        pytest.skip("reasoning there has no block of its own that is signed")
    on.provider.script = script([Think("Hm", "s1"), RECALL], [Think("Ah", "s2"), Say("Teal.")])
    async with _client(on, form) as talker:
        await talker.hear(stream=stream)
        kept = json.dumps(talker.history)
    assert '"s1"' in on.provider.bodies[-1].decode()
    assert '"s1"' not in kept
    assert '"s2"' in kept


@every_form
@both_ways
async def test_with_parallel_calls_the_result_is_held_and_merged(
    on: Stage, form: str, stream: bool
) -> None:
    lookup = Use("c1", "lookup", {"what": "weather"})
    on.provider.script = script([Say("Both."), RECALL, lookup], [Say("Teal and sunny.")])
    async with _client(on, form) as talker:
        reply = await talker.hear(stream=stream)
        assert [call[1:] for call in reply.calls] == [("lookup", {"what": "weather"})]
        assert reply.finish in {"tool_calls", "completed", "tool_use", "STOP"}
        assert len(on.provider.bodies) == 1
        talker.tell(reply.calls[0], "sunny")
        reply = await talker.hear(stream=stream)
    assert reply.text == "Teal and sunny."
    assert reply.usage == (INPUT, OUTPUT)
    new = json.dumps(_sent(on)[len(_sent(on, 0)) :])
    assert [new.count(word) for word in (SECRET, "sunny", '"recall"')][:2] == [1, 1]
    assert new.index('"recall"') < new.index(SECRET) < new.index("sunny")
    roles = [message.get("role") for message in _sent(on)]
    if form in {"anthropic", "gemini"}:
        assert all(one != other for one, other in pairwise(roles))


@every_form
@both_ways
async def test_three_recalls_are_answered_and_not_one_more(
    on: Stage, form: str, stream: bool
) -> None:
    again = [[Use(f"r{n}", "recall", {"query": "cabin lamp"})] for n in range(9)]
    on.provider.script = script(*again)
    async with _client(on, form) as talker:
        reply = await talker.hear(stream=stream)
    assert (reply.text, reply.calls) == ("", [])
    assert reply.finish in {"stop", "completed", "end_turn", "STOP"}
    assert len(on.provider.bodies) == 5
    sent_text = json.dumps(_sent(on))
    # The summary may quote what the user said first.
    assert _mentions(on, -1) - _mentions(on, 0) == 3
    assert sent_text.count("at most 3 recalls") == 1


@every_form
@both_ways
async def test_a_restart_between_turns_changes_nothing(
    tmp_path: Path, form: str, stream: bool
) -> None:
    url = f"sqlite:///{tmp_path / 'proxy.db'}"
    async with stage(url) as on, _client(on, form) as talker:
        on.provider.script = script([RECALL], [Say("Teal.")])
        await talker.hear(stream=stream)
        before, history = on.provider.bodies[-1], talker.history
    async with stage(url) as on:
        on.provider.script = script()
        talker = TALKERS[form](on.address, "k", history)
        talker.ask("Thank you")
        await talker.hear(stream=False)
        await talker.close()
    end = before.rindex(SECRET.encode()) + len(SECRET)
    if not stream:
        assert on.provider.bodies[-1][:end] == before[:end]
    assert json.dumps(_sent(on)).count(SECRET) == before.decode().count(SECRET)
    assert "Teal." in json.dumps(_sent(on)[-2])


FORCED: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"tool_choice": "required"},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "function": {"name": "lookup"}}},
    ],
    "openai-responses": [{"tool_choice": "required"}, {"tool_choice": "none"}],
    "anthropic": [{"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "none"}}],
    "gemini": [
        {"tool_config": {"function_calling_config": {"mode": mode}}} for mode in ("ANY", "NONE")
    ],
}


@every_form
async def test_under_a_forced_choice_there_is_no_tool_and_nothing_of_it(
    on: Stage, form: str
) -> None:
    on.provider.script = script([RECALL], [Say("Teal.")], *[[Say("Yes.")]] * 3)
    async with _client(on, form) as talker:
        await talker.hear(stream=False)
        talker.ask("Thank you")
        for options in FORCED[form]:
            history = list(talker.history)
            await talker.hear(stream=False, **options)
            assert "recall" not in on.provider.bodies[-1].decode()
            assert _mentions(on, -1) == _mentions(on, 0)
            talker.history[:] = history


@every_form
async def test_a_client_tool_named_recall_keeps_its_name(on: Stage, form: str) -> None:
    ours = Use("r1", "enfold_recall", {"query": "cabin lamp"})
    on.provider.script = script([Use("c1", "recall", {"what": "x"})], [ours], [Say("Teal.")])
    async with _client(on, form) as talker:
        talker.tools = json.loads(json.dumps(_plain(talker.tools)).replace("lookup", "recall"))
        reply = await talker.hear(stream=False)
        assert [call[1] for call in reply.calls] == ["recall"]
        talker.tell(reply.calls[0], "nothing")
        reply = await talker.hear(stream=False)
    assert (reply.text, reply.calls) == ("Teal.", [])
    assert _mentions(on, -1) > _mentions(on, 0)


def _plain(tools: Any) -> Any:
    return [tool if isinstance(tool, dict) else tool.to_json_dict() for tool in tools]


@pytest.mark.parametrize(
    ("form", "setting", "tools", "offered"),
    [
        ("openai", "off", True, False),
        ("openai", False, True, False),
        ("openai", True, True, True),
        *((form, "tools", False, False) for form in TALKERS),
        *((form, "always", False, True) for form in TALKERS),
    ],
)
async def test_the_setting_limits_recall(
    on: Stage, form: str, setting: Any, tools: bool, offered: bool
) -> None:
    await on.engine.set("proxy.recall", setting)
    async with _client(on, form) as talker:
        if not tools:
            talker.tools = []
        await talker.hear(stream=False)
    body = on.provider.last
    assert ("recall" in json.dumps(body.get("tools", []))) == offered
    assert ("`recall`" in json.dumps(_sent(on))) == offered


async def _namespace_of_the_last(on: Stage) -> str:
    headers = [(name.encode(), value.encode()) for name, value in on.provider.headers[-1].items()]
    return await on.namespaces({"headers": headers, "state": {"caller": ON_THIS_MACHINE}})


@every_form
async def test_recall_stays_within_the_namespace_of_the_key(on: Stage, form: str) -> None:
    async with _client(on, form, key="anna") as anna:
        await anna.hear(stream=False)
    namespace = await _namespace_of_the_last(on)
    of_anna = await on.engine.sessions(namespace=namespace)
    hits = await on.engine.search("cabin lamp", namespace=namespace)
    mine = f"{identifiers(0)} nothing is said of any lamp {identifiers(0)}"
    guesses = [
        Use("r1", "recall", {"query": "cabin lamp teal"}),
        Use("r2", "recall", {"reference": hits[0].message}),
        Use("r3", "recall", {"reference": of_anna[0].id}),
    ]
    on.provider.script = script(guesses, [Say("I do not know.")])
    headers = {"x-enfold-session": of_anna[0].id}
    options: Any = (
        {"http_options": {"headers": headers}} if form == "gemini" else {"extra_headers": headers}
    )
    async with _client(on, form, key="bert", first=mine) as bert:
        await bert.hear(stream=False, **options)
    sent_text = json.dumps(_sent(on))
    assert SECRET not in sent_text
    assert sent_text.count("Not answered: there is no message") == 2
    assert "1 user: " in sent_text


@every_form
async def test_the_same_opening_shares_nothing(on: Stage, form: str) -> None:
    async with _client(on, form, key="anna") as anna:
        anna.ask("Only I know that the spare key hangs in the galley")
        anna.answered("Noted")
        long_history(anna)
        anna.ask("Go on")
        await anna.hear(stream=False)
    on.provider.script = script(
        [Use("r1", "recall", {"query": "spare key galley"})], [Say("No idea.")]
    )
    async with _client(on, form, key="bert") as bert:
        await bert.hear(stream=False)
    assert "spare key hangs" not in json.dumps(_sent(on))


@pytest.mark.parametrize(("tools", "by"), [(True, "recall"), (False, "store")])
async def test_the_receipt_says_whether_the_model_can_reach_what_was_summarized(
    on: Stage, tools: bool, by: str
) -> None:
    async with _client(on, "openai") as talker:
        options: Any = {} if tools else {"tools": []}
        await talker.hear(stream=False, **options)
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    (summary,) = await (await on.engine.find(record.id, namespace=namespace)).summaries()
    assert summary.content["receipt"]["restorable_by"] == by


async def test_a_client_that_goes_on_from_a_joined_reply_has_all_of_it(on: Stage) -> None:
    on.provider.script = script([RECALL], [Say("It is teal.")])
    async with _client(on, "openai-responses") as talker:
        reply = await talker.hear(stream=True)
        talker.history[:] = []
        talker.ask("Thank you")
        await talker.hear(stream=False, previous_response_id=reply.raw.id)
    sent = _sent(on)
    assert "previous_response_id" not in on.provider.last
    assert SECRET in json.dumps(sent[-3])
    assert "It is teal." in json.dumps(sent[-2])


async def test_a_branch_recalls_only_what_leads_to_it(on: Stage) -> None:
    async with _client(on, "openai") as talker:
        await talker.hear(stream=False)
        shared = talker.history[:-2]
        talker.history[:] = [*shared]
        talker.ask("On this branch the anchor is rusty")
        await talker.hear(stream=False)
        talker.history[:] = [*shared]
        on.provider.script = script(
            [Use("r1", "recall", {"query": "anchor rusty"})],
            [Use("r2", "recall", {"query": "cabin lamp"})],
            [Say("Only the lamp.")],
        )
        talker.ask("Elsewhere")
        await talker.hear(stream=False)
    sent_text = json.dumps(_sent(on))
    assert "anchor is rusty" not in sent_text
    assert SECRET in sent_text


async def test_a_reply_that_the_client_changed_goes_out_as_it_has_it(on: Stage) -> None:
    on.provider.script = script([RECALL], [Say("It is teal.")])
    async with _client(on, "openai") as talker:
        await talker.hear(stream=False)
        talker.history[-1]["content"] = "It is red."
        talker.ask("Sure?")
        await talker.hear(stream=False)
    assert _mentions(on, -1) == _mentions(on, 0)
    assert "It is red." in json.dumps(_sent(on))


@every_form
async def test_a_stream_without_recall_passes_as_it_came(on: Stage, form: str) -> None:
    answer = script([Think("Hm"), Say("Plain words.")])
    async with _client(on, form) as talker:
        await talker.hear(stream=False)
        talker.ask("And now?")
        on.provider.script = answer
        reply = await talker.hear(stream=True)
    assert reply.text == "Plain words."
    assert reply.usage == (INPUT, OUTPUT)


@every_form
@both_ways
async def test_a_failure_while_recalling_is_the_providers_own(
    on: Stage, form: str, stream: bool
) -> None:
    first = script([Say("Let me look."), RECALL])
    bodies: list[Any] = []
    error = {"type": "overloaded_error", "message": "try later", "code": 529, "status": "BUSY"}

    def fails(request: Any, body: Any) -> Response | None:
        bodies.append(body)
        whole = {"type": "error", "error": error}
        return first(request, body) if len(bodies) == 1 else JSONResponse(whole, 529)

    on.provider.script = fails
    failures = (openai.APIError, anthropic.APIError, google_errors.APIError)
    async with _client(on, form) as talker:
        with pytest.raises(failures, match="try later"):
            await talker.hear(stream=stream)


async def test_a_call_that_was_cut_short_is_not_answered(on: Stage) -> None:
    def cut(_request: Any, body: Any) -> Response:
        function = {"name": "recall", "arguments": '{"qu'}
        call = {"id": "r1", "type": "function", "function": function}
        message = {"role": "assistant", "content": "Hm.", "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        about = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return JSONResponse({**about, "choices": [choice], "usage": usage})

    async with _client(on, "openai") as talker:
        on.provider.script = cut
        reply = await talker.hear(stream=False)
    assert (reply.text, reply.calls, reply.finish) == ("Hm.", [], "length")
    assert len(on.provider.bodies) == 1
