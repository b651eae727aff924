"""`enfold verify`: whole stores exit with 0, damaged ones with 1 and the rows."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from tests.cli.conftest import Enfold


def test_a_store_is_verified(festival: Enfold, tmp_path: Path) -> None:
    outcome = festival("verify")
    assert (outcome.code, outcome.text) == (0, "")
    assert "everything is whole" in outcome.stderr_text
    file = sqlite3.connect(tmp_path / "chats.db")
    file.execute("DELETE FROM chat_messages WHERE seq = 5")
    file.commit()
    file.close()
    outcome = festival("verify", "--session", "festival")
    assert outcome.code == 1
    assert "the message before it is missing" in outcome.text
    found = json.loads(festival("verify", "--json").out)
    assert found["ok"] is False
    assert found["problems"][0]["session"] == "festival"
