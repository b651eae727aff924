"""References in smart runs: no run fails on one, and none is left without its target."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold import wire
from enfold.messages import Conversation, Message
from enfold.testing import ScriptedSummarizer
from tests.strategies.lossless.sessions import FILES, Session, code, sessions
from tests.strategies.lossless.test_chains import dangling

OPERATIONS = st.sampled_from(
    [
        "keep",
        "suppress",
        {"operation": "truncate", "params": {"truncate": {"maxLines": 3}}},
        {"operation": "truncate", "params": {"truncate": {"maxChars": 700}}},
        {"operation": "summarize", "params": {"summarize": {"maxTokens": 60}}},
    ]
)
SELECTIONS = st.one_of(
    st.integers(0, 6).map(lambda n: {"type": "preserve_recent", "keepRecentCount": n}),
    st.integers(0, 60).map(lambda n: {"type": "preserve_percent", "keepPercentage": n}),
    st.lists(st.integers(0, 20)).map(lambda some: {"type": "custom", "indexes": some}),
)


@st.composite
def passes(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """Any pass: one summary, or operations on single messages."""
    common = {"id": f"p{number}", "name": f"Pass {number}", "selection": draw(SELECTIONS)}
    if draw(st.integers(0, 3)) == 0:
        how = {"keepFirst": draw(st.integers(0, 1)), "keepLast": draw(st.integers(0, 6))}
        batch = {"operation": "summarize", "summarizationConfig": how}
        return {**common, "mode": "batch", "batchConfig": batch}
    some = {"toolParameters": draw(OPERATIONS), "toolResults": draw(OPERATIONS)}
    return {**common, "mode": "individual", "individualConfig": {"defaults": some}}


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Any list of passes, after the lossless prelude."""
    obsolete = {"operations": {"removeObsoleteState": draw(st.booleans())}}
    number = draw(st.integers(1, 4))
    return {"losslessPrelude": obsolete, "passes": [draw(passes(n)) for n in range(number)]}


@given(sessions(), configs(), st.floats(0.1, 1.0), st.booleans())
@settings(max_examples=60)
async def test_no_list_of_passes_leaves_a_reference_without_its_target(
    messages: list[Message], config: dict[str, Any], share: float, is_near: bool
) -> None:
    body = wire.render(Conversation(tuple(messages)), "openai")
    target = int(enfold.count(body) * share)
    if is_near:
        # The prelude is enough then, and what fits the rest of the target returns.
        fewest = enfold.count((await enfold.condense(body, "lossless")).messages)
        target = fewest + int((enfold.count(body) - fewest) * share)
    await check(body, config, target)


async def check(body: Any, config: dict[str, Any], target: int) -> None:
    """Condense, and look for markers without a target and for what is not restored."""
    writer = ScriptedSummarizer("In short.")
    done = await enfold.condense(body, "smart", config=config, target=target, summarizer=writer)
    # A session may contain text that looks like a marker and points to nothing.
    before, after = (dangling(wire.parse(each).messages) for each in (body, done.messages))
    assert set(after) <= set(before)
    assert enfold.restore(done.messages, done.ledger) == body


async def test_references_to_a_shortened_result_return_together_with_it() -> None:
    """The first result has equal lines, which are counted; the second one points to its text."""
    session = Session()
    waiting = ["waiting for the lock that another process holds"] * 9
    for number in (1, 2):
        lines = [f"test {number}", *waiting, *code("app", 60), f"took {number} s"]
        session.run(f"make test{number}", "\n".join(lines))
    for path, lines in FILES.items():
        session.read(path, "\n".join(lines))
    body = wire.render(Conversation(tuple(session.end())), "openai")
    fewest = enfold.count((await enfold.condense(body, "lossless")).messages)
    for target in range(fewest, enfold.count(body), 50):
        await check(body, {"passes": []}, target)
