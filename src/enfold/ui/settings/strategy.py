"""The strategy section: which one condenses, compared with the others, and its config."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from enfold.engine import Preview
from enfold.errors import ConfigError
from enfold.settings import Settings
from enfold.strategies import configs, contract
from enfold.strategies.contract import Capabilities, Kind
from enfold.ui import figures
from enfold.ui.settings.catalogue import SOURCES
from enfold.ui.settings.forms import Form
from enfold.ui.settings.passes import PassList
from enfold.ui.settings.scope import Scope, card, choose, labelled, session_choices
from enfold.ui.window import Window

MEASURED = (
    "Measured on 3,066,126 tokens of real agents' sessions, with the built-in summarizer, as far "
    "as each goes, on two cores (benchmarks/README.md). Your conversations differ: the preview "
    "below says what holds for one of yours."
)


@dataclass(frozen=True, slots=True)
class Character:
    """A strategy in a few words and figures."""

    kept: str
    lost: str
    asks: str
    reduction: str
    speed: str
    best_for: str


CHARACTERS: Mapping[str, Character] = {
    "native": Character(
        kept="The first and the newest messages word for word, one summary of the rest",
        lost="Wording of what is folded; it stays in the store and can be recalled",
        asks="One call for a summary; none with the built-in summarizer",
        reduction="89 %",
        speed="0.2 million tokens a second, or as long as the model takes",
        best_for="Most conversations. The default",
    ),
    "lossless": Character(
        kept="Everything: repeats become pointers, output is written more tightly",
        lost="Nothing",
        asks="Nobody",
        reduction="18 %",
        speed="0.3 million tokens a second",
        best_for="When every word counts, and agents that read the same files again and again",
    ),
    "truncation": Character(
        kept="What was said, and the beginning of old tool output and parameters",
        lost="The rest of old tool output; it stays in the store and can be recalled",
        asks="Nobody",
        reduction="54 %",
        speed="1.5 million tokens a second",
        best_for="Speed, and sessions that are mostly tool output",
    ),
    "smart": Character(
        kept="What its passes say: first without loss, then shorter output, then a summary",
        lost="What its passes say",
        asks="As often as its passes say; nobody if they do not summarize",
        reduction="84 % with its default passes",
        speed="0.2 million tokens a second, or as long as the model takes",
        best_for="Whoever wants to decide per type of content",
    ),
}
_ROWS: Mapping[str, str] = {
    "kept": "What is kept",
    "lost": "What leaves the view",
    "asks": "Asks a model",
    "reduction": "Tokens gone",
    "speed": "Speed",
    "best_for": "When to use it",
}


def comparison_table() -> None:
    """The strategies side by side."""
    with (
        ui.element("div").classes("st-scroll"),
        labelled(ui.element("table").classes("st-table st-compare"), "Strategies compared"),
    ):
        with ui.element("tr"):
            for title in ("", *(name.capitalize() for name in CHARACTERS)):
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        for field, title in _ROWS.items():
            with ui.element("tr"):
                with ui.element("th").props("scope=row"):
                    ui.label(title)
                for each in CHARACTERS.values():
                    with ui.element("td"):
                        ui.label(getattr(each, field))
    ui.label(MEASURED).classes("ef-soft ef-small")


def traits(able: Capabilities) -> list[str]:
    """What a strategy says of itself, in words."""
    found = {
        "without loss": able.lossless,
        "one summary of many messages": able.batch,
        "messages one by one": able.individual,
        "several passes": able.multi_pass,
        "may ask a model": able.summaries,
    }
    return [*(words for words, holds in found.items() if holds), f"{able.speed}"]


async def preview_card(
    scope: Scope, strategy: str, config: Callable[[], Mapping[str, Any]]
) -> None:
    """A choice of sessions, a button, and what would come of it."""
    choices = await session_choices(scope.window)
    part = labelled(ui.element("section").classes("st-preview ef-stack"), "Preview on a session")
    with part:
        ui.label("Preview on a real session").classes("st-title")
        ui.label(
            "The config as it stands above, tried without asking a model and without changing "
            "anything. What a model would cost is said below."
        ).classes("ef-soft ef-small")
        if not choices:
            ui.label("There is no session yet to try it on.").classes("ef-soft")
            return
        start = scope.session.id if scope.session is not None else next(iter(choices))
        with ui.element("div").classes("ef-row"):
            field = ui.select(choices, value=start, label="Session to try it on")
            field.classes("st-scope").props("outlined dense options-dense")
            button = ui.button("Preview", icon="visibility").props("outline")
        outcome = ui.element("div").props("aria-live=polite").classes("ef-stack")

    async def run() -> None:
        button.disable()
        try:
            session = await scope.window.session(field.value)
            found = await session.preview(strategy=strategy, strategy_config={strategy: config()})
        finally:
            button.enable()
        outcome.clear()
        with outcome:
            _show(found)

    button.on_click(run)


def _show(found: Preview) -> None:
    with ui.element("div").classes("ef-row"):
        figures.count(found.tokens_before, "tokens")
        ui.icon("arrow_forward").props("aria-label=become")
        figures.estimate(
            found.tokens_after, "tokens", "A summary that is not written yet has no exact length."
        ).classes("st-big")
        gone = 1 - found.tokens_after / found.tokens_before if found.tokens_before else 0.0
        ui.label(f"{figures.share_text(gone)} less").classes("ef-good")
    ui.label(
        f"{found.messages:,} messages would be folded or shortened, {found.kept_messages:,} stay. "
        f"Summaries by: {found.author}."
    ).classes("ef-small")
    with ui.element("div").classes("ef-row ef-small"):
        ui.label("Cost:")
        figures.money(found.cost, is_estimate=bool(found.cost), why="By the prices known today.")
    if found.steps:
        with labelled(ui.element("table").classes("st-table"), "Steps"):
            _line("th", ("Step", "Before", "After", "Less"))
            for step in found.steps:
                figures_of = (f"{step.tokens_before:,}", f"{step.tokens_after:,}")
                _line("td", (step.name, *figures_of, figures.share_text(max(0.0, step.reduction))))
    for warning in found.warnings:
        ui.label(warning).classes("ef-small ef-warm ef-wrap")


def _line(cell: str, texts: tuple[str, ...]) -> None:
    with ui.element("tr"):
        for text in texts:
            with ui.element(cell):
                ui.label(text)


PASSES = "passes"
"""The field with an editor of its own, where a strategy has it with the smart strategy's form."""


class Configuring:
    """One strategy's config."""

    def __init__(
        self,
        scope: Scope,
        kind: Kind[Any],
        config: Mapping[str, Any],
        profiles: Mapping[str, str],
        kept: Callable[[], Awaitable[None]],
    ) -> None:
        self._scope = scope
        self._kind = kind
        self._profiles = profiles
        self._kept = kept
        self._config = complete(kind, config)

    async def build(self) -> None:
        """The fields, what is wrong with them, and what can be done."""
        schema = self._kind.schema()
        self._form = Form(self._check, choices={"apiProfile": self._profiles})
        own_editor = (PASSES,) if self._kind.id == "smart" else ()
        with ui.element("div").classes("st-form"):
            self._form.object(schema, self._config, without=own_editor)
        if own_editor:
            PassList(self._form, schema["properties"][PASSES], self._config, self._check).build()
        self._problems = ui.element("div").props("role=status").classes("ef-stack")
        with ui.element("div").classes("ef-row"):
            self._save = ui.button("Save this config", icon="save", on_click=self._keep)
            self._save.props("unelevated")
            reset = ui.button("Back to the defaults", icon="undo", on_click=self._reset)
            reset.props("flat")
            for button in (self._save, reset):
                button.set_enabled(self._scope.may_change)
        await preview_card(self._scope, self._kind.id, lambda: self._config)
        self._check()

    def _check(self) -> None:
        """What the engine says of the config as it stands."""
        faults = self._kind.faults(self._config)
        rest = self._form.show(faults)
        self._problems.clear()
        with self._problems:
            for fault in rest:
                ui.label(str(fault)).classes("ef-bad ef-small ef-wrap")
        self._save.set_enabled(not faults and self._scope.may_change)

    async def _keep(self) -> None:
        await self._scope.set_config(self._kind.id, self._config)
        ui.notify("Kept. It applies from the next compression on.", type="positive")
        await self._kept()

    async def _reset(self) -> None:
        await self._scope.set_config(self._kind.id, None)
        ui.notify("The config is inherited again.", type="positive")
        await self._kept()


def complete(kind: Kind[Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with everything that it leaves to the defaults; as it is, if it is broken."""
    try:
        found: dict[str, Any] = configs.write(kind.read(config))
    except ConfigError:
        return deepcopy(dict(config))
    return deepcopy(found)


async def strategy(window: Window) -> None:
    """The section."""
    await Strategies(window).build()


class Strategies:
    """The strategies to choose from, and the form of one of them."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._scope = Scope(window)
        self._edited: str | None = None

    async def build(self) -> None:
        """Put everything on the page, then fill it."""
        chooser = ui.element("div")
        with card("Strategy", "How a view is condensed once that is due."):
            self._source = ui.element("div").classes("ef-row")
            self._choices = labelled(ui.element("div").classes("st-choices"), "Strategies")
            with ui.expansion("Compare the strategies", icon="table_chart").classes("st-advanced"):
                comparison_table()
        self._config = card("Config", "What can be set of the strategy that is chosen above.")
        with self._config:
            self._form = ui.element("div").classes("ef-stack")
        with chooser:
            await choose(self._window, self._follow)

    async def _follow(self, scope: Scope) -> None:
        self._scope = scope
        self._edited = None
        await self._refresh()

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        self._edited = self._edited or settings.strategy
        self._choices.clear()
        with self._choices:
            for name in contract.names():
                self._choice(name, settings)
        self._tell_source(settings)
        await self._show_form(settings)

    def _tell_source(self, settings: Settings) -> None:
        self._source.clear()
        source = settings.sources["strategy"]
        with self._source:
            ui.label(f"In use: {settings.strategy}").classes("st-title")
            ui.label(f"from: {SOURCES[source]}").classes("st-source")
            if settings.preset is not None:
                ui.label(f"preset {settings.preset}").classes("st-badge")
                if settings.sources["preset"] == self._scope.level and self._scope.may_change:
                    drop = ui.button("Drop the preset", icon="undo", on_click=self._drop_preset)
                    drop.props("flat dense")
            if source == self._scope.level and self._scope.may_change:
                reset = ui.button("Reset", icon="undo", on_click=lambda: self._use(None))
                labelled(reset.props("flat dense"), "Reset the strategy")

    def _choice(self, name: str, settings: Settings) -> None:
        in_use, edited = settings.strategy == name, self._edited == name
        classes = "st-choice" + (" st-chosen" if edited else "")
        try:
            kind: Kind[Any] | None = contract.get(name)
            about = kind.description if kind is not None else ""
        except ConfigError as error:
            kind, about = None, str(error)
        with labelled(ui.element("article").classes(classes), kind.name if kind else name):
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name if kind else name).classes("st-title")
                if in_use:
                    ui.label("in use").classes("st-badge st-own")
            ui.label(about).classes("ef-small ef-wrap")
            if kind is None:
                return
            known = CHARACTERS.get(name)
            words = known.best_for if known else ", ".join(traits(kind.capabilities))
            ui.label(words).classes("ef-soft ef-small ef-wrap")
            with ui.element("div").classes("ef-row"):
                if not in_use:
                    use = ui.button("Use", on_click=lambda: self._use(name)).props("outline dense")
                    labelled(use, f"Use {kind.name}").set_enabled(self._scope.may_change)
                edit = ui.button("Configure", on_click=lambda: self._edit(name)).props("flat dense")
                labelled(edit, f"Configure {kind.name}")

    async def _use(self, name: str | None) -> None:
        await self._scope.set("strategy", name)
        self._edited = name
        await self._refresh()

    async def _drop_preset(self) -> None:
        await self._scope.set("preset", None)
        self._edited = None
        await self._refresh()

    async def _edit(self, name: str) -> None:
        self._edited = name
        await self._refresh()

    async def _show_form(self, settings: Settings) -> None:
        name = self._edited or settings.strategy
        self._form.clear()
        listed = await self._window.engine.profiles.all()
        profiles = {each.name: each.name for each in listed}
        with self._form:
            try:
                kind = contract.get(name)
            except ConfigError as error:
                ui.label(str(error)).classes("ef-bad ef-wrap")
                return
            own = (await self._scope.own()).get("strategy_config", {})
            config = settings.strategy_config.get(name, {})
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name).classes("st-title")
                ui.label(_origin(name, own, config, self._scope)).classes("st-source")
            await Configuring(self._scope, kind, config, profiles, self._refresh).build()


def _origin(name: str, own: dict[str, Any], config: Any, scope: Scope) -> str:
    """Where a strategy's config comes from."""
    if name in own:
        return f"from: {SOURCES[scope.level]}"
    return "from: another level" if config else "from: default"
