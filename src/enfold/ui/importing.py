"""Importing: a transcript that is dropped on the list becomes sessions, or says why it cannot."""

from __future__ import annotations

import asyncio

from nicegui import events, ui

from enfold.engine.transfer import import_transcript
from enfold.errors import EnfoldError, InputError
from enfold.store.sessions import check_name
from enfold.transcripts import Transcript, read
from enfold.ui import failures
from enfold.ui.window import Window, path_of
from enfold.wording import number

LARGEST = 60 * 2**20
"""Bytes of a file; what is larger is for `enfold import`."""


def import_field(window: Window) -> None:
    """The place where a file can be dropped, or chosen."""

    async def take(event: events.UploadEventArguments) -> None:
        try:
            found = await asyncio.to_thread(_read, await event.file.read())
            names = [await _store(window, transcript) for transcript in found]
        except EnfoldError as error:
            failures.tell(f"{event.file.name}: {error}")
        else:
            ui.notify(f"{number(len(names), 'conversation')} imported", type="positive")
            ui.navigate.to(path_of(names[0]))
        finally:
            field.reset()

    def refuse() -> None:
        failures.tell(
            f"One file at a time, of at most {LARGEST // 2**20} MB; `enfold import` takes more."
        )

    field = ui.upload(
        label="Drop a transcript here", auto_upload=True, max_file_size=LARGEST, on_upload=take
    )
    field.on_rejected(refuse).classes("ef-import").props("flat hide-upload-btn")
    field.props["aria-label"] = "Import a transcript"


def _read(content: bytes) -> list[Transcript]:
    """Every conversation of the file, before the first of them is stored."""
    found = list(read(content))
    if not found:
        raise InputError("there is no conversation in this file")
    for transcript in found:
        check_name("session", transcript.id)
    return found


async def _store(window: Window, transcript: Transcript) -> str:
    async with window.doing("import session", transcript.id):
        stored = await import_transcript(window.engine, transcript, namespace=window.namespace)
    return stored.id
