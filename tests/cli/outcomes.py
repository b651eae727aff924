"""What came of a command: its exit code and what it wrote."""

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
    def said(self) -> str:
        """Standard error."""
        return self.err.decode()

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value on one line."""
        assert self.code == 0, self.said
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1
        return loads(self.out)

    def refused(self, *words: str, code: int = 2) -> None:
        """It ended with one line for a person that has these words, and with nothing else."""
        assert self.code == code, self
        assert self.out == b""
        assert self.said.startswith("enfold: ")
        assert self.said.endswith("\n")
        assert self.said.count("\n") == 1
        missing = [word for word in words if word not in self.said]
        assert not missing, self.said
