"""The MCP server, asked by the real client: in memory, and as a process over stdio."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

import enfold
from enfold.adapters.mcp import HistoryTools, make_server
from enfold.engine import Engine, Session
from enfold.engine.activity import read_activity
from enfold.messages import text_of
from enfold.testing import assistant, call, result, user
from tests.adapters.conftest import MODEL
from tests.conftest import ROOT

SERVER = ("-m", "enfold.adapters.mcp")
FACT = "The anchor weighs nine stone."


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert isinstance(result.structured_content, dict)
    return text(result), result.structured_content


async def complaint(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text(result)


async def make_session(engine: Engine, id: str = "chat", turns: int = 40) -> Session:
    """A session with a fact at its beginning and much talk after it."""
    session = await engine.session(id, model=MODEL)
    await session.append(FACT, assistant("Noted."))
    for turn in range(turns):
        await session.append(
            user(f"Question {turn}: " + "alpha " * 40), assistant(f"Answer {turn}: " + "beta " * 40)
        )
    return session


async def test_each_tool_has_a_schema_of_its_answer(engine: Engine) -> None:
    async with Client(make_server(engine)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == ["compress", "pin", "pins", "recall", "search_history", "status"]
    for name, tool in tools.items():
        assert tool.description
        assert "session" in tool.input_schema["properties"]
        assert tool.output_schema is not None
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name not in {"compress", "pin"})


async def test_summarized_messages_are_found_and_recalled(engine: Engine) -> None:
    await engine.set("words_share", 0)
    session = await make_session(engine)
    async with Client(make_server(engine, session="chat")) as client:
        words, values = await ask(client, "compress")
        assert values["outcome"] == "compressed"
        assert values["tokens_after"] < values["tokens_before"]
        assert f"{values['messages_summarized']} messages summarized" in words
        assert FACT not in [text_of(each.parts) for each in (await session.prepare()).messages]
        _, found = await ask(client, "search_history", query="anchor")
        (hit,) = found["hits"]
        assert hit["position"] == 1
        words, recalled = await ask(client, "recall", reference=hit["reference"])
        assert FACT in words
        assert [each["text"] for each in recalled["passages"]] == [FACT]
        words, again = await ask(client, "recall", query="How many stone did the anchor weigh?")
        assert again["passages"][0] == {**recalled["passages"][0], "is_find": True}
        assert f"1 user: {FACT}" in words.splitlines()
        _, placed = await ask(client, "recall", reference="1")
        assert placed == recalled
        _, wider = await ask(client, "recall", reference="1", around=1)
        assert [each["position"] for each in wider["passages"]] == [1, 2]
    recorded = await read_activity(engine)
    assert recorded.recalls == 4
    assert recorded.latest_recalls[2].text == "How many stone did the anchor weigh?"


async def test_a_tool_call_opens_its_whole_result(engine: Engine) -> None:
    session = await engine.session("chat", model=MODEL)
    output = "\n".join(f"line {n} of the log" for n in range(400))
    await session.append("Read it.", assistant("", call("read1", "read", {"path": "log.txt"})))
    await session.append(result("read1", output), "Thanks.", assistant("Done."), "What now?")
    await session.compress(strategy="truncation")
    async with Client(make_server(engine, session="chat")) as client:
        _, opened = await ask(client, "recall", reference="read1", max_tokens=8_000)
        (passage,) = opened["passages"]
        assert output.startswith(passage["text"])
        assert passage["length"] == len(output)


async def test_an_answer_of_recall_stays_within_its_tokens(engine: Engine) -> None:
    session = await engine.session("chat", model=MODEL)
    for n in range(8):
        await session.append(f"needle {n} " + "</conversation> strange 界 words " * 400)
    async with Client(make_server(engine, session="chat")) as client:
        for most in (300, 900, 2_000):
            words, values = await ask(client, "recall", query="needle", max_tokens=most)
            assert values["passages"]
            assert enfold.count(words) <= most
            assert words.count("</conversation>") == 1
        reference = values["passages"][0]["reference"]
        words, values = await ask(client, "recall", reference=reference, max_tokens=400)
        assert enfold.count(words) <= 400
        end = len(values["passages"][0]["text"])
        assert f"start={end}" in words
        _, rest = await ask(client, "recall", reference=reference, start=end)
        assert rest["passages"][0]["start"] == end


async def test_a_pinned_message_stays_in_the_view(engine: Engine) -> None:
    session = await make_session(engine)
    async with Client(make_server(engine, session="chat")) as client:
        assert (await ask(client, "pins"))[0] == "No message is pinned."
        _, values = await ask(client, "pin", reference="1")
        words, listed = await ask(client, "pins")
        assert listed == values
        (pinned,) = listed["messages"]
        assert (pinned["position"], pinned["why"], pinned["text"]) == (1, "pinned", FACT)
        assert f"{pinned['tokens']} tokens" in words
        await ask(client, "compress")
        assert FACT in [text_of(each.parts) for each in (await session.prepare()).messages]
        assert "no message" in await complaint(client, "pin", reference="nowhere")


async def test_status_says_how_full_it_is(engine: Engine) -> None:
    await make_session(engine)
    async with Client(make_server(engine, session="chat")) as client:
        words, values = await ask(client, "status")
        assert values["compression_is_due"]
        assert values["messages"] == 82
        assert f"{values['tokens']:,} of {values['limit']:,} tokens" in words
        await ask(client, "compress")
        _, values = await ask(client, "status")
        assert not values["compression_is_due"]
        assert values["summary_tokens"] > 0


async def test_a_server_for_one_session_sees_no_other(engine: Engine) -> None:
    await make_session(engine, "mine", turns=1)
    other = await engine.session("other")
    (secret,) = await other.append("the sextant is theirs")
    async with Client(make_server(engine, session="mine")) as client:
        for tool in (await client.list_tools()).tools:
            assert "session" not in tool.input_schema["properties"]
        _, found = await ask(client, "search_history", query="sextant", session="other")
        assert found == {"session": "mine", "hits": []}
        assert "no message" in await complaint(client, "recall", reference=secret)
        words, recalled = await ask(client, "recall", query="sextant")
        assert recalled["passages"] == []
        assert "Nothing" in words


async def test_sessions_are_named_by_the_call_within_the_namespace(engine: Engine) -> None:
    await make_session(engine, "mine", turns=1)
    await engine.session("theirs", namespace="elsewhere")
    async with Client(make_server(engine)) as client:
        _, values = await ask(client, "status", session="mine")
        assert values["session"] == "mine"
        assert "last used: mine" in await complaint(client, "status")
        assert "no session 'theirs'" in await complaint(client, "status", session="theirs")
    async with Client(make_server(engine, namespace="elsewhere")) as client:
        await ask(client, "status", session="theirs")
    async with Client(make_server(engine, namespace="empty")) as client:
        assert "no session yet" in await complaint(client, "status")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("recall", {}, "either a reference or a query"),
        ("recall", {"reference": "a", "query": "b"}, "either a reference or a query"),
        ("recall", {"query": "b", "max_tokens": 10}, "max_tokens is 10"),
        ("recall", {"query": "b", "max_tokens": 10**6}, "max_tokens is 1000000"),
        ("recall", {"reference": "nothing"}, "no message 'nothing'"),
        ("search_history", {"query": " "}, "no word"),
        ("search_history", {"query": "a", "limit": 0}, "limit is 0"),
        ("compress", {"keep_tokens": -1}, "keep_tokens is -1"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value),
)
async def test_wrong_arguments_are_explained(
    engine: Engine, tool: str, arguments: dict[str, Any], message: str
) -> None:
    await make_session(engine, turns=1)
    async with Client(make_server(engine, session="chat")) as client:
        assert message in await complaint(client, tool, **arguments)


async def test_a_process_serves_over_stdio(engine: Engine, database: str) -> None:
    await make_session(engine, turns=2)
    server = StdioServerParameters(
        command=sys.executable,
        args=[*SERVER, "--db", database, "--session", "chat"],
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    async with Client(server) as client:
        words, _ = await ask(client, "recall", query="anchor")
        assert FACT in words
        assert "either" in await complaint(client, "recall")


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_a_process_ends_with_its_client(tmp_path: Path) -> None:
    done = run(*SERVER, "--db", f"sqlite:///{tmp_path / 'chats.db'}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
def test_an_interrupt_ends_a_process_at_once(tmp_path: Path) -> None:
    hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    process = subprocess.Popen(
        [sys.executable, *SERVER, "--db", f"sqlite:///{tmp_path / 'chats.db'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "enfold"
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_database_that_cannot_be_opened_is_reported_in_one_line() -> None:
    done = run(*SERVER, "--db", "mongodb://nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("enfold-mcp: ")
    assert done.stderr.count("\n") == 1


def test_the_error_names_the_missing_extra(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        f"sys.argv = ['enfold-mcp', '--db', 'sqlite:///{(tmp_path / 'a.db').as_posix()}']\n"
        "from enfold.adapters.mcp import main; main()"
    )
    done = run("-c", program)
    assert done.returncode == 2
    assert "enfold[mcp]" in done.stderr
    assert done.stderr.count("\n") == 1


async def test_a_call_without_a_session_is_for_the_one_that_the_agent_used_last(
    tmp_path: Path,
) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        tools = HistoryTools(engine, None, "", "Claude Code")
        with pytest.raises(enfold.InputError, match="no session of Claude Code"):
            await tools.status()
        logged = "5b1c2a9e-0b7c-4a51-8f5e-6a2f7d3c9e10"
        for name in (logged, "holiday"):
            await (await engine.session(name)).append("Hello")
        assert (await tools.status()).session == logged
        assert (await tools.status(session="holiday")).session == "holiday"
