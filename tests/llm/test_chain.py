"""The chain: in which order, who is passed over, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from enfold.errors import (
    AuthenticationError,
    GatewayError,
    RateLimitError,
    SummaryError,
    UnavailableError,
)
from enfold.llm.calls import Connection
from enfold.llm.costs import Prices
from enfold.llm.profiles import (
    NO_HANDLER,
    CandidateSummarizer,
    Profile,
    SummarizerChain,
    summarizer_candidates,
)
from enfold.llm.summarizer import ModelSummarizer
from enfold.modelconfig import ModelConfig
from enfold.summaries import Summary, SummaryRequest
from enfold.summaries.request import begin_call, watch_calls
from enfold.testing import Answer, ScriptedGateway, user

WORK = Profile(name="work", provider="openai", model="gpt-4o", condensing_profile="cheap")
CHEAP = Profile(name="cheap", provider="anthropic", model="claude-haiku-4-5")
PLAIN = Profile(name="plain", provider="openai", model="gpt-4o")
SMALL = Profile(name="small", provider="openai", model="gpt-4o-mini")
SELF = Profile(name="self", provider="openai", model="gpt-4o", condensing_profile="self")
SERVER = Profile(
    name="server", provider="compatible", model="llama", base_url="http://127.0.0.1:1/v1"
)
PROFILES = {each.name: each for each in (WORK, CHEAP, PLAIN, SMALL, SELF, SERVER)}
REQUEST = SummaryRequest((user("Where is the map?"),), max_tokens=500)


def order(named: str | None = None, conversation: str | None = None) -> list[str]:
    return [
        each.name
        for each in summarizer_candidates(PROFILES, named=named, conversation=conversation)
    ]


def test_the_order_is_condensing_profile_cheap_model_conversation_profile() -> None:
    assert order(conversation="work") == [
        "cheap (anthropic:claude-haiku-4-5)",
        "work (openai:gpt-4o-mini)",
        "work (openai:gpt-4o)",
    ]


def test_without_a_condensing_profile_the_cheap_model_is_first() -> None:
    assert order(conversation="plain") == ["plain (openai:gpt-4o-mini)", "plain (openai:gpt-4o)"]


def test_the_requested_profile_comes_first() -> None:
    assert order("server", "work")[0] == "server (compatible:llama)"
    assert order("cheap") == ["cheap (anthropic:claude-haiku-4-5)"]


def test_no_model_is_listed_twice() -> None:
    assert order(conversation="small") == ["small (openai:gpt-4o-mini)"]
    assert order(conversation="self") == ["self (openai:gpt-4o)", "self (openai:gpt-4o-mini)"]
    assert order(conversation="server") == ["server (compatible:llama)"]


def test_a_profile_that_is_gone_or_broken_says_so() -> None:
    gone, *others = summarizer_candidates({**PROFILES, "cheap": "key: wrong"}, conversation="work")
    assert (gone.title, gone.fault) == ("condensing profile 'cheap'", "key: wrong")
    assert len(others) == 2
    (only,) = summarizer_candidates({}, conversation="work")
    assert only.fault == "there is no profile of that name"


def writers(*scripts: Sequence[Answer], windows: Sequence[int] = ()) -> list[CandidateSummarizer]:
    made = []
    for place, script in enumerate(scripts):
        connection = Connection("openai", f"m{place}")
        window = windows[place] if windows else 100_000
        config = ModelConfig(connection.name, window, 4_096)
        gateway = ScriptedGateway(*script)
        made.append(
            CandidateSummarizer(
                f"number {place}", ModelSummarizer(gateway, connection, config, f"w{place}")
            )
        )
    return made


def call_counts(chain: Sequence[CandidateSummarizer]) -> list[int]:
    gateways = [writer.summarizer.gateway for writer in chain]
    return [len(each.calls) for each in gateways if isinstance(each, ScriptedGateway)]


async def test_only_the_first_summarizer_is_called_if_it_succeeds() -> None:
    candidates = writers(["First."], ["Second."])
    chain = SummarizerChain(candidates)
    assert (chain.name, chain.max_input) == ("w0", 100_000)
    summary = await chain.summarize(REQUEST)
    assert (summary.text, summary.author, summary.notes) == ("First.", "w0", ())
    assert call_counts(candidates) == [1, 0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (UnavailableError("the server is down"), "the server is down"),
        ("", "the answer was empty"),
        ("no " * 40, "the answer repeats"),
    ],
    ids=["failing", "empty", "refusing"],
)
async def test_the_next_takes_over_and_the_summary_says_why(answer: Answer, words: str) -> None:
    summary = await SummarizerChain(writers([answer], ["Second."])).summarize(REQUEST)
    assert (summary.text, summary.author) == ("Second.", "w1")
    (note,) = summary.notes
    assert note.startswith("number 0: ")
    assert words in note
    assert note.endswith("w1 wrote instead")


async def test_profiles_skipped_beforehand_are_reported_too() -> None:
    chain = SummarizerChain(writers(["Written."]), ["condensing profile 'x': no key"])
    (note,) = (await chain.summarize(REQUEST)).notes
    assert note == "condensing profile 'x': no key; w0 wrote instead"


async def test_the_error_names_all_summarizers_with_their_reasons() -> None:
    chain = SummarizerChain(writers([RateLimitError("slow down")], [" "]), ["profile 'x': no key"])
    with pytest.raises(SummaryError) as caught:
        await chain.summarize(REQUEST)
    message = str(caught.value)
    assert message.startswith(f"{NO_HANDLER}: profile 'x': no key; number 0: slow down")
    assert "number 1: the answer was empty" in message
    with pytest.raises(SummaryError, match=f"{NO_HANDLER}: profile 'x': no key"):
        SummarizerChain([], ["profile 'x': no key"])


@pytest.mark.parametrize("error", [AuthenticationError("401"), GatewayError("404")], ids=str)
async def test_a_wrong_key_or_model_is_not_retried_but_reported(error: GatewayError) -> None:
    candidates = writers([error], ["Second."])
    chain = SummarizerChain(candidates)
    first, second = [await chain.summarize(REQUEST) for _ in range(2)]
    assert call_counts(candidates) == [1, 2]
    assert first.notes == second.notes
    assert len(first.notes) == 1
    assert chain.name == "w1"


async def test_a_passing_failure_is_tried_again() -> None:
    candidates = writers([UnavailableError("503"), "First."], ["Second."])
    chain = SummarizerChain(candidates)
    texts = [(await chain.summarize(REQUEST)).text for _ in range(2)]
    assert texts == ["Second.", "First."]


async def test_the_last_one_is_never_given_up() -> None:
    candidates = writers([AuthenticationError("401")])
    chain = SummarizerChain(candidates)
    for _ in range(2):
        with pytest.raises(SummaryError, match="401"):
            await chain.summarize(REQUEST)
    assert call_counts(candidates) == [2]


async def test_a_smaller_window_reads_the_conversation_in_pieces() -> None:
    candidates = writers([UnavailableError("503")], ["So far."], windows=(100_000, 6_000))
    long = SummaryRequest(
        tuple(user(f"Item {n}: " + "word " * 900) for n in range(12)), max_tokens=500
    )
    summary = await SummarizerChain(candidates).summarize(long)
    assert summary.text == "So far."
    assert call_counts(candidates)[0] == 1
    assert call_counts(candidates)[1] > 2


async def test_after_an_author_come_the_rest_of_the_chain() -> None:
    chain = SummarizerChain(writers(["First."], ["Second."]))
    rest = chain.after("w0")
    assert rest is not None
    assert (await rest.summarize(REQUEST)).author == "w1"
    assert rest.after("w1") is None


async def test_the_cost_of_a_refused_answer_is_part_of_the_summary() -> None:
    candidates = writers(["no " * 40], ["Second."])
    for writer in candidates:
        object.__setattr__(writer.summarizer, "prices", Prices(input=1.0, output=2.0))
    without_first = await SummarizerChain(candidates[1:]).summarize(REQUEST)
    both = await SummarizerChain(candidates).summarize(REQUEST)
    assert without_first.cost is not None
    assert both.cost is not None
    assert both.cost > without_first.cost * 1.5


class PartsInMemory:
    """Parts that are kept in memory."""

    def __init__(self) -> None:
        self.parts: dict[str, Summary] = {}

    async def get(self, key: str) -> Summary | None:
        """Return a part."""
        return self.parts.get(key)

    async def keep(self, key: str, summary: Summary) -> None:
        """Keep a part."""
        self.parts[key] = summary


async def test_a_summary_in_parts_goes_on_where_it_failed() -> None:
    long = SummaryRequest(
        tuple(user(f"Item {n}: " + "word " * 900) for n in range(12)), max_tokens=500
    )
    candidates = writers(["One.", "Two.", UnavailableError("503"), "Later."], windows=(6_000,))
    kept, parts = PartsInMemory(), list[int]()
    async with watch_calls(60, lambda part, _all: parts.append(part), kept):
        with pytest.raises(SummaryError, match="503"):
            await SummarizerChain(candidates).summarize(long)
        assert call_counts(candidates) == [3]
        summary = await SummarizerChain(candidates).summarize(long)
    assert summary.text == "Later."
    assert parts == [1, 2, 3, *range(3, parts[-1] + 1)]
    assert call_counts(candidates) == [
        len(parts)
    ]  # the two parts before the failure are not repeated


async def test_every_call_restarts_the_time_limit() -> None:
    async with watch_calls(60, None) as limit:
        before = limit.when()
        await asyncio.sleep(0.01)
        begin_call()
        after = limit.when()
    assert before is not None
    assert after is not None
    assert after > before
