"""Running: the work done for every conversation of every file, and what came of each file.

Conversations are handed out in order, a few more than there are processes, and their results are
taken in order, so that memory does not grow with the files. A file whose result is there already,
made from the same input in the same way, is passed over. One that fails does not stop the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from enfold.bulk.crew import Crew, Submit, local
from enfold.bulk.distributed import distributed
from enfold.bulk.journal import Journal, digest, open_journal
from enfold.bulk.layout import Place
from enfold.bulk.parts import Part
from enfold.bulk.work import Piece, Tally, Work
from enfold.errors import EnfoldError, InputError, UnfinishedError, facts

Status: TypeAlias = Literal["done", "already", "failed"]

ENGINES: Mapping[str, Callable[[int], AbstractContextManager[Crew]]] = {
    "local": local,
    "daft": distributed,
}
"""Who does the work, by the name of the engine."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one file."""

    place: Place
    status: Status
    tally: Tally = field(default_factory=Tally)
    error: EnfoldError | None = None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "file": str(self.place.source),
            "status": self.status,
            "out": None if self.error is not None else str(self.place.target),
            "ledger": None if self.error is not None else str(self.place.ledger),
            **self.tally.as_json(),
            "error": None if self.error is None else str(self.error),
        }


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be done, by how many, and who is told how far it is."""

    work: Work
    places: Sequence[Place]
    out: Path
    jobs: int = 1
    engine: str = "local"
    told: Callable[[int], None] = field(default=lambda _: None)
    """Given the bytes that were worked off since the last time."""

    def outcomes(self) -> Generator[Outcome, None, None]:
        """Do it; every file's outcome, in their order. Close it to stop."""
        waiting: deque[tuple[_File, Future[Piece] | None, int]] = deque()
        with open_journal(self.out) as journal, ENGINES[self.engine](self.jobs) as crew:
            held = 0
            for file in (_File(self, journal, place) for place in self.places):
                with closing(file.hand_out(crew.submit)) as handed_out:
                    for size, future in handed_out:
                        waiting.append((file, future, size))
                        held += size
                        while len(waiting) > crew.ahead or held > (crew.memory or held):
                            held -= waiting[0][2]
                            yield from _collect(*waiting.popleft())
                waiting.append((file, None, 0))
            while waiting:
                yield from _collect(*waiting.popleft())


class _File:
    """One file on its way."""

    def __init__(self, run: Run, journal: Journal, place: Place) -> None:
        self._run = run
        self._journal = journal
        self._place = place
        self._key = ""
        self._part: Part | None = None
        self._is_array = False
        self._untold = 0
        self.error: EnfoldError | None = None
        self._already: Tally | None = None

    def hand_out(self, submit: Submit) -> Generator[tuple[int, Future[Piece]], None, None]:
        """Give every conversation that is not done yet to the crew; its size and its future."""
        try:
            self._untold = self._place.source.stat().st_size
        except OSError:
            self._untold = 0  # whoever reads it will say why
        try:
            yield from self._hand_out(submit)
        except EnfoldError as error:
            self.fail(error)

    def _hand_out(self, submit: Submit) -> Iterator[tuple[int, Future[Piece]]]:
        work, place = self._run.work, self._place
        self._key = _key(work, place)
        results = (place.target, place.ledger) if work.writes_ledgers else (place.target,)
        noted = self._journal.finished(results, self._key)
        if noted is not None:
            self._already = Tally.from_json(noted)
            return
        with work.units(place) as (self._is_array, units):
            self._part = part = Part(place, self._key)
            done = part.tally.conversations
            for unit in islice(units, done):
                self.tell(unit.size)
            for unit in units:
                if self.error is not None:
                    return
                yield unit.size, submit(work, unit)

    def add(self, piece: Piece, size: int) -> None:
        """The next conversation's result."""
        self.tell(size)
        if self._part is not None and self.error is None:
            self._part.add(piece)

    def tell(self, size: int) -> None:
        """So much of it is worked off."""
        self._untold -= size
        self._run.told(size)

    def fail(self, error: EnfoldError) -> None:
        """Give it up; if it is worth another try, the next run goes on from here."""
        self.error = self.error or error

    def end(self) -> Outcome:
        """Finish it, if nothing went wrong."""
        self.tell(self._untold)
        if self._already is not None:
            return Outcome(self._place, "already", self._already)
        try:
            tally = self._finish()
        except EnfoldError as error:
            self.fail(error)
        if self.error is None:
            return Outcome(self._place, "done", tally)
        if self._part is not None and not facts(self.error).retryable:
            self._part.discard()
        return Outcome(self._place, "failed", error=self.error)

    def _finish(self) -> Tally:
        part = self._part
        if self.error is not None or part is None:
            return Tally()
        if not part.tally.conversations:
            raise InputError("no conversation in it", place=str(self._place.source))
        work = self._run.work
        written = part.finish(is_array=self._is_array, with_ledger=work.writes_ledgers)
        self._journal.finish(self._place.target, self._key, written, part.tally.as_json())
        return part.tally


def _collect(file: _File, future: Future[Piece] | None, size: int) -> Iterator[Outcome]:
    """Take the next result, or end the file that has no more."""
    if future is None:
        yield file.end()
        return
    try:
        file.add(future.result(), size)
    except EnfoldError as error:
        file.fail(error)
    except BrokenProcessPool:
        raise UnfinishedError(
            "a process that worked for this one was ended from outside, perhaps for want of "
            "memory; what is finished is kept: run it again, with fewer --jobs"
        ) from None
    except Exception as error:  # noqa: BLE001 - a fault of ours in one conversation
        file.fail(EnfoldError(f"an internal error, {type(error).__name__}; please report it"))


def _key(work: Work, place: Place) -> str:
    """A digest of the input and of what is done with it."""
    together = blake2b(work.key.encode(), digest_size=16)
    for path in work.inputs(place):
        found = digest(path)
        if found is None:
            continue  # whoever reads it will say why
        together.update(found.encode())
    return together.hexdigest()
