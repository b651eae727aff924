"""A bulk run: runs a task on every conversation of every file and yields the result of each file.

Conversations are queued in order, a few more than there are processes, and their results are taken
in order, so that memory does not grow with the files. A file whose result already exists, made from
the same input with the same options, is skipped. A file that fails does not stop the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from enfold.bulk.files import BulkFile, Journal, digest, open_journal
from enfold.bulk.tasks import BulkTask, ItemResult, Totals
from enfold.bulk.workers import Submit, WorkerPool, daft_workers, local_workers
from enfold.errors import EnfoldError, InputError, UnfinishedError, facts, file_errors
from enfold.jsontext import dumps, loads, to_json

_LINES = 3
"""For each conversation."""


class PartialResult:
    """The results of one file so far, in a temporary file."""

    def __init__(self, place: BulkFile, key: str) -> None:
        """Continue the temporary file if it belongs to the key."""
        self._place = place
        self.tally = Totals()
        self._path = place.target.with_name(f".enfold-part-{place.target.name}")
        with file_errors("written", str(place.target)):
            place.target.parent.mkdir(parents=True, exist_ok=True)
            if place.target.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            with self._path.open("a+b") as stream:
                self._go_on(stream, key.encode() + b"\n")

    def _go_on(self, stream: IO[bytes], header: bytes) -> None:
        """Read the existing results and cut off an incomplete one."""
        stream.seek(0)
        at = len(header)
        if stream.readline() == header:
            while lines := _complete(islice(stream, _LINES)):
                at += sum(map(len, lines))
                self.tally = self.tally.plus(Totals.from_json(loads(lines[-1])))
        else:
            stream.truncate(0)
            stream.write(header)
        stream.truncate(at)

    def add(self, piece: ItemResult) -> None:
        """Add the result of the next conversation."""
        self.tally = self.tally.plus(piece.tally)
        lines = (piece.result, piece.ledger, dumps(to_json(piece.tally)))
        with file_errors("written", str(self._place.target)), self._path.open("ab") as stream:
            stream.write(b"".join(line + b"\n" for line in lines))

    def discard(self) -> None:
        """Delete the temporary file."""
        self._path.unlink(missing_ok=True)

    def finish(self, *, is_array: bool, with_ledger: bool) -> list[tuple[Path, str]]:
        """Write the files and return their paths and digests.

        The ledger comes first: without it the result could not be restored.
        """
        written: list[tuple[Path, str]] = []
        place = self._place
        if with_ledger:
            written.append((place.ledger, self._write(place.ledger, 1, is_array=False)))
        written.append((place.target, self._write(place.target, 0, is_array=is_array)))
        self.discard()
        return written

    def _write(self, path: Path, which: int, *, is_array: bool) -> str:
        """Write one line per conversation, or one array, to a temporary file and rename it."""
        found = blake2b(digest_size=16)
        temporary = path.with_name(f".enfold-new-{path.name}")
        with file_errors("written", str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("rb") as gathered, temporary.open("wb") as stream:
                lines = islice(gathered, 1 + which, None, _LINES)
                for data in _array(lines) if is_array else lines:
                    found.update(data)
                    stream.write(data)
            temporary.replace(path)
        return found.hexdigest()


def _complete(lines: Iterator[bytes]) -> list[bytes]:
    """Return the lines of one conversation; empty if the last was cut off."""
    found = list(lines)
    return found if len(found) == _LINES and found[-1].endswith(b"\n") else []


def _array(lines: Iterator[bytes]) -> Iterator[bytes]:
    yield b"["
    for index, line in enumerate(lines):
        yield (b"," if index else b"") + line.rstrip(b"\n")
    yield b"]\n"


FileStatus: TypeAlias = Literal["done", "already", "failed"]

ENGINES: Mapping[str, Callable[[int], AbstractContextManager[WorkerPool]]] = {
    "local": local_workers,
    "daft": daft_workers,
}
"""Engine name -> workers."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result of one file."""

    place: BulkFile
    status: FileStatus
    tally: Totals = field(default_factory=Totals)
    error: EnfoldError | None = None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "file": str(self.place.source),
            "status": self.status,
            "out": None if self.error is not None else str(self.place.target),
            "ledger": None if self.error is not None else str(self.place.ledger),
            **to_json(self.tally),
            "error": None if self.error is None else str(self.error),
        }


@dataclass(frozen=True, slots=True)
class BulkRun:
    """A task, its files, and how they are processed."""

    work: BulkTask
    places: Sequence[BulkFile]
    out: Path
    jobs: int = 1
    engine: str = "local"
    on_progress: Callable[[int], None] = field(default=lambda _: None)
    """Called with the number of bytes processed since the last call."""

    def outcomes(self) -> Generator[FileResult, None, None]:
        """Run, and yield the result of every file in order. Close the generator to stop."""
        waiting: deque[tuple[_FileRun, Future[ItemResult] | None, int]] = deque()
        with open_journal(self.out) as journal, ENGINES[self.engine](self.jobs) as pool:
            held = 0
            for file in (_FileRun(self, journal, place) for place in self.places):
                with closing(file.hand_out(pool.submit)) as handed_out:
                    for size, future in handed_out:
                        waiting.append((file, future, size))
                        held += size
                        while len(waiting) > pool.queue_size or held > (pool.memory or held):
                            held -= waiting[0][2]
                            yield from _collect(*waiting.popleft())
                waiting.append((file, None, 0))
            while waiting:
                yield from _collect(*waiting.popleft())


class _FileRun:
    """The state of one file during a run."""

    def __init__(self, run: BulkRun, journal: Journal, place: BulkFile) -> None:
        self._run = run
        self._journal = journal
        self._place = place
        self._key = ""
        self._part: PartialResult | None = None
        self._is_array = False
        self._unreported = 0
        self.error: EnfoldError | None = None
        self._already: Totals | None = None

    def hand_out(self, submit: Submit) -> Generator[tuple[int, Future[ItemResult]], None, None]:
        """Submit every conversation that is not done; yield its size and its future."""
        with suppress(OSError):  # reading it raises the error
            self._unreported = self._place.source.stat().st_size
        try:
            yield from self._hand_out(submit)
        except EnfoldError as error:
            self.fail(error)

    def _hand_out(self, submit: Submit) -> Iterator[tuple[int, Future[ItemResult]]]:
        work, place = self._run.work, self._place
        self._key = _key(work, place)
        results = (place.target, place.ledger) if work.writes_ledgers else (place.target,)
        noted = self._journal.finished(results, self._key)
        if noted is not None:
            self._already = Totals.from_json(noted)
            return
        with work.units(place) as (self._is_array, units):
            self._part = part = PartialResult(place, self._key)
            for unit in islice(units, part.tally.conversations):
                self.tell(unit.size)
            for unit in units:
                if self.error is not None:
                    return
                yield unit.size, submit(work, unit)

    def add(self, piece: ItemResult, size: int) -> None:
        """Add the next conversation's result."""
        self.tell(size)
        if self._part is not None and self.error is None:
            self._part.add(piece)

    def tell(self, size: int) -> None:
        """Report processed bytes."""
        self._unreported -= size
        self._run.on_progress(size)

    def fail(self, error: EnfoldError) -> None:
        """Record the error. After a retryable one, the next run continues from here."""
        self.error = self.error or error

    def end(self) -> FileResult:
        """Write the files if nothing failed, and return the result."""
        self.tell(self._unreported)
        if self._already is not None:
            return FileResult(self._place, "already", self._already)
        try:
            tally = self._finish()
        except EnfoldError as error:
            self.fail(error)
        if self.error is None:
            return FileResult(self._place, "done", tally)
        if self._part is not None and not facts(self.error).retryable:
            self._part.discard()
        return FileResult(self._place, "failed", error=self.error)

    def _finish(self) -> Totals:
        part = self._part
        if self.error is not None or part is None:
            return Totals()
        if not part.tally.conversations:
            raise InputError("no conversation in it", place=str(self._place.source))
        work = self._run.work
        written = part.finish(is_array=self._is_array, with_ledger=work.writes_ledgers)
        self._journal.finish(self._place.target, self._key, written, to_json(part.tally))
        return part.tally


def _collect(file: _FileRun, future: Future[ItemResult] | None, size: int) -> Iterator[FileResult]:
    """Add the next result, or finish a file that has no more."""
    if future is None:
        yield file.end()
        return
    try:
        file.add(future.result(), size)
    except EnfoldError as error:
        file.fail(error)
    except BrokenProcessPool:
        raise UnfinishedError(
            "a worker process was killed, perhaps for lack of memory; finished results are kept: "
            "run it again, with fewer --jobs"
        ) from None
    except Exception as error:  # noqa: BLE001 - a bug must not cost the other conversations
        file.fail(EnfoldError(f"an internal error, {type(error).__name__}; please report it"))


def _key(work: BulkTask, place: BulkFile) -> str:
    """Return a digest of the input and the options."""
    together = blake2b(work.key.encode(), digest_size=16)
    for path in work.inputs(place):
        # Of a file without a digest, reading it raises the error.
        together.update((digest(path) or "").encode())
    return together.hexdigest()
