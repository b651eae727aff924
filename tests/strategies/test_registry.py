"""Strategies by name: the built-in ones, and those that other packages bring."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from enfold import settings
from enfold.errors import ConfigError
from enfold.strategies import contract
from tests.conftest import ROOT

PLUGIN = '''
from dataclasses import dataclass
from enfold.condensation import unchanged
from enfold.fields import CamelModel
from enfold.retention import Retention
from enfold.strategies.contract import Capabilities, Estimate, EstimatedCost, Reduction
from enfold.strategies.contract import StrategyKind


class Config(CamelModel):
    """The config of doing nothing."""


@dataclass(frozen=True)
class Idle:
    config: Config
    means: object
    id = "idle"
    retention = Retention("messages", 1)

    def touches(self, plan):
        return ()

    async def condense(self, plan):
        return unchanged(plan, self.id, "idle")

    async def estimate(self, plan, prices=None):
        return Estimate(Reduction(plan.tokens, plan.tokens), EstimatedCost())


KIND = StrategyKind("idle", "Idle", "Does nothing.", Capabilities(lossless=True), Config, Idle)
'''


@pytest.mark.parametrize("name", contract.BUILT_IN)
def test_every_built_in_strategy_describes_itself_and_its_options(name: str) -> None:
    kind = contract.get(name)
    assert kind.id == name
    assert kind.name
    assert kind.description
    assert kind.version.count(".") == 2
    assert kind.capabilities.speed in {"fast", "medium", "slow"}
    assert kind.schema()["type"] == "object"
    assert kind.schema()["title"] == kind.name
    assert kind.read(None) == kind.read({})
    assert kind.faults({"nonsense": 1})[0].path == "nonsense"


def test_capabilities_are_those_of_the_design() -> None:
    smart, truncation = (contract.get(name).capabilities for name in ("smart", "truncation"))
    assert smart.batch
    assert smart.individual
    assert smart.multi_pass
    assert smart.summaries
    assert (truncation.individual, truncation.summaries, truncation.speed) == (True, False, "fast")


def test_an_unknown_name_is_refused_with_a_list_of_known_ones() -> None:
    with pytest.raises(ConfigError, match="'magic'; available: native, "):
        contract.get("magic")


def test_a_strategy_is_registered_at_run_time() -> None:
    mine = replace(contract.get("truncation"), id="mine", name="Mine")
    contract.register(mine)
    try:
        assert contract.get("mine") is mine
        assert contract.names()[: len(contract.BUILT_IN) + 1] == (*contract.BUILT_IN, "mine")
        assert settings.check("strategy", "mine") == ("strategy", "mine")
    finally:
        del contract._registered["mine"]
    with pytest.raises(ConfigError, match="'native' is built in"):
        contract.register(contract.get("native"))


def run(folder: Path, program: str) -> str:
    path = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT / 'src')!r}]; "
    done = subprocess.run(
        [sys.executable, "-c", path + program],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return done.stdout.strip()


def install(folder: Path, points: str, module: str = PLUGIN) -> None:
    (folder / "idle.py").write_text(module)
    info = folder / "idle-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: idle\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[enfold.strategies]\n{points}\n")


def test_another_package_brings_one_through_an_entry_point(tmp_path: Path) -> None:
    install(tmp_path, "idle = idle:KIND\nnative = idle:KIND")
    output = run(
        tmp_path,
        "from enfold.strategies import contract as r; names = r.names(); "
        "print('idle' in sys.modules, names[-1], r.get('idle').description, r.get('native').name)",
    )
    assert output == "False idle Does nothing. Native"
    used = run(
        tmp_path,
        "import enfold; chat = [{'role': 'user', 'content': 'hi'}]; "
        "print(enfold.condense_sync(chat, 'idle').report.warnings)",
    )
    assert used == "('idle',)"


def test_a_strategy_may_condense_while_it_plans(tmp_path: Path) -> None:
    nested = "import enfold; enfold.condense_sync([{'role': 'user', 'content': 'hi'}], 'lossless')"
    plugin = PLUGIN.replace("        return ()", f"        {nested}\n        return ()")
    install(tmp_path, "idle = idle:KIND", plugin)
    made = run(
        tmp_path,
        f"""
import asyncio, enfold
async def main():
    async with enfold.open({f"sqlite:///{tmp_path / 'chats.db'}"!r}) as engine:
        session = await engine.session("chat")
        await session.configure(strategy="idle")
        await session.append(*("a message" for _ in range(9)))
        print((await session.compress()).outcome)
asyncio.run(main())""",
    )
    assert made == "nothing_to_compress"


@pytest.mark.parametrize(
    ("points", "module", "words"),
    [
        ("idle = idle:KIND", "raise OSError('no disk')", "does not load"),
        ("idle = idle:NOTHING", PLUGIN, "does not load"),
        ("idle = idle:Idle", PLUGIN, "is no StrategyKind"),
        ("lazy = idle:KIND", PLUGIN, "is no StrategyKind with the id 'lazy'"),
    ],
    ids=["breaks", "is missing", "is something else", "has another name"],
)
def test_a_strategy_that_does_not_load_is_named(
    tmp_path: Path, points: str, module: str, words: str
) -> None:
    install(tmp_path, points, module)
    name = points.partition(" ")[0]
    output = run(
        tmp_path,
        "from enfold.errors import ConfigError\n"
        "from enfold.strategies import contract\n"
        f"try: contract.get({name!r})\n"
        "except ConfigError as error: print(error)",
    )
    assert words in output
    assert name in output
