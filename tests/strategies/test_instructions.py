"""System messages stay, summaries of ours do not count as such."""

from __future__ import annotations

import enfold
from enfold.retention import Retention
from enfold.standing_instructions import after_instructions, is_instruction
from enfold.summaries import fence
from enfold.testing import assistant, system, user

SUMMARY = system(fence("They met."))


def test_a_summary_of_enfold_is_no_instruction() -> None:
    assert is_instruction(system("Be brief."))
    assert not is_instruction(SUMMARY)
    assert not is_instruction(user("Be brief."))


def test_instructions_at_the_beginning_stay() -> None:
    policy = Retention("messages", 3)
    two = [system("Be brief."), system("Be kind."), user("Hi."), system("Later.")]
    assert after_instructions(policy, two).keep_first == 2
    assert after_instructions(policy, [SUMMARY, user("Hi.")]).keep_first == 0
    assert after_instructions(Retention("messages", 3, 5), two).keep_first == 7


async def test_a_fresh_start_keeps_the_instructions() -> None:
    messages = [user("alpha " * 80) if n % 2 else assistant("beta " * 80) for n in range(9)]
    chat = [system("Be brief."), *messages, user("And now?")]
    done = await enfold.condense(chat, config={"freshStart": True})
    assert [message["role"] for message in done.messages] == ["system", "system", "user"]
    assert "Be brief." in str(done.messages[0])
