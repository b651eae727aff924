"""The chain: who condenses for a profile, and who does if that one cannot.

First the condensing profile that is named, then the provider's cheap model with the conversation
profile's key, last the conversation profile itself. A candidate that cannot be used, or fails when
it is asked, is passed over, and the summary says so. When nobody is left, so does the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from enfold.errors import AuthenticationError, GatewayError, SummaryError
from enfold.llm.profiles import Profile
from enfold.llm.providers import provider
from enfold.llm.summarizer import ModelSummarizer
from enfold.money import add
from enfold.summaries import Summary, SummaryRequest
from enfold.summaries.sequence import pieces

NOBODY = "No valid API handler available"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody who may condense."""

    title: str
    """Who it is, for people."""
    profile: Profile | None = None
    model: str = ""
    """That of the profile, or another of its provider."""
    fault: str = ""
    """Why it cannot be used. Empty where nothing is known against it."""

    @property
    def name(self) -> str:
        """Recorded as the author of summaries: the profile, and the model that is asked."""
        if self.profile is None:
            return self.title
        return f"{self.profile.name} ({self.profile.provider}:{self.model})"


def candidates(
    known: Mapping[str, Profile | str], *, named: str | None = None, conversation: str | None = None
) -> Iterator[Candidate]:
    """Who may condense in a session with the profile `conversation`, best first.

    `known` has every profile, or what is wrong with it. `named` was asked for; else it is the
    condensing profile of the conversation's.
    """
    own = _found(known, conversation, "conversation profile") if conversation else None
    profile = own.profile if own is not None else None
    first = named or (profile.condensing_profile if profile is not None else None)
    seen: set[tuple[str, str]] = set()
    for each in _in_order(known, first, own):
        who = (each.profile.name if each.profile else each.title, each.model)
        if who not in seen:
            seen.add(who)
            yield each


def _in_order(
    known: Mapping[str, Profile | str], first: str | None, own: Candidate | None
) -> Iterator[Candidate]:
    if first is not None:
        yield _found(known, first, "condensing profile")
    if own is None:
        return
    if own.profile is not None:
        cheap = provider(own.profile.provider).cheap_model
        if cheap is not None:
            title = f"cheap model of {own.profile.provider}, {cheap!r}"
            yield Candidate(title, own.profile, cheap)
    yield own


def _found(known: Mapping[str, Profile | str], name: str, role: str) -> Candidate:
    title, found = f"{role} {name!r}", known.get(name)
    if isinstance(found, Profile):
        return Candidate(title, found, found.model)
    return Candidate(title, fault=found or "there is no profile of that name")


@dataclass(frozen=True, slots=True)
class Writer:
    """A candidate that can be asked."""

    title: str
    summarizer: ModelSummarizer


class Chain:
    """A summarizer that asks one after the other until one has written a summary."""

    def __init__(self, writers: Sequence[Writer], passed_over: Sequence[str] = ()) -> None:
        """`passed_over` says of earlier candidates who they are and why they cannot be used."""
        if not writers:
            raise SummaryError(_nobody(passed_over))
        self._writers = list(writers)
        self._passed_over = list(passed_over)

    @property
    def name(self) -> str:
        """Of the one that is asked first."""
        return self._writers[0].summarizer.name

    @property
    def max_input(self) -> int:
        """Of the one that is asked first."""
        return self._writers[0].summarizer.max_input

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The first summary that somebody writes; its notes say who could not."""
        failed: list[str] = []
        for writer in tuple(self._writers):
            try:
                summary = await _in_sequence(writer.summarizer, request)
            except SummaryError as error:
                reason = f"{writer.title}: {_without_name(str(error), writer)}"
                failed.append(reason)
                if _is_final(error) and len(self._writers) > 1:
                    self._writers.remove(writer)
                    self._passed_over.append(reason)
                continue
            passed = dict.fromkeys((*self._passed_over, *failed))
            notes = (f"{each}; {summary.author} wrote instead" for each in passed)
            return replace(summary, notes=(*summary.notes, *notes))
        raise SummaryError(_nobody(dict.fromkeys((*self._passed_over, *failed))))


async def _in_sequence(summarizer: ModelSummarizer, request: SummaryRequest) -> Summary:
    """The summary of all, piece by piece where it is more than this one can read."""
    written: list[Summary] = []
    for piece in pieces(request, summarizer.max_input):
        previous = written[-1].text if written else request.previous
        written.append(
            await summarizer.summarize(replace(request, messages=piece, previous=previous))
        )
    return replace(written[-1], cost=add([each.cost for each in written]))


def _is_final(error: SummaryError) -> bool:
    """True if asking again is of no use: a wrong key, or a model that is not there."""
    cause = error.__cause__
    return isinstance(cause, AuthenticationError) or type(cause) is GatewayError


def _without_name(text: str, writer: Writer) -> str:
    return text.removeprefix(f"{writer.summarizer.name}: ")


def _nobody(reasons: Sequence[str] | Mapping[str, None]) -> str:
    return f"{NOBODY}: {'; '.join(reasons) or 'no profile is named'}"
