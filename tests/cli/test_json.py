"""`--json` prints a result as the API writes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import enfold as package
from enfold.server import create_app
from tests.cli.conftest import Enfold
from tests.server.conftest import client_of

SAME = {
    "sessions": ("/api/sessions", "sessions"),
    "sessions status festival": ("/api/sessions/festival/status", None),
    "sessions summaries festival": ("/api/sessions/festival/summaries", None),
    "sessions pins festival": ("/api/sessions/festival/pins", None),
    "sessions compress festival --dry-run": ("POST /api/sessions/festival/preview", None),
    "search Lindvik": ("/api/search?q=Lindvik", None),
    "models gpt-4o": ("/api/models?q=gpt-4o", None),
    "profiles": ("/api/profiles", None),
    "presets": ("/api/presets", None),
    "settings": ("/api/settings", None),
}


async def _answer(route: str) -> Any:
    method, _, path = route.rpartition(" ")
    async with package.open() as engine, client_of(create_app(engine)) as client:
        answer = await client.request(method or "GET", path, json={} if method else None)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.mark.parametrize("command", SAME)
def test_a_command_prints_what_the_api_answers(command: str, festival: Enfold) -> None:
    festival("profiles", "add", "work", "--provider", "openai", "--model", "gpt-4o")
    festival("sessions", "compress", "festival")
    festival("sessions", "pin", "festival", "1")
    route, field = SAME[command]
    answer = asyncio.run(_answer(route))
    printed = festival(*command.split(), "--json").json
    assert printed
    assert printed == (answer if field is None else answer[field])
