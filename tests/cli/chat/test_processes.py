"""`enfold chat` as a process before a model's server: answered, interrupted, killed, failed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import enfold
from enfold.messages import text_of
from tests.cli.outcomes import Outcome
from tests.cli.processes import PROGRAM, environment, run_in_pipes
from tests.cli.terminals import Terminal, terminal
from tests.llm.servers.loopback import Loopback, ScriptedAnswer, Step
from tests.llm.servers.openai import failed, streamed
from tests.llm.servers.protocol import KEY, ScriptedReply

ORDINARY_SCREEN = b"\x1b[?1049l"
CTRL_C = b"\x03"
WHOLE = streamed(ScriptedReply(("It is ", "the tide.")))
HALF = ScriptedAnswer((*WHOLE.steps[:2], Step.WAIT), mime=WHOLE.mime)
"""The first words, and then nothing more."""


@dataclass(frozen=True)
class ProfiledDatabase:
    """A database with a profile, and the server that it leads to."""

    db: str
    server: Loopback

    async def run(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        """A command in pipes, while the server goes on serving."""
        return await asyncio.to_thread(
            run_in_pipes, *arguments, stdin=stdin, ENFOLD_DB=self.db, HARBOUR_KEY=KEY
        )

    async def on_terminal(self, act: Callable[[Terminal], None]) -> bytes:
        """Run the chat on a terminal with a scripted user; return all output."""

        def whole() -> bytes:
            with terminal("chat", "harbour", ENFOLD_DB=self.db, HARBOUR_KEY=KEY) as screen:
                act(screen)
            return screen.shown

        return await asyncio.to_thread(whole)

    async def stored_texts(self, session: str = "harbour") -> list[tuple[str, str]]:
        """Role and text of every message of the session."""
        async with enfold.open(self.db) as engine:
            messages = await (await engine.find(session)).messages()
        return [(each.role, text_of(each.parts)) for each in messages]


@asynccontextmanager
async def placed(folder: Path, *answers: ScriptedAnswer) -> AsyncIterator[ProfiledDatabase]:
    async with Loopback(*answers, listing=failed(404)) as server:
        place = ProfiledDatabase(f"sqlite:///{folder / 'chats.db'}", server)
        fields = {"provider": "compatible", "model": "smol", "base_url": f"{server.url}/v1"}
        async with enfold.open(place.db) as engine:
            await engine.profiles.save("harbour", {**fields, "key": "env:HARBOUR_KEY"})
        yield place


async def test_a_piped_question_is_answered(tmp_path: Path) -> None:
    async with placed(tmp_path, WHOLE) as place:
        outcome = await place.run("chat", "harbour", stdin=b"Why?\n")
        assert (outcome.code, outcome.text, outcome.stderr_text) == (0, "It is the tide.\n", "")
        assert await place.stored_texts() == [("user", "Why?"), ("assistant", "It is the tide.")]
        listing, request = place.server.requests
        assert (listing.method, listing.path) == ("GET", "/v1/models")
        assert request.json["stream"] is True


async def test_a_talk_without_a_name_says_how_to_go_on(tmp_path: Path) -> None:
    async with placed(tmp_path, WHOLE) as place:
        outcome = await place.run("chat", stdin=b"Why?\n")
        assert outcome.text == "It is the tide.\n"
        name = outcome.stderr_text.split("`")[1].removeprefix("enfold chat ")
        assert await place.stored_texts(name) == [
            ("user", "Why?"),
            ("assistant", "It is the tide."),
        ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (failed(401), "key"),
        (ScriptedAnswer((*WHOLE.steps[:2], Step.CUT), mime=WHOLE.mime), ""),
        (streamed(ScriptedReply(())), ""),
    ],
    ids=["key refused", "cut in the middle", "nothing said"],
)
async def test_a_server_that_fails_leaves_the_question(
    answer: ScriptedAnswer, words: str, tmp_path: Path
) -> None:
    async with placed(tmp_path, answer) as place:
        outcome = await place.run("chat", "harbour", stdin=b"Why?\n")
        assert outcome.code == 5
        assert outcome.stderr_text.startswith("enfold: ")
        assert outcome.stderr_text.count("\n") == 1
        assert words in outcome.stderr_text
        assert KEY not in outcome.stderr_text + outcome.text
        assert await place.stored_texts() == [("user", "Why?")]


async def test_an_interrupt_in_a_pipe_keeps_what_came(tmp_path: Path) -> None:
    async with placed(tmp_path, HALF) as place:

        def interrupted() -> tuple[int, bytes]:
            given = environment(ENFOLD_DB=place.db, HARBOUR_KEY=KEY)
            with subprocess.Popen(
                [*PROGRAM, "chat", "harbour"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=given,
            ) as chat:
                assert chat.stdin is not None
                assert chat.stdout is not None
                chat.stdin.write(b"Why?\n")
                chat.stdin.close()
                first = os.read(chat.stdout.fileno(), 100)
                chat.send_signal(signal.SIGINT)
                return chat.wait(), first

        assert await asyncio.to_thread(interrupted) == (130, b"It is ")
        await place.server.left.wait()
        assert await place.stored_texts() == [("user", "Why?"), ("assistant", "It is ")]


async def test_ctrl_c_stops_the_answer_then_leaves(tmp_path: Path) -> None:
    def act(screen: Terminal) -> None:
        place = screen.wait_for("compatible:smol")
        screen.type(b"Why?\r")
        place = screen.wait_for("It is", after=place)
        screen.type(CTRL_C)
        screen.wait_for("interrupted", after=place)
        screen.type(CTRL_C)
        assert screen.wait() == 0

    async with placed(tmp_path, HALF) as place:
        shown = await place.on_terminal(act)
        await place.server.left.wait()
        assert ORDINARY_SCREEN in shown
        assert b"Traceback" not in shown
        assert KEY.encode() not in shown
        assert await place.stored_texts() == [("user", "Why?"), ("assistant", "It is ")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_leaves_the_terminal_as_it_was(
    number: signal.Signals, tmp_path: Path
) -> None:
    def act(screen: Terminal) -> None:
        place = screen.wait_for("compatible:smol")
        screen.type(b"Why?\r")
        place = screen.wait_for("It is", after=place)
        screen.process.send_signal(number)
        if number is signal.SIGINT:
            screen.wait_for("interrupted", after=place)
            screen.process.send_signal(number)
        assert screen.wait() == 0

    async with placed(tmp_path, HALF) as place:
        assert ORDINARY_SCREEN in await place.on_terminal(act)
        assert await place.stored_texts() == [("user", "Why?"), ("assistant", "It is ")]


async def test_a_question_survives_a_kill(tmp_path: Path) -> None:
    def act(screen: Terminal) -> None:
        place = screen.wait_for("compatible:smol")
        screen.type(b"Why?\r")
        screen.wait_for("It is", after=place)
        screen.process.kill()
        screen.wait()

    def look(screen: Terminal) -> None:
        place = screen.wait_for("/retry")
        screen.type(b"/retry\r")
        place = screen.wait_for("the tide.", after=place)
        screen.wait_for("messages", after=place)  # the token bar, once the answer is stored
        screen.type(CTRL_C)
        assert screen.wait() == 0

    async with placed(tmp_path, HALF, WHOLE) as place:
        await place.on_terminal(act)
        assert await place.stored_texts() == [("user", "Why?")]
        await place.on_terminal(look)
        assert await place.stored_texts() == [("user", "Why?"), ("assistant", "It is the tide.")]
