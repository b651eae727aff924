"""Manifests as JSON: what a snapshot shows of the messages it covers, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.errors import StoreError
from enfold.jsontext import dump_text, loads
from enfold.store.records import Edited, Kept, ManifestEntry, Summarized


def manifest_to_json(manifest: tuple[ManifestEntry, ...]) -> str:
    """The manifest as it is stored."""
    return dump_text([_to_json(entry) for entry in manifest])


def manifest_from_json(text: str) -> tuple[ManifestEntry, ...]:
    """The manifest that was stored."""
    return tuple(_from_json(entry) for entry in loads(text))


def _to_json(entry: ManifestEntry) -> dict[str, Any]:
    match entry:
        case Kept(first, last) if first == last:
            return {"message": first}
        case Kept(first, last):
            return {"from": first, "to": last}
        case Edited(edit):
            return {"edit": edit}
        case Summarized(index):
            return {"summary": True if index is None else index}


def _from_json(entry: Mapping[str, Any]) -> ManifestEntry:
    match entry:
        case {"message": id}:
            return Kept(id, id)
        case {"from": first, "to": last}:
            return Kept(first, last)
        case {"edit": edit}:
            return Edited(edit)
        case {"summary": index}:
            return Summarized(None if index is True else index)
    raise StoreError(f"a snapshot's manifest has an entry that is not known: {sorted(entry)}")
