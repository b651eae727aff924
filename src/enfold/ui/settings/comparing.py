"""Comparing strategies: what each keeps, costs and is for, in words and in measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nicegui import ui

from enfold.strategies.contract import Capabilities
from enfold.ui.settings.labels import labelled

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
