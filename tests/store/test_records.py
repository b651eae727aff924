"""Records: the few things they do."""

from __future__ import annotations

from enfold.records import EditDraft, SnapshotDraft, new_id


def test_ids_are_new() -> None:
    assert len({new_id() for _ in range(100)}) == 100
    assert SnapshotDraft({}).id != SnapshotDraft({}).id


def test_contents_stay_out_of_sight() -> None:
    """A record in a log or an error must not contain messages."""
    edit = EditDraft("m", b"secret", 1, "characters", ledger={"was": "secret"})
    assert "secret" not in repr(edit)
    assert "secret" not in repr(SnapshotDraft({"summaryText": "secret"}))
