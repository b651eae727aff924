"""The shape of the code, held by reading its source: layers, libraries, sizes and manners.

A rule takes a module and yields what is wrong with it. Each is run over the whole package, and
over a few lines that break it, so that a rule which no longer sees anything fails too. An
exception to a rule is a row in one of the tables here, with its reason; the tables only shrink.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from enfold.llm.providers import PROVIDERS
from enfold.wire import WIRES
from tests.source import PACKAGE, ROOT, Function, Module, package

LAYERS: tuple[tuple[str, ...], ...] = (
    ("",),  # enfold/__init__.py
    ("adapters", "cli", "langgraph", "library", "server", "testing", "ui"),  # doors
    ("bulk", "chat", "evaluation", "wrap"),
    ("wiring",),
    ("engine", "flush"),
    ("queue",),
    ("pipeline",),
    ("refill",),
    ("llm", "settings", "store", "strategies", "transcripts"),
    ("modelconfig", "report", "standing_instructions", "view"),
    ("summaries", "wire"),
    ("condensation",),
    ("budget", "retention"),
    ("history",),
    ("receipt",),
    ("fields", "identity", "ledger", "records", "sample", "tokens"),
    ("encodings", "events", "text"),
    ("amounts", "jsontext", "messages", "processes"),
    ("errors",),
)
"""Imports point downwards only, and neighbours do not know each other: `store` and `llm`, or two
doors, meet only in what is above them."""

STRANGERS = {"strategies": ("wire", "budget")}
"""Below, and still not to be known: a strategy sees neither a wire nor the trigger."""

STARTS = {"cli.serve": "server", "server.serve": "ui"}
"""A door that starts another and knows nothing else of it: `enfold serve` is the server's, and the
web UI's pages are behind the server's address, its access and its guard."""

PARTS = ("adapters", "bulk", "evaluation", "langgraph", "ui")
"""Parts that the core never imports: each could be a distribution of its own."""
FRONT_ENDS = {
    "cli.condense": "bulk",
    "cli.evaluate": "evaluation",
    "server.serve": "ui",
}
"""Modules that start a part. Commands are loaded by name when they run; the server loads late."""

DOORS = (
    "adapters",
    "bulk",
    "chat",
    "cli",
    "evaluation",
    "langgraph",
    "library",
    "server",
    "ui",
)
"""Units that talk to the engine, never to the store. Its values are in `records`."""

LIBRARIES: dict[str, tuple[str, ...]] = {
    "agents": ("adapters",),
    "aiohappyeyeballs": ("server.proxy.upstream",),
    "brotli": ("server.bodies",),
    "cryptography": ("llm",),
    "ctok": ("tokens",),
    "cyclopts": ("cli",),
    "daft": ("bulk",),
    "fastapi": ("server", "ui.app"),  # the web UI's library is mounted on an application of it
    "genai_prices": ("llm",),
    "httptools": ("server.proxy.upstream",),
    "keyring": ("llm",),
    "langchain_core": (
        "adapters",
        "langgraph",
        "wire",
    ),  # its values are a wire, and a graph's state
    "langchain": ("adapters",),
    "langgraph": ("adapters.langchain", "langgraph"),  # an agent of langchain is a graph
    "llama_index": ("adapters",),
    "markdown_it": ("ui",),
    "mcp": ("adapters",),
    "msgspec": ("jsontext",),
    "nicegui": ("ui",),
    "numpy": ("text.vectors",),
    "platformdirs": ("settings",),
    "procrastinate": ("queue",),
    "psycopg": ("store",),
    "pydantic": ("fields", "server", "settings", "strategies", "llm.profiles"),
    "pydantic_ai": ("adapters", "llm"),  # another framework's history, and calls to models,
    "pygments": ("ui",),
    "rich": ("cli",),
    "splintr": ("tokens",),
    "starlette": ("server",),
    "textual": ("cli",),
    "tiktoken": ("tokens",),
    "toktok": ("tokens",),
    "uvicorn": ("server",),
    "zstandard": ("server.bodies",),
}
"""Where each foreign library is used: as a rule one place, so that it can be replaced there."""

ONLY_LATE = frozenset(
    {
        "brotli",
        "ctok",
        "daft",
        "genai_prices",
        "langchain_core",
        "nicegui",
        "numpy",
        "procrastinate",
        "pydantic_ai",
        "splintr",
        "textual",
        "tiktoken",
        "toktok",
        "zstandard",
    }
)
"""Slow to load, or perhaps not installed: imported where they are used, not with the module."""

AT_HOME = {
    "langchain_core": ("adapters.langchain", "langgraph"),
    "nicegui": ("ui",),
    "textual": ("cli.chat.terminal",),
}
"""Unless the module is a door to that library: whoever opens it has loaded the library already. Or
its classes are made of the library's: then the module itself is loaded late."""
LATE_PLACES = ("cli.chat.terminal", "ui")

BROAD_EXCEPTS = {
    "processes.run_item": "the error is raised where the result is taken",
    "bulk.workers._settle": "a library's fault is raised to the caller that waits for the result",
    "bulk.run._collect": "one conversation of thousands must not cost the others",
    "server.request_log._answer": "an uncaught error becomes an answer with an id, and is logged",
    "queue.shared._hand_over": "a sink is foreign code, and its messages must not be lost",
    "llm.clients._built": "client libraries raise what they like on a wrong setting",
    "llm.gateway._answer": "and on a wrong reply; none of their words may leave with it",
    "llm.gateway._read": "so in a stream",
    "strategies.fallback._answer": "a strategy may be foreign code, and another takes its place",
    "strategies.contract._load": "a strategy may be foreign code, and is named if it does not load",
    "tokens.tokenizers._mapping_errors": "a panic in a Rust library is no Exception",
    "strategies.smart.passes.write": "summarizers of third parties",
}
"""`module.function` -> why it must catch everything. Only an edge may, where others' work ends."""

LONGEST_FUNCTION = 60
KNOW_A_PROVIDER = 8
"""The most modules in which one provider's or dialect's id is written."""
NAMES_THAT_SAY_NOTHING = frozenset(
    {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils", "v2"}
)

MODULES = package()
Rule = Callable[[Module], Iterator[str]]


def imports_point_downwards(module: Module) -> Iterator[str]:
    """Layers, and the strangers among those below."""
    own = _layer(module.unit)
    if own is None:
        yield f"{module.unit} has no layer; give it one in LAYERS"
        return
    for each in module.imports:
        unit = _unit_of(each.target)
        if unit is None or unit == module.unit:
            continue
        layer = _layer(unit)
        if each.late and unit == STARTS.get(module.name):
            continue
        if layer is None or layer <= own or unit in STRANGERS.get(module.unit, ()):
            yield f"line {each.line}: {module.unit or 'enfold'} may not import {each.target}"


def doors_use_the_engine(module: Module) -> Iterator[str]:
    """A door asks the engine; it does not read or write the store itself."""
    if module.unit not in DOORS:
        return
    for each in module.imports:
        if f"{each.target}.".startswith("enfold.store."):
            yield f"line {each.line}: use a method of the engine or a session, not {each.target}"


def the_core_imports_no_part(module: Module) -> Iterator[str]:
    """The core works without the UI, the integrations, the evaluation and bulk runs."""
    if module.unit in PARTS:
        return
    for each in module.imports:
        unit = _unit_of(each.target)
        if unit in PARTS and unit != FRONT_ENDS.get(module.name):
            yield f"line {each.line}: {module.name} may not import {each.target}"


def libraries_have_one_place(module: Module) -> Iterator[str]:
    """Foreign libraries, each where its row says."""
    for each in module.imports:
        if each.is_ours or each.library in sys.stdlib_module_names:
            continue
        places = LIBRARIES.get(each.library, ())
        if not any(module.is_within(place) for place in places):
            yield f"line {each.line}: {each.library} is for {', '.join(places) or 'no module yet'}"


def heavy_libraries_load_late(module: Module) -> Iterator[str]:
    """Slow modules are imported only when they are needed."""
    for each in module.imports:
        at_home = any(module.is_within(door) for door in AT_HOME.get(each.library, ()))
        if each.library in ONLY_LATE and not each.late and not at_home:
            yield f"line {each.line}: import {each.library} inside the function that needs it"
        for place in LATE_PLACES:
            inside = f"{each.target}.".startswith(f"enfold.{place}.")
            if inside and not each.late and not module.is_within(place):
                yield f"line {each.line}: import {place} inside the function that needs it"


def only_settings_read_the_environment(module: Module) -> Iterator[str]:
    """One reader, so that every setting can be found and explained."""
    if module.name == "settings":
        return
    names = {"environ", "environb", "getenv", "getenvb"}
    readers = {f"os.{name}" for name in names}
    for each in module.imports:
        if each.target in readers:
            yield f"line {each.line}: {each.target}"
    for node in module.nodes:
        # Only few nodes are written out as text, which is slow.
        if isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node) in readers:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def sizes_are_small(module: Module) -> Iterator[str]:
    """A function fits on one screen. A module is as long as its subject."""
    for function in module.functions:
        length = _lines(function) - _lines(_docstring(function))
        if length > LONGEST_FUNCTION:
            yield f"line {function.lineno}: {function.name} has {length} lines"


def names_say_something(module: Module) -> Iterator[str]:
    """Modules and classes are called after what they are."""
    classes = (node.name for node in module.nodes if isinstance(node, ast.ClassDef))
    for name in (module.name, *classes):
        if NAMES_THAT_SAY_NOTHING & {word.lower() for word in _words(name)}:
            yield f"{name}: say what it is"


def excepts_are_narrow(module: Module) -> Iterator[str]:
    """A broad except hides unexpected mistakes."""
    broad = {"Exception", "BaseException"}
    for function, handler in _handlers(module):
        caught = {ast.unparse(node) for node in ast.walk(handler.type)} if handler.type else broad
        if caught & broad and f"{module.name}.{function}" not in BROAD_EXCEPTS:
            yield f"line {handler.lineno}: catch what can be handled, by its type"


def only_the_command_line_prints(module: Module) -> Iterator[str]:
    """A library has no terminal."""
    if module.is_within("cli"):
        return
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id="print" | "pprint")):
                yield f"line {node.lineno}: print"


def defaults_cannot_change(module: Module) -> Iterator[str]:
    """A default that is a list or a dictionary is shared by all calls."""
    for function in module.functions:
        arguments = function.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if isinstance(default, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp):
                yield f"line {default.lineno}: {ast.unparse(default)} as a default"


def times_have_a_zone(module: Module) -> Iterator[str]:
    """Times without one have been compared with times that have one before."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in {"utcnow", "utcfromtimestamp"}:
            yield f"line {node.lineno}: {node.attr}"


def everything_public_is_explained(module: Module) -> Iterator[str]:
    """Modules in one sentence first; functions, classes and methods at all."""
    first_line = (ast.get_docstring(module.tree) or "").partition("\n")[0]
    if not first_line.endswith("."):
        yield "the docstring's first line is a sentence with a full stop"
    for definition in module.public_definitions():
        if not ast.get_docstring(definition):
            yield f"line {definition.lineno}: {definition.name} has no docstring"


def nothing_is_left_for_later(module: Module) -> Iterator[str]:
    """Open work belongs in the list of work, not in the code."""
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    if not later.search(module.text):  # to find the comments takes long
        return
    for line, comment in module.comments():
        if later.search(comment):
            yield f"line {line}: {comment}"


RULES: tuple[Rule, ...] = (
    imports_point_downwards,
    doors_use_the_engine,
    the_core_imports_no_part,
    libraries_have_one_place,
    heavy_libraries_load_late,
    only_settings_read_the_environment,
    sizes_are_small,
    names_say_something,
    excepts_are_narrow,
    only_the_command_line_prints,
    defaults_cannot_change,
    times_have_a_zone,
    everything_public_is_explained,
    nothing_is_left_for_later,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule: Rule) -> None:
    wrong = [f"{module.name or 'enfold'}: {what}" for module in MODULES for what in rule(module)]
    assert not wrong, "\n".join((rule.__doc__ or "", *wrong))


@pytest.mark.parametrize(
    ("rule", "module"),
    [
        (imports_point_downwards, Module("budget", "from enfold.engine import Engine")),
        (imports_point_downwards, Module("store.tree", "import enfold.llm.gateway")),
        (imports_point_downwards, Module("llm.costs", "from enfold import store")),
        (imports_point_downwards, Module("cli.count", "from enfold.server import app")),
        (imports_point_downwards, Module("strategies.smart", "from enfold import wire")),
        (imports_point_downwards, Module("history", "from enfold import count")),
        (imports_point_downwards, Module("novelty", "")),
        (doors_use_the_engine, Module("cli.count", "from enfold.store import tree")),
        (the_core_imports_no_part, Module("engine", "def f():\n    import enfold.ui.app")),
        (the_core_imports_no_part, Module("cli.count", "from enfold import bulk")),
        (libraries_have_one_place, Module("engine", "import msgspec")),
        (libraries_have_one_place, Module("engine", "import numpy")),
        (heavy_libraries_load_late, Module("tokens", "import toktok")),
        (heavy_libraries_load_late, Module("tokens", "class A:\n    import toktok")),
        (heavy_libraries_load_late, Module("tokens", "toktok = import_module('toktok')")),
        (heavy_libraries_load_late, Module("cli.chat", "from enfold.cli.chat.terminal import app")),
        (only_settings_read_the_environment, Module("engine", "import os\nos.environ['A']")),
        (only_settings_read_the_environment, Module("engine", "from os import getenv")),
        (sizes_are_small, Module("engine", "def f():\n" + "    pass\n" * LONGEST_FUNCTION)),
        (names_say_something, Module("store.utils", "")),
        (names_say_something, Module("engine", "class SessionManager: ...")),
        (excepts_are_narrow, Module("engine", "try: ...\nexcept: ...")),
        (excepts_are_narrow, Module("engine", "try: ...\nexcept (OSError, Exception): ...")),
        (only_the_command_line_prints, Module("engine", "print('here')")),
        (defaults_cannot_change, Module("engine", "def f(a, *, b=[]): ...")),
        (times_have_a_zone, Module("engine", "datetime.utcnow()")),
        (everything_public_is_explained, Module("engine", '"""no full stop"""')),
        (everything_public_is_explained, Module("engine", '"""It."""\ndef f(): ...')),
        (
            everything_public_is_explained,
            Module("engine", '"""It."""\nclass A:\n    """An A."""\n    def f(self): ...'),
        ),
        (nothing_is_left_for_later, Module("engine", "x = 1  # TODO: two")),
    ],
    ids=lambda value: f"{value.name}: {value.text[:40]!r}" if isinstance(value, Module) else None,
)
def test_the_rule_sees_what_breaks_it(rule: Rule, module: Module) -> None:
    assert list(rule(module))


def test_late_imports_are_late() -> None:
    text = "def f():\n    import toktok\nif TYPE_CHECKING:\n    import splintr"
    assert [each.late for each in Module("tokens", text).imports] == [True, True]


def test_few_modules_know_a_provider_by_its_name() -> None:
    """A provider's id is a value in its wire module and in tables of facts, and nowhere else."""
    names = {*PROVIDERS, *WIRES} - {"compatible"}
    knowing: dict[str, set[str]] = {name: set() for name in names}
    for module in MODULES:
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = node.value.partition(":")[0]
                if name in names:
                    knowing[name].add(module.name)
    assert "wire.openai" in knowing["openai"]
    many = {name: found for name, found in knowing.items() if len(found) > KNOW_A_PROVIDER}
    assert many == {}


def test_tables_hold_nothing_stale() -> None:
    assert set(LIBRARIES) >= ONLY_LATE
    assert {m.name for m in MODULES} >= set(LATE_PLACES)
    functions = {f"{m.name}.{function.name}" for m in MODULES for function in m.functions}
    assert functions >= set(BROAD_EXCEPTS)


HEAVY = frozenset({*LIBRARIES, "asyncio", "sqlite3", "http", "logging", "unittest"})
"""What a program that only imports enfold never pays for."""


@pytest.mark.parametrize(
    ("statement", "may_load"),
    [
        ("import enfold", ()),
        ("from enfold import Message, EnfoldError", ()),
        ("import enfold.history, enfold.budget, enfold.retention", ()),
        ("import enfold.wire", ("msgspec",)),
    ],
)
def test_importing_stays_light(statement: str, may_load: tuple[str, ...]) -> None:
    program = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules)-before)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "enfold" in loaded
    assert not (loaded & HEAVY).difference(may_load)


def test_the_core_loads_without_the_parts() -> None:
    core = [
        f"enfold.{module.name}".rstrip(".")
        for module in MODULES
        if module.unit not in PARTS
        and module.name not in FRONT_ENDS
        and not module.name.endswith("__main__")
    ]
    program = (
        "import sys\n"
        "from importlib import import_module\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *rest):\n"
        f"        if name.startswith({tuple(f'enfold.{part}' for part in PARTS)}):\n"
        "            raise ModuleNotFoundError(f'{name} is not installed', name=name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        f"for name in {core}: import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


PICKED_UP = {"uvloop"}
"""Not imported by us: the web server is faster where it finds it."""


def test_imports_and_declared_dependencies_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    always = {_distribution(each) for each in project["dependencies"]}
    optional = {
        _distribution(each)
        for name in extras
        if name not in {"all", "dev"}
        for each in extras[name]
    }
    homes = packages_distributions()
    libraries = {each.library for module in MODULES for each in module.imports} & homes.keys()
    makers = [{_distribution(name) for name in homes[library]} for library in libraries]
    declared = always | optional | {"enfold"}
    # Several distributions may fill one package, as langgraph's do: the one we ask for is enough.
    assert [found for found in makers if not found & declared] == []
    used = set().union(*makers)
    installed = {_distribution(name) for names in homes.values() for name in names}
    assert (always & installed) - used == PICKED_UP


def _distribution(requirement: str) -> str:
    """The bare name: `psycopg[pool]>=3` is `psycopg`."""
    return re.split(r"[^\w.-]", requirement)[0].replace("_", "-").lower()


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    machine = re.compile(r"/(?:root|work)/\w|[A-Z]:\\Users\\|\b(?:pypi|pythonhosted|npmjs)\.\w{2}")
    wrong = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in _written_files()
        for found in machine.findall(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


def _written_files() -> Iterator[Path]:
    folders = ("src", "tests", "scripts", "benchmarks", "docs", "examples", ".ci")
    kinds = {".json", ".md", ".py", ".sql", ".toml", ".txt", ".yaml"}
    top = (path for path in ROOT.iterdir() if path.is_file())
    deep = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    written = kinds | {"Makefile", "run"}
    yield from (path for path in (*top, *deep) if {path.suffix, path.name} & written)


def _layer(unit: str) -> int | None:
    return next((depth for depth, units in enumerate(LAYERS) if unit in units), None)


def _unit_of(target: str) -> str | None:
    """The unit that an import reaches; names taken from the package itself reach the door ""."""
    library, _, rest = target.partition(".")
    if library != "enfold":
        return None
    unit = rest.partition(".")[0]
    return unit if _layer(unit) is not None or (PACKAGE / unit).is_dir() else ""


def _docstring(function: Function) -> ast.stmt | None:
    """A docstring is no part of a function's length; a command's is its help."""
    return function.body[0] if ast.get_docstring(function) else None


def _lines(node: ast.stmt | None) -> int:
    return 0 if node is None else (node.end_lineno or node.lineno) - node.lineno + 1


def _words(name: str) -> list[str]:
    return re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)


def _handlers(module: Module) -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Every except clause, with the name of the function around it."""
    inside: dict[ast.AST, str] = {}
    for function in module.functions:
        inside.update(dict.fromkeys(ast.walk(function), function.name))
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler):
            yield inside.get(node, ""), node
