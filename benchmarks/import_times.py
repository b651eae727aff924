"""CPU time of imports, without that of the interpreter: `python benchmarks/import_times.py`.

Exits with code 1 if `import enfold` exceeds its limit.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from statistics import median

ROUNDS = 9
LIMIT_MS = 150
STATEMENTS = {
    "import enfold": LIMIT_MS,
    "from enfold import Message": None,
    "import enfold; enfold.count('hello')": None,
    "import enfold.cli": None,
}
"""Limits by statement, in milliseconds; None has no limit."""


def main() -> None:
    """Measure and print every statement."""
    print(f"{'statement':<40} {'CPU ms':>8} {'limit':>8}   (median of {ROUNDS})")
    within = [show(statement, limit) for statement, limit in STATEMENTS.items()]
    sys.exit(0 if all(within) else 1)


def show(statement: str, limit: int | None) -> bool:
    """Print a line; return True if the limit is met."""
    # In turns, so that a busy machine slows both.
    differences = [cpu_ms(statement) - cpu_ms("pass") for _ in range(ROUNDS)]
    taken = median(differences)
    print(f"{statement:<40} {taken:>8.1f} {limit or '':>8}")
    return limit is None or taken <= limit


def cpu_ms(statement: str) -> float:
    """Return the CPU time of a new interpreter that runs the statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
