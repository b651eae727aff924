"""`enfold profiles`: added, listed, tried out, given keys and removed; no key is ever shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import enfold
from enfold.jsontext import dumps, loads
from enfold.llm.providers import PROVIDERS
from tests.cli.conftest import Enfold

KEY = "sk-very-secret-7f3a"
WORK = ["--provider", "openai", "--model", "gpt-4o"]


class _ChatServer(BaseHTTPRequestHandler):
    """Answers every chat with one word; the bearer of the wrong key is turned away."""

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "tiny", "max_model_len": 2_048}]})

    answers = 0
    """Number of answers since the server began."""

    def do_POST(self) -> None:
        request = loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {KEY}":
            self._answer(401, {"error": {"message": f"no: {self.headers['authorization']}"}})
            return
        kind, part = (
            ("chat.completion.chunk", "delta")
            if request.get("stream")
            else (
                "chat.completion",
                "message",
            )
        )
        choice = {
            "index": 0,
            "finish_reason": "stop",
            part: {"role": "assistant", "content": "ready"},
        }
        value = {
            "id": "1",
            "object": kind,
            "created": 1,
            "model": "tiny-2",
            "choices": [choice],
            "usage": {"prompt_tokens": 1_200, "completion_tokens": 3, "total_tokens": 1_203},
        }
        type(self).answers += 1
        self._answer(200, value, stream=bool(request.get("stream")))

    def _answer(self, status: int, value: Any, *, stream: bool = False) -> None:
        body = b"data: " + dumps(value) + b"\n\ndata: [DONE]\n\n" if stream else dumps(value)
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the API keys of the environment."""
    for provider in PROVIDERS.values():
        for name in provider.key_variables:
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[str]:
    """The base URL of a model on this machine."""
    _ChatServer.answers = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), _ChatServer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        listening.shutdown()
        thread.join()


def test_a_profile_is_added_shown_and_listed_with_its_prices(stored: Enfold) -> None:
    assert stored("profiles").text.startswith("0 profiles\n")
    outcome = stored("profiles", "add", "work", *WORK, "--threshold", "80")
    assert (
        "limits of openai:gpt-4o: 111,616 tokens in, 16,384 out, by default" in outcome.stderr_text
    )
    assert "OPENAI_API_KEY is not set" in outcome.stderr_text
    assert "profiles test work" in outcome.stderr_text
    shown = stored("profiles", "show", "work").json
    assert {name: value for name, value in shown.items() if value not in (None, {}, [], "")} == {
        "name": "work",
        "fields": {"provider": "openai", "model": "gpt-4o", "threshold": 80},
        "provider": "openai",
        "model": "gpt-4o",
        "threshold": 80,
        "prices": {"input": 2.5, "output": 10, "cache_writes": None, "cache_reads": 1.25},
    }
    _, head, row = stored("profiles", "list").text.splitlines()
    assert head.split() == [
        *("profile", "model", "key", "condensed", "by", "threshold", "input", "output")
    ]
    assert "env:OPENAI_API_KEY  gpt-4o-mini   80 %       $2.50 / 1M  $10.00 / 1M" in row


def test_every_field_of_a_profile_has_an_option(stored: Enfold, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Only decisions.")
    stored("profiles", "add", "cheap", *WORK)
    options = ["--base-url", "https://here.example/", "--option", "api_version=2024-10-21"]
    options += ["--key", "env:MY_KEY", "--condensing-profile", "cheap", "--threshold", "-1"]
    options += ["--prompt", str(prompt), "--setting", "keep_first=2", "--input-price", "1.5"]
    add = ["profiles", "add", "big", "--provider", "azure", "--model", "mine"]
    (made,) = stored(*add, *options, "--json").json
    assert (made.pop("fault"), made.pop("fields")["model"]) == ("", "mine")
    assert made == {
        "name": "big",
        "provider": "azure",
        "model": "mine",
        "base_url": "https://here.example/",
        "options": {"api_version": "2024-10-21"},
        "key": "env:MY_KEY",
        "prices": {"input": 1.5, "output": None, "cache_writes": None, "cache_reads": None},
        "threshold": -1,
        "prompt": "Only decisions.",
        "condensing_profile": "cheap",
        "settings": {"keep_first": 2},
        "notes": [],
    }
    row = stored("profiles").text.splitlines()[2]
    assert "inherited" in row
    assert row.split()[-4:] == ["$1.50", "/", "1M", "unknown"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--provider", "acme", "--model", "m"], ["provider: no provider 'acme'"]),
        (["--provider", "compatible", "--model", "m"], ["base_url: compatible needs"]),
        ([*WORK, "--threshold", "4"], ["threshold: 4 is neither a share"]),
        ([*WORK, "--option", "region"], ["--option: expected name=value"]),
        ([*WORK, "--setting", "colour=red"], ["settings: no setting 'colour'"]),
        ([*WORK, "--condensing-profile", "gone"], ["there is no profile 'gone'"]),
        ([*WORK, "--key", KEY], ["key: expected env:NAME, file:PATH, stored or memory"]),
        ([*WORK, "--input-price", "-1"], ["prices.input: expected 0 or more, found -1"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_name_the_fault_and_repeat_no_key(
    options: list[str], words: list[str], stored: Enfold
) -> None:
    outcome = stored("profiles", "add", "work", *options)
    outcome.refused(*words)
    assert KEY not in outcome.stderr_text
    assert stored("profiles", "--json").json == []


def test_a_profile_is_replaced_only_on_request(stored: Enfold) -> None:
    stored("profiles", "add", "work", *WORK)
    stored("profiles", "add", "work", *WORK).refused("there is a profile 'work' already")
    other = ["--provider", "google", "--model", "gemini-2.5-pro", "--replace", "--json"]
    (now,) = stored("profiles", "add", "work", *other).json
    assert now["provider"] == "google"


def test_a_model_is_tried_out(stored: Enfold, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    where = ["--provider", "compatible", "--model", "tiny", "--base-url", server]
    added = stored("profiles", "add", "mine", *where, "--key", "env:MY_KEY")
    assert "1,024 tokens in, 1,024 out, from the provider\n" in added.stderr_text
    outcome = stored("profiles", "test", "mine")
    assert outcome.text.startswith("tiny-2 answered in ")
    assert outcome.text.endswith("; 1,200 tokens in, 3 out; cost: unknown\n")
    prices = ["--input-price", "1", "--output-price", "2", "--replace"]
    stored("profiles", "add", "mine", *where, "--key", "env:MY_KEY", *prices)
    tried = stored("profiles", "test", "mine", "--json").json
    assert tried["cost"] == pytest.approx(1_206 / 1e6)
    monkeypatch.setenv("MY_KEY", f"{KEY}-wrong")
    refused = stored("profiles", "test", "mine")
    refused.refused("compatible:tiny does not accept the key", code=5)
    assert KEY not in refused.stderr_text


def test_a_key_is_stored_encrypted_used_and_shown_nowhere(
    stored: Enfold, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    where = ["--provider", "compatible", "--model", "tiny", "--base-url", server]
    stored("profiles", "add", "mine", *where)
    without = stored("profiles", "set-key", "mine", stdin=KEY.encode())
    without.refused("set ENFOLD_SECRET_KEY", "keyring")
    assert KEY not in without.stderr_text
    monkeypatch.setenv("ENFOLD_SECRET_KEY", "correct horse battery staple")
    done = stored("profiles", "set-key", "mine", stdin=f"{KEY}\n".encode())
    assert (done.code, done.out) == (0, b"")
    assert stored("profiles", "test", "mine").code == 0
    shown = stored("profiles", "show", "mine")
    assert shown.json["key"] == "stored"
    listed = stored("profiles", "--json")
    everything = (done.err, shown.out, listed.out, *map(Path.read_bytes, tmp_path.iterdir()))
    assert not any(KEY.encode() in data for data in everything)
    monkeypatch.setenv("ENFOLD_SECRET_KEY", "another secret altogether")
    stored("profiles", "test", "mine").refused("profile 'mine': the stored key cannot be opened")


@pytest.mark.parametrize("given", [b"", b"two words", b"\xff"], ids=["nothing", "words", "bytes"])
def test_an_invalid_key_is_not_stored(
    given: bytes, stored: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENFOLD_SECRET_KEY", "correct horse battery staple")
    stored("profiles", "add", "work", *WORK)
    assert stored("profiles", "set-key", "work", stdin=given).code == 2
    assert stored("profiles", "show", "work").json["key"] is None
    stored("profiles", "set-key", "gone", stdin=KEY.encode()).refused("no profile 'gone'")


def test_the_prompt_is_shown_before_it_is_used(stored: Enfold, tmp_path: Path) -> None:
    usual = stored("profiles", "prompt", "--json").json
    assert "## Unresolved Questions" in usual["system"]
    assert "the messages to be summarized" in usual["user"]
    file = tmp_path / "prompt.txt"
    file.write_text("Only decisions.\n\n{conversation_history}\n\nNothing else.")
    stored("profiles", "add", "work", *WORK, "--prompt", str(file))
    prompt = stored("profiles", "prompt", "work", "--json").json
    assert prompt["user"].startswith("Only decisions.\n")
    assert prompt["user"].endswith("Nothing else.")
    stored("settings", "set", "prompt", "Of all.")
    assert stored("profiles", "prompt", "--json").json["user"].startswith("Of all.\n")
    assert stored("profiles", "prompt", "work", "--json").json == prompt
    assert stored("profiles", "prompt", "work").text.startswith("system:\n\n")
    stored("profiles", "prompt", "gone").refused("no profile 'gone'; available: work")


def test_a_profile_that_condenses_for_others_is_removed_only_by_force(stored: Enfold) -> None:
    stored("profiles", "add", "cheap", *WORK)
    stored("profiles", "add", "work", *WORK, "--condensing-profile", "cheap")
    stored("profiles", "delete", "cheap").refused("'cheap' condenses for work")
    assert stored("profiles", "delete", "cheap", "--force").code == 0
    (left,) = stored("profiles", "--json").json
    assert left["name"] == "work"
    stored("profiles", "delete", "cheap").refused("no profile 'cheap'")


def test_the_costs_of_profiles_are_compared(stored: Enfold) -> None:
    assert stored("profiles", "compare", "--json").json == []
    for name, model in (("large", "gpt-4o"), ("small", "gpt-4o-mini")):
        stored("profiles", "add", name, "--provider", "openai", "--model", model)
    stored("settings", "set", "summarizer", "large")
    found = stored("profiles", "compare", "--input-tokens", "50000", "--json").json
    costs = {each["profile"]: each for each in found}
    assert costs["large"]["is_current"] is True
    assert costs["large"]["cost"] == pytest.approx(50_000 * 2.5e-6 + 2_000 * 10e-6)
    assert costs["small"]["saved_share"] == pytest.approx(0.94, abs=0.005)
    shown = stored("profiles", "compare")
    assert b"large (in use)" in shown.out
    assert "less than large. Only costs are compared" in shown.stderr_text


def _add(stored: Enfold, server: str, *options: str) -> None:
    where = ["--provider", "compatible", "--model", "tiny", "--base-url", server]
    assert stored("profiles", "add", "mine", *where, "--key", "env:MY_KEY", *options).code == 0


def test_a_file_is_condensed_as_in_sessions_with_the_profile(
    stored: Enfold, server: str, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    _add(stored, server, "--input-price", "1", "--output-price", "2")
    result = stored("condense", sample, "--profile", "mine", "--json").json
    assert "ready" in dumps(result["messages"][1]).decode()
    billed = _ChatServer.answers * (1_200 * 1 + 3 * 2) / 1_000_000  # by the usage that it reports
    assert result["report"]["cost"] == pytest.approx(billed, rel=0.05)
    assert billed > 0
    assert enfold.restore(result["messages"], result["ledger"]) == loads(sample.read_bytes())


def test_many_files_are_too(
    stored: Enfold, server: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    _add(stored, server)
    options = ["--profile", "mine", "--out", f"{tmp_path / 'smaller'}/", "--jobs", "1"]
    assert stored("condense", sample, *options).code == 0
    assert b"ready" in (tmp_path / "smaller" / sample.name).read_bytes()


def test_when_the_model_fails_nothing_is_written(
    stored: Enfold, server: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", f"{KEY}-wrong")
    _add(stored, server)
    out = tmp_path / "small.json"
    outcome = stored("condense", sample, "--profile", "mine", "--out", out)
    outcome.refused("No valid API handler available", "does not accept the key", code=4)
    assert KEY not in outcome.stderr_text
    assert not out.exists()
    stored("condense", sample, "--profile", "gone").refused("no profile 'gone'; available: mine")
