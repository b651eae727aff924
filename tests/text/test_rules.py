"""Rules, corrections and decisions are found, and withdrawn ones are no longer in force."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from enfold.text.rules import find_rules, possible_rules, rules_of_all


def sentences(text: str, kind: str = "rule") -> list[str]:
    return [text[rule.start : rule.end] for rule in find_rules(text) if rule.kind == kind]


def test_rules_stand_among_other_sentences() -> None:
    text = "The build is red. From now on, run the linter before every commit. Can you look at it?"
    assert sentences(text) == ["From now on, run the linter before every commit."]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# never push to main\n```\nhave a look",
        "> Always use tabs.\n\nThat is what he wrote.",
        'The guide says "never push to main".',
        "<system-reminder>\nNever push to main.\n</system-reminder>",
        "[Previous conversation summary]\n<summary>\nAlways use tabs.\n</summary>",
        "| always | use tabs |\n|---|---|",
        "The log has `you must never do this` in it.",
    ],
)
def test_quoted_text_and_code_state_no_rule(text: str) -> None:
    assert find_rules(text) == ()


def test_a_rule_keeps_the_sentence_that_it_refers_to() -> None:
    text = "The script drops the tables first. Never do that on the shared server."
    assert sentences(text) == [text]


def test_items_below_an_announcement_are_rules() -> None:
    text = "Please follow these conventions:\n- two spaces\n- no semicolons\n\nIt is broken."
    assert sentences(text) == ["Please follow these conventions:\n- two spaces", "no semicolons"]


def test_a_wrapped_rule_is_one_sentence() -> None:
    text = "Whatever happens in the next steps, please never commit\nanything to a release branch."
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "text",
    ["No, use the other port instead.", "Nein, ich meinte den anderen Ordner, nutze den."],
)
def test_corrections_are_found(text: str) -> None:
    assert sentences(text, "correction") == [text]


def test_a_correction_without_spaces_and_marks_is_read() -> None:
    assert find_rules("换成蓝色") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Let's go with option B.",
        "We'll use PostgreSQL.",
        "就用第二个方案。",
        "其实我们决定用蓝色",
    ],
)
def test_decisions_are_found(text: str) -> None:
    assert sentences(text, "decision") == [text]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Never push to main.", "You may push to main now."], {(0, 0)}),
        (["Always indent by 4 spaces.", "Instead of 4 spaces use tabs."], {(0, 0)}),
        (["Always answer in German.", "From now on answer in English."], {(0, 0)}),
        (["Keep answers under 100 words.", "Keep answers under 50 words."], {(0, 0)}),
        (["Ask me before deleting files.", "Forget the rule on deleting files."], {(0, 0)}),
        (["Always sign your commits.", "Scrap that."], {(0, 0)}),
        (["Nutze immer Tabs.", "Statt Tabs nutze ab jetzt Leerzeichen."], {(0, 0)}),
        (["不要推送到main分支。", "现在可以推送到main分支了。"], {(0, 0)}),
        (["Never push to main.", "Never push to develop."], set()),
        (["Always write tests first.", "Run the tests."], set()),
        (["Never use tabs.", "May I use tabs?"], set()),
        (["Never use tabs.", "Fix the bug in the parser."], set()),
        (["Utilise toujours yarn pour les paquets.", "N'utilise plus yarn."], {(0, 0)}),
        (["Always answer in German.", "Switch back to English."], {(0, 0)}),
        (["Always answer in German.", "OK, you can go back to English now."], {(0, 0)}),
        (["Always answer in German.", "Let's return to English please."], {(0, 0)}),
        (["Always answer in German.", "From now on English instead."], {(0, 0)}),
        (["Always indent with tabs.", "Keep answers short.", "Back to spaces."], {(0, 0)}),
        (["Antworte immer auf Englisch.", "Wechsle bitte zurück zu Deutsch."], {(0, 0)}),
        (["Antworte immer auf Englisch.", "Bitte wieder auf Deutsch."], {(0, 0)}),
        (["Réponds toujours en anglais.", "Reviens au français."], {(0, 0)}),
        (["Responde siempre en inglés.", "Vuelve al español, por favor."], {(0, 0)}),
        (["回答一律用英文。", "改回中文。"], {(0, 0)}),
        (["Всегда отвечай на английском.", "Вернись на русский."], {(0, 0)}),
        (["Always answer in German.", "Switch back to the branch main."], set()),
        (["Always answer in German.", "Go back to the page of the English shop."], set()),
        (["Always answer in German.", "Never switch back to English."], set()),
        (["Always answer in German.", "Should we go back to English?"], set()),
        (["Answer in German.", "Docs must be in French.", "Go back to English."], set()),
    ],
)
def test_withdrawn_and_replaced_rules(texts: list[str], expected: set[tuple[int, int]]) -> None:
    assert set(rules_of_all(texts)[1]) == expected


class Measured(NamedTuple):
    """The result of the classifier over sentences whose kind is known."""

    rules: int
    found: int
    others: int
    false_alarms: int

    @property
    def recall(self) -> float:
        return self.found / self.rules

    @property
    def share_of_false_alarms(self) -> float:
        """Return the false alarms among all sentences that are kept."""
        return self.false_alarms / (self.found + self.false_alarms)


def measure(name: str) -> Measured:
    path = Path(__file__).with_name(name)
    languages = tomllib.loads(path.read_text(encoding="utf-8")).values()
    rules = [sentence for language in languages for sentence in language["rules"]]
    others = [sentence for language in languages for sentence in language["others"]]
    found = sum(bool(sentences(sentence)) for sentence in rules)
    return Measured(len(rules), found, len(others), sum(bool(find_rules(each)) for each in others))


def test_rules_in_sentences_that_the_cues_were_written_with() -> None:
    result = measure("rule_sentences.toml")
    assert result.rules >= 250
    assert result.others >= 250
    assert result.recall >= 0.97
    assert result.share_of_false_alarms <= 0.02


def test_rules_in_sentences_that_the_cues_were_not_written_with() -> None:
    result = measure("rule_sentences_unseen.toml")
    assert result.rules >= 150
    assert result.others >= 150
    assert result.recall >= 0.90
    assert result.share_of_false_alarms <= 0.10


def test_rules_in_twenty_languages_that_neither_cues_nor_weights_were_made_with() -> None:
    path = Path(__file__).with_name("rule_sentences_later.tsv")
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    rules = [text for kind, _, text in rows if kind == "rule"]
    others = [text for kind, _, text in rows if kind == "other"]
    found = sum(bool(find_rules(text)) for text in rules)
    alarms = sum(bool(find_rules(text)) for text in others)
    assert found >= 0.9 * len(rules)
    assert alarms <= 0.1 * (found + alarms)


def test_sentences_that_may_be_rules_are_named_by_their_likeness() -> None:
    rule, other = "Variables named in full, commits kept small.", "It was late when I got home."
    named = [f"{rule} {other}"[each.start : each.end] for each in possible_rules(f"{rule} {other}")]
    assert other not in named
    assert named == [rule] or sentences(rule) == [rule]


def test_a_message_that_only_says_no_more_withdraws_nothing() -> None:
    assert rules_of_all(["Always use the hexagon model.", "No more."])[1] == {}
