"""Generated requests over all routes of the API and the proxy: no answer is a 500, nothing is lost.

    python -m tests.generated_requests [--requests 10000] [--seed 1]

The requests of the API follow its description, valid and invalid ones; those of the proxy are
bodies of every wire with random fields. A session that no request names must stay the same.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from enfold.engine.verification import verify
from enfold.store import open_store
from tests.server.processes import serve
from tests.server.test_schema import schema

CANARY = "a session that nobody names"
PROXIED = (
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/v1/messages/count_tokens",
    "/v1beta/models/gemini-x:generateContent",
    "/v1/models",
)
_TEXT = st.text(max_size=40)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_ROLE = st.sampled_from(["user", "assistant", "system", "tool", "developer", "model"]) | _TEXT
_MESSAGE = st.fixed_dictionaries(
    {"role": _ROLE, "content": _TEXT | _VALUE}, optional={"parts": _VALUE, "type": _TEXT}
)
_BODY = st.fixed_dictionaries(
    {"model": st.just("x") | _VALUE},
    optional={
        "messages": st.lists(_MESSAGE | _VALUE, max_size=5),
        "input": st.lists(_MESSAGE, max_size=3) | _VALUE,
        "contents": st.lists(_MESSAGE, max_size=3) | _VALUE,
        "system": _VALUE,
        "tools": _VALUE,
        "max_tokens": _VALUE,
        "stream": _VALUE,
    },
)


_CHANGED = 6
"""Requests with one odd value each that are made of a generated one."""
_ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 0.5, 1e308, "", "\x00", "\ud800", "x" * 5_000, [], {}),
    *([None], {"": None}, [[[]]], {"id": {}}, "null", [{"role": "user"}], "../..", "9" * 40),
)


def main() -> int:
    """Send the requests; return 1 if one was answered with a 500 or something is lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given_arguments = parser.parse_args()
    # A provider that cannot be reached: the proxy answers 503 where it would forward.
    names = ("OPENAI", "ANTHROPIC", "GEMINI")
    nowhere = {f"ENFOLD_{name}_BASE_URL": "http://127.0.0.1:9" for name in names}
    with tempfile.TemporaryDirectory(prefix="enfold-requests-") as folder:
        path = Path(folder) / "chats.db"
        with serve(path, "--no-ui", **nowhere) as process:
            before = prepare(process.address)
            statuses = send(process.address, given_arguments.requests, given_arguments.seed)
            after = httpx.get(
                f"{process.address}/api/sessions/{CANARY}/messages", timeout=600
            ).json()
        found = asyncio.run(_verified(f"sqlite:///{path}"))
    failed = statuses[int(HTTPStatus.INTERNAL_SERVER_ERROR)]
    listed = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
    sys.stdout.write(
        f"{statuses.total():,} requests ({listed}); {failed} answers are a 500; the messages are "
        f"{'the same' if before == after else 'LOST'}; {found} problems in the store\n"
    )
    return 1 if failed or before != after or found else 0


async def _verified(url: str) -> int:
    async with await open_store(url) as store:
        return len((await verify(store)).problems)


def prepare(address: str) -> Any:
    """Store the session that no request names; return its messages."""
    _store(address, CANARY)
    return httpx.get(f"{address}/api/sessions/{CANARY}/messages", timeout=600).json()


def _store(address: str, name: str) -> None:
    """Store a session with messages if there is none of this name."""
    if httpx.post(f"{address}/api/sessions", json={"id": name}, timeout=600).is_success:
        messages = [{"role": "user", "content": f"message {n}"} for n in range(50)]
        httpx.post(
            f"{address}/api/sessions/{name}/messages", json={"messages": messages}, timeout=600
        )


def send(address: str, number: int, start: int) -> Counter[int]:
    """Send that many requests, about as many to each operation; return the statuses.

    Most requests to the API name a session, a message and other things that exist.
    """
    found: Iterable[Any] = schema.get_all_operations()
    operations = [result.ok() for result in found]
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=address, timeout=600) as client, requests.Session() as session:
        while statuses.total() < number:
            left = number - statuses.total()
            each = -(-left // (len(operations) + len(PROXIED)))
            drawn = -(-each // (_CHANGED + 2))
            for operation in operations:
                call = partial(_call, address, session, _existing(address), statuses)
                valid = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
                _run(valid, drawn, start, call)
                with contextlib.suppress(Unsatisfiable):  # an operation without invalid requests
                    invalid = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
                    _run(invalid, drawn // 2, start, call)
            for path in PROXIED:
                _run(_BODY, each, start, partial(_proxy, client, path, statuses))
            start += 1
            sys.stderr.write(f"{statuses.total():,} requests are answered\n")
    return statuses


def _existing(address: str) -> dict[str, list[str]]:
    """Return the names of things that exist, by the parameter of a path."""
    for name in ("festival", "fair"):
        _store(address, name)
    fields = {"provider": "openai", "model": "gpt-4o"}
    httpx.put(f"{address}/api/profiles/main", json={"fields": fields}, timeout=600)
    listed = httpx.get(f"{address}/api/sessions/festival/messages", timeout=600).json()
    summaries = httpx.get(f"{address}/api/sessions/festival/summaries", timeout=600).json()
    return {
        "session": ["festival", "fair"],
        "message": [each["id"] for each in listed["messages"]],
        "summary": [each["id"] for each in summaries],
        "model": ["gpt-4o"],
        "profile": ["main"],
    }


def _run(
    values: st.SearchStrategy[Any], number: int, start: int, work: Callable[[Any], None]
) -> None:
    """Call the function with generated values."""

    @seed(start)
    @settings(
        max_examples=max(1, number),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(values)
    def run(value: Any) -> None:
        work(value)

    run()


def _call(
    address: str,
    session: requests.Session,
    existing: dict[str, list[str]],
    statuses: Counter[int],
    case: Any,
) -> None:
    """Send a request, then with names of things that exist, then with odd values in its body.

    To generate one takes longer than to answer ten, so each is sent in several forms.
    """
    _send(address, session, case, statuses)
    number = statuses.total()
    for name in case.path_parameters or ():
        if names := existing.get(name):
            case.path_parameters[name] = names[number % len(names)]
    _send(address, session, case, statuses)
    if isinstance(case.body, dict) and case.body:
        whole = case.body
        for step in range(_CHANGED):
            field = sorted(whole)[(number + step) % len(whole)]
            case.body = {**whole, field: _ODD[(number + step) % len(_ODD)]}
            _send(address, session, case, statuses)


def _send(address: str, session: requests.Session, case: Any, statuses: Counter[int]) -> None:
    answer = case.call(base_url=address, session=session, timeout=600)
    _count(answer.status_code, f"{case.method} {case.path}", answer.text, statuses)


def _proxy(client: httpx.Client, path: str, statuses: Counter[int], body: Any) -> None:
    headers = {"authorization": "Bearer k", "content-type": "application/json"}
    answer = client.post(path, content=json.dumps(body), headers=headers)
    _count(answer.status_code, path, answer.text, statuses)


def _count(status: int, route: str, text: str, statuses: Counter[int]) -> None:
    statuses[status] += 1
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        sys.stderr.write(f"500: {route}: {text[:300]}\n")


if __name__ == "__main__":
    sys.exit(main())
