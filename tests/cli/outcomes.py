"""The outcome of a command: its exit code and its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from enfold.jsontext import loads


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output, standard error."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Standard output."""
        return self.out.decode()

    @property
    def stderr_text(self) -> str:
        """Standard error."""
        return self.err.decode()

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value on one line."""
        assert self.code == 0, self.stderr_text
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1
        return loads(self.out)

    def refused(self, *words: str, code: int = 2) -> None:
        """It ended with one line for a person that has these words, and with nothing else."""
        assert self.code == code, self
        assert self.out == b""
        assert self.stderr_text.startswith("enfold: ")
        assert self.stderr_text.endswith("\n")
        assert self.stderr_text.count("\n") == 1
        missing = [word for word in words if word not in self.stderr_text]
        assert not missing, self.stderr_text
