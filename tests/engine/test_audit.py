"""Audit: actions are remembered for as long as the settings say."""

from __future__ import annotations

import logging

import pytest

from enfold.records import AuditDraft
from enfold.store import Database, access
from tests.engine.conftest import Bench

DAY = 24 * 60 * 60 * 1_000


def _written(db: Database, days_ago: int, number: int) -> None:
    for index in range(number):
        db.change(
            "insert_audit",
            now=db.now() - days_ago * DAY,
            actor="ann",
            namespace="",
            action=f"{days_ago} days ago, {index}",
            status=200,
            request_id="",
            session=None,
            counts="{}",
        )


async def _actions(bench: Bench) -> list[str]:
    found = await bench.engine.store.read(access.logged, "", limit=100)
    return [entry.action for entry in found]


async def test_a_new_entry_deletes_entries_that_are_too_old(bench: Bench) -> None:
    for days in (500, 401, 399):
        await bench.engine.store.write(_written, days, 2)
    await bench.engine.access.log(AuditDraft("ann", "", "now", 200, "id"))
    assert await _actions(bench) == ["now", "399 days ago, 1", "399 days ago, 0"]


async def test_the_setting_says_how_old_that_is(bench: Bench) -> None:
    await bench.engine.store.write(_written, 10, 1)
    await bench.engine.set("audit_days", 11)
    await bench.engine.access.log(AuditDraft("ann", "", "first", 200, "id"))
    assert await _actions(bench) == ["first", "10 days ago, 0"]
    await bench.engine.set("audit_days", 9)
    await bench.engine.access.log(AuditDraft("ann", "", "second", 200, "id"))
    assert await _actions(bench) == ["second", "first"]


async def test_much_that_is_old_goes_bit_by_bit(bench: Bench) -> None:
    await bench.engine.store.write(_written, 500, 50)
    lengths = []
    for _ in range(3):
        await bench.engine.access.log(AuditDraft("ann", "", "now", 200, "id"))
        lengths.append(len(await _actions(bench)))
    assert lengths == [31, 12, 3]


async def test_a_log_that_cannot_be_written_is_reported(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.engine.store.close()
    with caplog.at_level(logging.ERROR, "enfold.engine"):
        await bench.engine.access.log(AuditDraft("ann", "", "now", 200, "id"))
    assert "the audit log could not be written" in caplog.text
