"""Sessions for tests of the UI, put on a server through its API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx


class Api:
    """The server's API, for what a test needs to be there."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=f"{address}/api", timeout=300)

    def close(self) -> None:
        self._client.close()

    def session(self, id: str, *messages: dict[str, Any], **fields: Any) -> str:
        """A session with these messages; its path in the UI."""
        self._ask("POST", "/sessions", {"id": id, **fields})
        if messages:
            self.append(id, *messages)
        return f"/s/{quote(id, safe='')}"

    def append(self, id: str, *messages: dict[str, Any]) -> None:
        self._ask("POST", f"/sessions/{quote(id, safe='')}/messages", {"messages": messages})

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "/sessions")["sessions"]
        return found

    def messages(self, id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", f"/sessions/{quote(id, safe='')}/messages")[
            "messages"
        ]
        return found

    def set(self, **values: Any) -> None:
        self._ask("PATCH", "/settings", {"settings": values})

    def model(self, id: str, **fields: Any) -> None:
        self._ask("PATCH", f"/models/{id}", fields)

    def profile(self, name: str, **fields: Any) -> None:
        self._ask("PUT", f"/profiles/{name}", {"fields": fields})

    def profiles(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "/profiles")
        return found

    def delete_profile(self, name: str) -> None:
        self._ask("DELETE", f"/profiles/{name}?force=true")

    def compress(self, id: str, **options: Any) -> dict[str, Any]:
        done: dict[str, Any] = self._ask("POST", f"/sessions/{id}/compress", options)
        return done

    def prepare_and_fail(self, id: str, **settings: Any) -> None:
        """Ask for the view of a session that must be compressed and cannot be."""
        body = {"pending": "And now?", "settings": settings}
        assert self._client.post(f"/sessions/{id}/prepare", json=body).status_code == 409

    def prepare(self, id: str, **settings: Any) -> dict[str, Any]:
        """Ask for the view of a session, compressed first if that is due."""
        body = {"pending": "And now?", "settings": settings}
        prepared: dict[str, Any] = self._ask("POST", f"/sessions/{id}/prepare", body)
        return prepared

    def summaries(self, id: str) -> list[dict[str, Any]]:
        """Newest first."""
        found: list[dict[str, Any]] = self._ask("GET", f"/sessions/{id}/summaries")
        return found

    def audited(self, id: str) -> list[tuple[str, int]]:
        """Return the actions in a session and their outcomes, oldest first."""
        found = self._ask("GET", "/audit?limit=200")
        done = [(each["action"], each["status"]) for each in found if each["session"] == id]
        return done[::-1]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def talk(turns: int, words: int = 20) -> list[dict[str, Any]]:
    """Return a number of questions and answers."""
    return [
        message
        for turn in range(turns)
        for message in (
            user(f"Question {turn}: " + "alpha " * words),
            assistant(f"Answer {turn}: " + "beta " * words),
        )
    ]
