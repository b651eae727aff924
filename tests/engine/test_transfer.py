"""Conversations into sessions and out again, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import enfold
from enfold.engine import transfer
from enfold.engine.transfer import export_archive, export_branch, import_transcript
from enfold.errors import InputError, StoreError
from enfold.jsontext import dumps, loads
from enfold.testing import assistant, user
from enfold.transcripts import Transcript, TranscriptEntry, read
from tests.engine.conftest import Bench

ODD: list[dict[str, Any]] = [
    {"role": "user", "content": "nul \u0000, lone \ud800, big", "n": 12345678901234567890123},
    {"role": "assistant", "content": None, "z": 1, "a": [1.5, {"b": None}]},
    {"role": "user", "content": [{"type": "text", "text": "漢字", "cache_control": {"type": "x"}}]},
]


ENTRY = {"id": "1", "dialect": "openai", "message": {"role": "user"}}


async def test_a_branch_leaves_with_the_bytes_it_came_with(bench: Bench) -> None:
    session = await bench.session()
    await session.append(*ODD, dialect="openai")
    assert await export_branch(bench.engine, session) == dumps(ODD)


async def test_an_archive_carries_every_branch_to_another_database(
    bench: Bench, tmp_path: Path
) -> None:
    session = await bench.session()
    first, *_ = await session.append(user("a"), assistant("b"), user("c"))
    await session.append(assistant("b2"), after=first)
    await session.append(*ODD, dialect="openai")
    archive = await export_archive(bench.engine, session)
    (transcript,) = read(archive)
    async with enfold.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        copy = await import_transcript(other, transcript)
        assert copy.id == "chat"
        assert await copy.messages() == await session.messages()
        assert len(await copy.branches()) == 2
        again = await import_transcript(other, transcript)
        assert len(await again.branches()) == 2
        assert [e["id"] for e in loads(await export_archive(other, copy))["entries"]] == [
            e["id"] for e in loads(archive)["entries"]
        ]


async def test_a_transcript_without_a_name_gets_a_free_one(bench: Bench) -> None:
    transcript = Transcript((TranscriptEntry(user("a"), "1"),), tip="1")
    assert (await import_transcript(bench.engine, transcript)).id == "imported-1"
    assert (await import_transcript(bench.engine, transcript)).id == "imported-2"


async def test_a_long_conversation_is_imported_in_batches(bench: Bench) -> None:
    entries = tuple(
        TranscriptEntry(user(f"message {n}"), str(n), str(n - 1) if n else None)
        for n in range(2_500)
    )
    session = await import_transcript(bench.engine, Transcript(entries, tip="2499", id="long"))
    assert (await session.status()).messages == 2_500


async def test_a_parent_that_is_not_there_is_an_error(bench: Bench) -> None:
    transcript = Transcript((TranscriptEntry(user("a"), "1", "gone"),), tip="1")
    with pytest.raises(InputError, match="'gone'"):
        await import_transcript(bench.engine, transcript)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 9}, "version 9"),
        ({"tip": "gone"}, "tip"),
        ({"entries": [{"id": "1", "dialect": "morse", "message": {}}]}, "entries[0].dialect"),
        (
            {"entries": [{"id": "1", "dialect": "openai", "message": {"role": 1}}]},
            "entries[0].message.role",
        ),
        (
            {"entries": [{**ENTRY, "parent_id": "x"}]},
            "entries[0].parent_id",
        ),
    ],
)
def test_a_damaged_archive_is_refused_with_its_place(change: dict[str, object], words: str) -> None:
    archive = {"format": "enfold-archive", "version": 1, "entries": [], "tip": None, **change}
    with pytest.raises(InputError) as caught:
        list(read(dumps(archive)))
    assert words in str(caught.value)


def _long(number: int) -> Transcript:
    entries = tuple(
        TranscriptEntry(user(f"message {n}"), str(n), str(n - 1) if n else None)
        for n in range(number)
    )
    return Transcript(entries, tip=str(number - 1))


async def test_an_interrupted_import_is_marked_and_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_BATCH", 100)
    prepare, calls = transfer._prepare, 0

    def fail_at_the_third(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise StoreError("the disk is full")
        return prepare(*arguments)

    monkeypatch.setattr(transfer, "_prepare", fail_at_the_third)
    with pytest.raises(StoreError):
        await import_transcript(bench.engine, _long(450))
    (begun,) = await bench.engine.sessions()
    assert (begun.id, begun.depth, begun.importing) == ("imported-1", 200, 450)
    done = await import_transcript(bench.engine, _long(450))
    record = await done.record()
    assert (record.id, record.depth, record.importing) == ("imported-1", 450, None)
    assert (await import_transcript(bench.engine, _long(450))).id == "imported-2"


async def test_a_short_import_leaves_all_or_nothing(bench: Bench) -> None:
    wrong = Transcript((*_long(3).entries, TranscriptEntry(user("x"), "x", "gone")), tip="x")
    with pytest.raises(InputError):
        await import_transcript(bench.engine, wrong)
    assert await bench.engine.sessions() == []
