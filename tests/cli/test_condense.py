"""`enfold condense`: smaller, in the same dialect and shape, with a ledger; or nothing at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from enfold import wire
from enfold.jsontext import dumps, loads
from enfold.messages import Conversation
from enfold.sample import sample_messages
from tests.cli.conftest import Enfold

TALK = "We talk about nothing in particular and go on for a while. " * 8

REPORT = [
    "strategy",
    "tokens_before",
    "tokens_after",
    "reduction",
    "seconds",
    "cost",
    "saved",
    "operations",
    "steps",
    "warnings",
]


def test_the_conversation_goes_to_stdout_and_the_report_to_stderr(
    enfold: Enfold, sample: Path
) -> None:
    outcome = enfold("condense", sample)
    assert len(outcome.json) < len(loads(sample.read_bytes()))
    assert "ative strategy:\n" in outcome.stderr_text
    assert "Total reduction: " in outcome.stderr_text
    assert "restorable" not in outcome.stderr_text
    assert "--ledger FILE keeps one" in outcome.stderr_text


def test_a_dry_run_shows_the_expected_size_and_cost(enfold: Enfold, sample: Path) -> None:
    expected = enfold("condense", sample, "--dry-run", "--json").json
    done = enfold("condense", sample, "--json").json["report"]
    assert expected["tokens_before"] == done["tokens_before"]
    assert done["tokens_after"] <= expected["tokens_after"]
    assert expected["cost"] == 0
    outcome = enfold("condense", sample, "--dry-run")
    assert "would condense" in outcome.text
    assert "no cost" in outcome.text
    assert "fits" in enfold("condense", sample, "--dry-run", "--window", "900000").text


def test_an_empty_strategy_is_refused(enfold: Enfold, sample: Path) -> None:
    enfold("condense", sample, "--strategy", "").refused("no strategy ''")


def test_the_json_is_as_agreed(enfold: Enfold, sample: Path) -> None:
    outcome = enfold("condense", sample, "--json")
    assert outcome.err == b""
    result = outcome.json
    assert list(result) == ["messages", "report", "ledger", "receipt"]
    report = result["report"]
    assert list(report) == REPORT
    assert report["strategy"] == "native"
    assert 0 < report["tokens_after"] < report["tokens_before"]
    assert report["reduction"] == pytest.approx(
        1 - report["tokens_after"] / report["tokens_before"]
    )
    assert all(
        list(step) == ["name", "tokens_before", "tokens_after", "reduction"]
        for step in report["steps"]
    )
    assert result["ledger"]["version"] == 1
    counted = enfold("count", "--json", stdin=dumps(result["messages"])).json
    assert counted["total"] == report["tokens_after"]


def test_a_request_body_stays_one(enfold: Enfold) -> None:
    messages = wire.render(Conversation(sample_messages(1)), "openai")
    tools = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
    body = {"model": "gpt-4o", "temperature": 0.5, "messages": messages, "tools": tools}
    condensed = enfold("condense", stdin=dumps(body)).json
    assert list(condensed) == list(body)
    assert {**condensed, "messages": None} == {**body, "messages": None}
    assert len(condensed["messages"]) < len(messages)


@pytest.mark.parametrize("option", ["--target", "--window"])
def test_a_goal_is_reached(option: str, enfold: Enfold, sample: Path) -> None:
    report = enfold("condense", sample, option, "5000", "--json").json["report"]
    assert report["tokens_before"] > 5000 > report["tokens_after"]


def test_the_newest_tokens_can_be_kept(enfold: Enfold, sample: Path) -> None:
    def kept(tokens: int) -> int:
        condensed = enfold("condense", sample, "--keep-tokens", str(tokens)).json
        return sum(message in loads(sample.read_bytes()) for message in condensed)

    assert kept(200) < kept(4000)


def test_a_strategy_has_a_config(enfold: Enfold, sample: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(b'{"keepLast": 9, "keepFirst": 0}')
    kept = enfold("condense", sample, "--config", config).json
    assert kept[-9:] == loads(sample.read_bytes())[-9:]
    assert kept[0] != loads(sample.read_bytes())[0]


def test_results_go_into_files(enfold: Enfold, sample: Path, tmp_path: Path) -> None:
    out, ledger = tmp_path / "small.json", tmp_path / "chat.ledger"
    outcome = enfold("condense", sample, "-o", out, "--ledger", ledger)
    assert (outcome.code, outcome.out) == (0, b"")
    assert out.read_bytes() == enfold("condense", sample).out
    assert loads(ledger.read_bytes()) == enfold("condense", sample, "--json").json["ledger"]


def test_the_file_itself_can_be_replaced(enfold: Enfold, sample: Path, tmp_path: Path) -> None:
    expected = enfold("condense", sample).out
    outcome = enfold("condense", sample, "--out", sample, "--ledger", tmp_path / "ledger")
    assert outcome.code == 0
    assert sample.read_bytes() == expected


FAILURES: dict[str, tuple[str, list[str]]] = {
    "no strategy": ("{sample} {files} --strategy lossy", ["no strategy 'lossy'", "native"]),
    "no tokenizer": ("{sample} {files} --tokenizer gpt", ["no tokenizer 'gpt'"]),
    "no dialect": ("{sample} {files} --dialect latin", ["no dialect 'latin'"]),
    "no target": ("{sample} {files} --target -5", ["target is -5"]),
    "no window": ("{sample} {files} --window 0", ["window is 0"]),
    "less than nothing kept": ("{sample} {files} --keep-tokens -1", ["-1"]),
    "no config": ("{sample} {files} --config {folder}/none", ["none: cannot be read"]),
    "a broken config": ("{sample} {files} --config {folder}/broken.json", ["line 1, column 3"]),
    "no object": ("{sample} {files} --config {folder}/array.json", ["array.json: expected an obj"]),
    "a wrong field": (
        "{sample} {files} --config {folder}/field.json",
        ["native", "colour", "style"],
    ),
    "broken": ("{folder}/broken.json {files}", ["broken.json line 1, column 3"]),
    "several": ("{folder}/two.jsonl {files}", ["two.jsonl: several conversations"]),
    "no folder": ("{sample} --ledger {folder}/l --out {folder}/no/x", ["no/x: cannot be written"]),
    "a folder": ("{sample} --out {folder}/o --ledger {folder}", ["Is a directory"]),
    "one file": ("{sample} --out {folder}/o --ledger {folder}/o", ["two results"]),
    "only a ledger": ("{sample} --ledger {folder}/no/x", ["no/x: cannot be written"]),
}


@pytest.mark.parametrize(("arguments", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_writes_nothing(
    arguments: str, words: list[str], enfold: Enfold, sample: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_bytes(b"[{")
    (tmp_path / "array.json").write_bytes(b"[]")
    (tmp_path / "field.json").write_bytes(b'{"colour": "red"}')
    (tmp_path / "two.jsonl").write_bytes(b'{"messages":[]}\n{"messages":[]}\n')
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    files = f"--out {tmp_path}/out.json --ledger {tmp_path}/ledger.json"
    outcome = enfold(
        "condense", *arguments.format(sample=sample, folder=tmp_path, files=files).split()
    )
    outcome.refused(*words)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_short_conversation_comes_back_with_a_warning(enfold: Enfold) -> None:
    chat = b'[{"role":"user","content":"hi"}]'
    outcome = enfold("condense", stdin=chat)
    assert outcome.out == chat + b"\n"
    assert "Warning: " in outcome.stderr_text
    assert enfold("condense", "--json", stdin=chat).json["report"]["warnings"]


class _SummaryServer(BaseHTTPRequestHandler):
    """Summarizes every conversation in the same words."""

    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        words = "The festival in Lindvik is on 12 June 2027; they go on with the stage."
        piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
        choice = {"index": 0, "delta": {"role": "assistant", "content": words}}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for chunk in (
            {**piece, "choices": [choice]},
            {**piece, "choices": [end]},
            {**piece, "choices": [], "usage": usage},
        ):
            self.wfile.write(b"data: " + dumps(chunk) + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def profile(stored: Enfold, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Enfold]:
    """The command line with a profile `mine`, whose model is on this machine and has a price."""
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Write as I say.")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    _SummaryServer.bodies.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _SummaryServer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{listening.server_port}/v1"
        model = ["--provider", "openai", "--model", "gpt-4o", "--base-url", address]
        words = ["profiles", "add", "mine", *model, "--prompt", prompt]
        added = stored(*words)
        assert added.code == 0, added.stderr_text
        yield stored
        listening.shutdown()
        thread.join()


CHATS = [
    [
        {"role": "user" if turn % 2 == 0 else "assistant", "content": f"{name} {turn}. " + TALK}
        for turn in range(20)
    ]
    for name in ("first", "second")
]


def test_the_models_of_a_profile_write_the_summaries(profile: Enfold) -> None:
    result = profile("condense", "--profile", "mine", "--json", stdin=dumps(CHATS[0])).json
    assert "The festival in Lindvik" in dumps(result["messages"]).decode()
    assert result["report"]["cost"] > 0
    assert result["report"]["saved"] > 0
    assert b"Write as I say." in _SummaryServer.bodies[0]


def test_profiles_condense_many_files(profile: Enfold, tmp_path: Path) -> None:
    chats = tmp_path / "chats.jsonl"
    chats.write_bytes(b"".join(dumps(chat) + b"\n" for chat in CHATS))
    out = f"{tmp_path}/out/"
    assert profile("condense", chats, "--profile", "mine", "--out", out).code == 0
    lines = (tmp_path / "out/chats.jsonl").read_text().splitlines()
    assert ["The festival in Lindvik" in line for line in lines] == [True, True]


def test_a_profile_must_be_there(stored: Enfold) -> None:
    outcome = stored("condense", "--profile", "none", stdin=dumps(CHATS[0]))
    outcome.refused("no profile 'none'")
