"""Measure the tests: change one rule at a time in a copy of the package, and see if they fail.

`make mutants` takes a sample of the changes, by a seed, and stops after a time. A mutant that no
test notices is printed with its place; it needs a test, or a reason why it changes nothing. Every
mutant is tried in a child process that has enfold loaded, with the changed code in its function;
processes that a test starts load a changed copy of the package. Tests of PostgreSQL are left out:
they repeat those of SQLite.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
RULES = {
    "budget.py": ("tests/test_budget.py", "tests/engine/test_thresholds.py"),
    "retention.py": ("tests/test_retention.py", "tests/engine/test_requests.py"),
    "pipeline.py": (
        "tests/test_plans.py",
        "tests/engine/test_session.py",
        "tests/engine/test_last_resort.py",
        "tests/test_stateless.py",
        "tests/engine/test_standing_messages.py",
    ),
    "condensation.py": (
        "tests/test_condensation.py",
        "tests/test_acceptance.py",
        "tests/strategies/test_contract.py",
        "tests/strategies/lossless/test_repeats.py",
        "tests/strategies/smart/test_strategy.py",
        "tests/strategies/test_native.py",
        "tests/engine/test_receipts.py",
    ),
    "ledger.py": (
        "tests/test_ledger.py",
        "tests/test_recipes.py",
        "tests/test_references.py",
        "tests/strategies/lossless/test_chains.py",
        "tests/strategies/lossless/test_repeats.py",
    ),
    "history.py": ("tests/test_history.py", "tests/test_retention.py", "tests/test_view.py"),
    "identity.py": ("tests/test_identity.py",),
    "store/tree.py": (
        "tests/store/test_tree.py",
        "tests/store/test_nodes.py",
        "tests/store/test_manifests.py",
        "tests/engine/test_verification.py",
        "tests/server/proxy/test_accounts.py",
    ),
    "store/snapshots.py": (
        "tests/store/test_snapshots.py",
        "tests/store/test_views.py",
        "tests/store/test_manifests.py",
        "tests/engine/test_long_branches.py",
        "tests/engine/test_changes.py",
    ),
    "engine/compression.py": (
        "tests/engine/test_session.py",
        "tests/engine/test_originals.py",
        "tests/engine/test_changes.py",
        "tests/engine/test_profiles.py",
    ),
    "engine/recall.py": ("tests/engine/test_recall.py", "tests/engine/test_excerpts.py"),
    "strategies/truncation.py": (
        "tests/strategies/test_truncation.py",
        "tests/strategies/test_lastresort.py",
    ),
    "strategies/lossless/results.py": (
        "tests/strategies/lossless/test_repeats.py",
        "tests/strategies/lossless/test_obsolete.py",
        "tests/strategies/lossless/test_reencoded_results.py",
        "tests/strategies/lossless/test_strategy.py",
        "tests/strategies/lossless/test_operations.py",
        "tests/strategies/lossless/test_chains.py",
    ),
    "receipt.py": ("tests/receipt", "tests/engine/test_receipts.py"),
    "llm/costs.py": (
        "tests/llm/test_costs.py",
        "tests/llm/test_comparison.py",
        "tests/llm/test_prices.py",
        "tests/llm/test_models.py",
        "tests/engine/test_activity.py",
    ),
    "summaries/fence.py": ("tests/summaries/test_fences.py",),
    "engine/access.py": (
        "tests/engine/test_audit.py",
        "tests/store/test_access.py",
        "tests/server/test_access.py",
    ),
    "server/proxy/turn.py": (
        "tests/server/proxy/test_turn.py",
        "tests/server/proxy/test_summary_request.py",
        "tests/server/proxy/test_stored_items.py",
        "tests/server/proxy/test_recall.py",
        "tests/server/proxy/recall",
        "tests/server/proxy/test_limits.py",
    ),
}
"""Modules with rules, and the tests beside them."""

EXPLAINED = {
    (
        "engine/recall.py",
        "if found and left - overhead < _MIN_PASSAGE:",
    ): "differs only where the space that is left equals the minimum to the token",
    (
        "engine/recall.py",
        "is_early = each.own and len(self._chosen) < _EARLY and self._left >= _MIN_CUT",
    ): "differs only where the space that is left equals the minimum to the token",
    (
        "engine/recall.py",
        "may_fit = len(longer.text) < budget * _MAX_TOKEN_LENGTH",
    ): "saves a count of a text that is too long",
    (
        "engine/recall.py",
        "if tokens <= budget:",
    ): "differs only where a passage takes the space that is left to the token",
    (
        "engine/recall.py",
        "if words >= EXCERPT_WORDS and len(end) - start >= _RESULT_END:",
    ): "differs only where the lines so far have exactly the minimum of words or characters",
    (
        "store/snapshots.py",
        "after=tree.line(db, bottom.key, above) if bottom.depth > above else (),",
    ): "saves a query whose result is empty",
    (
        "store/snapshots.py",
        "newer = tree.line(db, bottom.key, earlier.depth) if bottom.depth > earlier.depth else ()",
    ): "saves a query whose result is empty",
    (
        "store/snapshots.py",
        "if max_tokens is None or bottom.depth - cutoff_depth <= LONGEST_VIEW:",
    ): "of a view of exactly that length nothing is left out",
    (
        "strategies/truncation.py",
        "if config.suppress_if_needed and plan.target is not None and left > plan.target:",
    ): "nothing is cut again where the target is reached",
    (
        "strategies/truncation.py",
        "if count < before:",
    ): "differs only where an edit saves no token",
    (
        "summaries/fence.py",
        'return chr(ord(character) - 0xE0000) if tags else ""',
    ): "a tag is looked for with both values of `tags`",
    (
        "retention.py",
        "if user is not None and user < cut:",
    ): "a message at the cut is in the tail, and the cut stays",
    (
        "store/tree.py",
        "return line(db, bottom.key, start.depth) if bottom.depth > start.depth else ()",
    ): "saves a query whose result is empty",
    (
        "engine/compression.py",
        "covered, cutoff = (at + 1, replaces.cutoff) if at >= covered else (covered, cutoff)",
    ): "a summary of one message ends at that message either way",
    (
        "strategies/truncation.py",
        "if isinstance(call.arguments, str) and len(call.arguments) <= self._shortest_param:",
    ): "saves time only: arguments of just that length are not shortened anyway",
    (
        "receipt.py",
        "if len(items) > _FEW:",
    ): "chooses between two ways to the same answer",
    (
        "engine/recall.py",
        "return self._left < max(_MIN_PASSAGE, _REST * self._limit.tokens)",
    ): "differs only where the space that is left equals the minimum to the token",
    (
        "engine/recall.py",
        "if needed <= self._left or not self._chosen:",
    ): "differs only where a passage takes the space that is left to the token",
    (
        "engine/recall.py",
        "if len(self._chosen) > number:",
    ): "the tokens that are left differ only by the structure between passages",
}
"""Changes that change nothing: module and line, and the reason."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
}


class Mutant(NamedTuple):
    """One change of one module."""

    module: str
    line: int
    change: str
    source: str


def mutants_of(module: str, most: int, chosen: random.Random) -> Iterator[Mutant]:
    """Yield a sample of the mutants of a module."""
    text = (ROOT / "src" / "enfold" / module).read_text("utf-8")
    count = sum(1 for _ in _places(ast.parse(text)))
    for number in chosen.sample(range(count), min(most, count)):
        tree = ast.parse(text)
        node, change = list(_places(tree))[number]
        _mutate(node)
        yield Mutant(module, getattr(node, "lineno", 0), change, ast.unparse(tree))


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in ast.walk(tree) if isinstance(node, kinds))
    visited: set[int] = set()
    bodies = (statement for function in functions for statement in function.body)
    for node in (inner for statement in bodies for inner in ast.walk(statement)):
        if id(node) in visited:
            continue
        visited.add(id(node))
        match node:
            case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
                yield node, f"{type(op).__name__} -> {COMPARISONS[type(op)].__name__}"
            case ast.BoolOp(op=ast.And() | ast.Or()):
                yield node, "and <-> or"
            case ast.BinOp(op=op) if type(op) in OPERATORS:
                yield node, f"{type(op).__name__} -> {OPERATORS[type(op)].__name__}"
            case ast.IfExp() | ast.If():
                yield node, "condition negated"


def _mutate(node: ast.AST) -> None:
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [COMPARISONS[type(op)]()]
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BinOp(op=op):
            node.op = OPERATORS[type(op)]()
        case ast.IfExp(test=test) | ast.If(test=test):
            negated = ast.UnaryOp(ast.Not(), test)
            node.test = ast.fix_missing_locations(ast.copy_location(negated, test))


def load_all(modules: Iterable[str]) -> None:
    """Load the package and the tests' libraries; children load the tests."""
    for point in entry_points(group="pytest11"):
        point.load()
    files = {file for module in modules for test in RULES[module] for file in _test_files(test)}
    for file in sorted(files):
        importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]


def _test_files(test: str) -> Iterable[Path]:
    path = ROOT / test
    return path.rglob("test_*.py") if path.is_dir() else (path,)


def _put_into_place(mutant: Mutant) -> None:
    """Give the functions of the loaded module the code of the mutant."""
    name = ".".join(("enfold", *Path(mutant.module).with_suffix("").parts))
    loaded = importlib.import_module(name.removesuffix(".__init__"))
    _replace_codes(loaded, compile(mutant.source, str(loaded.__file__), "exec"))


def _replace_codes(owner: object, code: CodeType) -> None:
    """Replace the code of every function of a module or class whose code is among the constants."""
    for new in (each for each in code.co_consts if isinstance(each, CodeType)):
        found = inspect.getattr_static(owner, new.co_name, None)
        if inspect.isclass(found):
            _replace_codes(found, new)
            continue
        for attribute in ("fget", "__func__", "func"):  # property, class method, cached property
            found = getattr(found, attribute, None) or found
        function = inspect.unwrap(found) if callable(found) else None
        if inspect.isfunction(function) and function.__code__.co_qualname == new.co_qualname:
            function.__code__ = new


def is_noticed(mutant: Mutant, folder: Path, seconds: float) -> bool:
    """Return True if a test beside the module fails, or does not end in time."""
    file = folder / "enfold" / mutant.module
    original = file.read_text("utf-8")
    file.write_text(mutant.source, "utf-8")
    try:
        child = os.fork()
        if child == 0:
            _run_tests(mutant, folder)
        end = time.monotonic() + seconds
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return True
            time.sleep(0.1)
        _, status = os.waitpid(child, 0)
    finally:
        file.write_text(original, "utf-8")
    return status != 0


def _run_tests(mutant: Mutant, folder: Path) -> None:
    """Run the tests with the mutant, and end the process whatever happens."""
    try:
        _put_into_place(mutant)
        code = int(_tests_code(RULES[mutant.module], folder))
    except BaseException:  # noqa: BLE001 - the child must not go on as the parent
        code = 1
    os._exit(code)


def _tests_code(tests: tuple[str, ...], folder: Path) -> int:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.chdir(ROOT)
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-k", "not postgresql"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are loaded
    return pytest.main([*options, *tests])


def main() -> int:
    """Run a sample and print the share that is noticed; 1 if it is below 95 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=60, help="mutants at most")
    parser.add_argument("--minutes", type=float, default=30, help="time limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--module", action="append", choices=RULES, help="only this module")
    given = parser.parse_args()
    chosen = random.Random(given.seed)  # noqa: S311 - a sample, no secret
    modules = given.module or list(RULES)
    each = max(1, given.sample // len(modules))
    sample = [one for module in modules for one in mutants_of(module, each, chosen)]
    chosen.shuffle(sample)
    end = time.monotonic() + given.minutes * 60
    tried, explained, survivors = 0, 0, list[Mutant]()
    load_all(modules)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shutil.copytree(ROOT / "src" / "enfold", folder / "enfold")
        for module in modules:
            text = (folder / "enfold" / module).read_text("utf-8")
            if is_noticed(Mutant(module, 0, "none", text), folder, 300):
                sys.exit(f"{module}: the tests fail without any change")
        for mutant in sample[: given.sample]:
            if time.monotonic() > end:
                break
            where = f"{mutant.module}:{mutant.line}: {mutant.change}"
            lines = (folder / "enfold" / mutant.module).read_text("utf-8").splitlines()
            reason = EXPLAINED.get((mutant.module, lines[mutant.line - 1].strip()))
            tried += 1
            if is_noticed(mutant, folder, 300):
                print(f"noticed: {where}", flush=True)
            elif reason is not None:
                explained += 1
                print(f"explained: {where}: {reason}", flush=True)
            else:
                survivors.append(mutant)
                print(f"survived: {where}", flush=True)
    share = 1 - len(survivors) / tried if tried else 0.0
    noticed = tried - len(survivors) - explained
    print(f"{noticed} of {tried} mutants noticed, {explained} explained ({share:.0%})")
    return 0 if share >= 0.95 else 1  # noqa: PLR2004 - the share that is asked for


if __name__ == "__main__":
    sys.exit(main())
