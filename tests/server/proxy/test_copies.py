"""Markers that a model copies into a call are found in every form, and warned of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from enfold.server.proxy.assembly import MARKER_COPIED, tools_with_marker
from enfold.server.proxy.recorder import RecordedResponse
from enfold.strategies.shortened_text import SUPPRESSED
from enfold.wire import WIRES
from tests.server.proxy.stage import Stage, stage
from tests.server.proxy.voices import TALKERS, Say, Use, long_history, script

JSON = [(b"content-type", b"application/json")]


def _response(arguments: str, *, ascii_only: bool = False) -> RecordedResponse:
    call = {"type": "function_call", "name": "write", "call_id": "c", "arguments": arguments}
    body = {"id": "r", "status": "completed", "output": [call]}
    raw = json.dumps(body, ensure_ascii=ascii_only).encode()
    return RecordedResponse(WIRES["openai-responses"], JSON, [raw[:30], raw[30:]])


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (SUPPRESSED, ("write",)),
        ("before ⟨ ... truncated, 3 of 9 lines ⟩ after", ("write",)),
        ("⟨ Reference: See message #3 for read notes.md ⟩", ("write",)),
        ("⟨x|y⟩ and ⟨ no end", ()),
        ("nothing odd, 27e8 neither", ()),
    ],
)
def test_markers_in_arguments_are_found(
    text: str, names: tuple[str, ...], ascii_only: bool
) -> None:
    inner = json.dumps({"file": {"lines": ["a", text]}}, ensure_ascii=ascii_only)
    assert tools_with_marker(_response(inner, ascii_only=ascii_only)) == names


def test_arguments_that_are_no_json_are_looked_at_too() -> None:
    assert tools_with_marker(_response(f"*** patch {SUPPRESSED}")) == ("write",)


@pytest.mark.parametrize("form", TALKERS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
async def test_clients_are_warned_in_a_header_and_operators_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str, stream: bool
) -> None:
    copy = Use("c1", "lookup", {"what": f"the text {SUPPRESSED}"})
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as on:
        talker = TALKERS[form](on.address)
        long_history(talker)
        talker.ask("Write it down")
        on.provider.script = script([Say("Yes."), copy])
        reply = await talker.hear(stream=stream)
        await talker.close()
        assert reply.calls[0][1:] == ("lookup", copy.arguments)
        warning = await _warning(on, form, talker.history[:-1]) if not stream else None
    assert stream or warning == MARKER_COPIED
    assert "a marker in the arguments of lookup" in caplog.text
    assert SUPPRESSED not in caplog.text


async def _warning(on: Stage, form: str, history: list[Any]) -> str | None:
    """Return the warning of the same request; client libraries hide headers."""
    path = on.provider.paths[-1]
    on.provider.script = script([Use("c1", "lookup", {"what": SUPPRESSED})])
    credentials = {key: on.provider.headers[-1].get(key) for key in ("authorization", "x-api-key")}
    keys = {**credentials, "x-goog-api-key": on.provider.headers[-1].get("x-goog-api-key")}
    headers = {key: value for key, value in keys.items() if value is not None}
    sent = json.loads(on.provider.bodies[-1])
    field = {"openai-responses": "input", "gemini": "contents"}.get(form, "messages")
    sent[field] = [each if isinstance(each, dict) else each.to_json_dict() for each in history]
    async with httpx.AsyncClient(base_url=on.address, headers=headers, timeout=60) as client:
        reply = await client.post(path, json=sent)
    warning: str | None = reply.headers.get("x-enfold-warning")
    return warning
