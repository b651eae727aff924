"""What importing costs, in CPU time beside a bare interpreter: `python benchmarks/importing.py`.

Ends with exit code 1 when `import enfold` takes more than its limit.
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
"""Statement -> the most it may take, where that is promised."""


def main() -> None:
    """Measure and show every statement."""
    print(f"{'statement':<40} {'CPU ms':>8} {'limit':>8}   (median of {ROUNDS})")
    within = [show(statement, limit) for statement, limit in STATEMENTS.items()]
    sys.exit(0 if all(within) else 1)


def show(statement: str, limit: int | None) -> bool:
    """One line; whether it is within its limit."""
    # In turns, so that a busy machine slows both.
    differences = [cpu_ms(statement) - cpu_ms("pass") for _ in range(ROUNDS)]
    taken = median(differences)
    print(f"{statement:<40} {taken:>8.1f} {limit or '':>8}")
    return limit is None or taken <= limit


def cpu_ms(statement: str) -> float:
    """CPU time of a new interpreter that runs the statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
