"""Inventions: items of a summary that its input has in no form."""

from __future__ import annotations

import pytest

from enfold.text.inventions import SourceText, find_inventions

SOURCE = SourceText(
    [
        (
            "On 2026-05-07 at 14:30 the build of src/app/parser.py took 1,705 ms; see commit "
            "4be91d7c02aa91f3 and https://example.com/docs/a. MAX_ATTEMPTS is 3, share 0.45."
        ),
        "cd /home/anna/project && pytest tests/test_parser.py",
        "Anna wrote: please never push to main before the nightly build has passed, it hurts us.",
        "The price is twenty five Euro and 12,000 units are planned. Version v2.3.1 is out.",
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "The parser (app/parser.py, parser.py) took 1705 ms, that is 1 705 ms.",
        "Commit 4be91d7 is on example.com/docs/a.",
        "On 7 May 2026, at 2:30 pm, maxAttempts was 3.",
        "May 7: 45 % of 12k units at 25 Euro; version 2.3.1.",
        "See /home/anna/project/tests/test_parser.py:42 and ./src/app/parser.py.",
        'She asked to "never push to main before the nightly build has passed".',
        'She said "never push … before the nightly build has passed, it hurts us".',
        "She asked to 'never push to main before the nightly build has passed'.",
        "The users' builds and the testers' notes: `cd`, `pytest` and `never push`.",
        'The button "Save all" was pressed; 7 files and 12 tests are left.',
        'Sie sagte: "Bitte niemals auf den Hauptzweig schieben, bevor alles grün ist".',
    ],
)
def test_an_honest_form_is_no_invention(text: str) -> None:
    assert find_inventions(text, SOURCE) == ()


@pytest.mark.parametrize(
    ("text", "kind", "item"),
    [
        ("It is in src/app/lexer.py.", "path", "src/app/lexer.py"),
        ("It is in lib/app/parser.py.", "path", "lib/app/parser.py"),
        ("The build took 1,706 ms.", "number", "1,706 ms"),
        ("The build took 170 ms.", "number", "170 ms"),
        ("There are 4711 of them.", "number", "4711"),
        ("See commit 4be91d8.", "identifier", "4be91d8"),
        ("MAX_RETRIES is 3.", "identifier", "MAX_RETRIES"),
        ("On 2026-05-08 it ran.", "date", "2026-05-08"),
        ("It ran at 15:30.", "date", "15:30"),
        ("It calls parser.tokenise_all.", "identifier", "parser.tokenise_all"),
        ('She said: "always push straight to main after lunch".', "quotation", "always push"),
        ('She wrote: "push “straight” to main, always, after lunch".', "quotation", "after lunch"),
        ('She wrote: “push "straight" to main, always, after lunch”.', "quotation", "after lunch"),
        ("Sie schrieb: „push always »straight« to main after lunch“", "quotation", "after lunch"),
        ('She wrote: "keep going,” not push to main after lunch".', "quotation", "after lunch"),
        ("It ignores .prettierignore.", "identifier", ".prettierignore"),
        ("The id is 73lp7a0.", "identifier", "73lp7a0"),
        ("It ran with date=2026-05-08,… and passed.", "date", "2026-05-08"),
        ("The build took 19 hours.", "number", "19 hours"),
        ("It closes #45.", "identifier", "#45"),
        ("She wrote 'push straight to main and don't wait for lunch'.", "quotation", "lunch"),
        ("She wrote ‘push straight to main and don’t wait for lunch’.", "quotation", "lunch"),
        ("The price is 25k Euro.", "number", "25k"),
        ("They ran `kubectl rollout`, then `pytest`.", "identifier", "kubectl"),
    ],
)
def test_an_invention_is_found(text: str, kind: str, item: str) -> None:
    found = find_inventions(text, SOURCE)
    assert {each for each, _ in found} == {kind}
    assert item in found[0][1]


@pytest.mark.parametrize(
    ("source", "is_known"),
    [
        ("The error is in line 351 of the parser.", False),
        ("The request took 351 ms.", True),
        ("timeout_ms = 351", True),
        ("It took 351 milliseconds in all.", True),
    ],
)
def test_a_number_is_compared_with_its_unit(source: str, is_known: bool) -> None:
    found = find_inventions("Latency fell to 351 ms.", SourceText([source]))
    assert (found == ()) == is_known


def test_a_quotation_of_frequent_words_is_no_quotation_of_the_source() -> None:
    source = SourceText(["I want to find some new shoes. Simple things are interesting to me."])
    made_up = 'She said: "I want to find some simple and interesting activities."'
    assert [kind for kind, _ in find_inventions(made_up, source)] == ["quotation"]
    assert find_inventions('She said: "I want to find some new shoes."', source) == ()


@pytest.mark.parametrize(
    "quotation",
    [
        "   - Removed the duplicate timestamp functions from the lexer",
        "[2023-05-02] Obviously I do not know how to bake bread at home",
    ],
)
def test_a_quotation_that_begins_with_a_bullet_or_brackets_is_examined(quotation: str) -> None:
    found = find_inventions(f'Anna wrote: "{quotation}"', SOURCE)
    assert ("quotation", quotation) in found


def test_a_quotation_in_another_language_than_summary_and_source_is_invented() -> None:
    source = SourceText(["今天我们讨论了新的预算和下个月的计划。大家都同意先修复登录页面。"])
    text = '今天我们讨论了新的预算和下个月的计划。 He said: "I have never watched this show at all"'
    assert [kind for kind, _ in find_inventions(text, source)] == ["quotation"]
    other = '今天我们讨论了新的预算。"大家都反对先修复支付页面和下个月的预算"'
    assert [kind for kind, _ in find_inventions(other, source)] == ["quotation"]


@pytest.mark.parametrize("invented", ["2017-10-27", "#96"])
def test_a_year_and_a_number_must_be_in_the_input_themselves(invented: str) -> None:
    source = SourceText(["On October 27 we met; ticket #1965 is open since 2019-03-04."])
    assert [item for _, item in find_inventions(f"It was {invented}.", source)] == [invented]
    assert find_inventions("It was 2019-10-27, and #1965.", source) == ()


@pytest.mark.parametrize("source", ["see PR 45 in main", "pull/45", "GH-45", "Bug: 45."])
def test_a_ticket_is_a_number_with_a_label(source: str) -> None:
    assert find_inventions("It closes #45.", SourceText([source])) == ()
    assert find_inventions("It closes #45.", SourceText(["It has 45 tests."])) != ()


def test_a_short_quotation_in_chinese_is_examined() -> None:
    source = SourceText(["安娜说不要把代码推送到主分支。先运行测试再删除旧的备份。"])
    honest = "安娜说“先运行测试”。"
    invented = "安娜说“先删除主分支”。"
    assert find_inventions(honest, source) == ()
    assert [kind for kind, _ in find_inventions(invented, source)] == ["quotation"]


def test_an_item_is_found_in_any_part_of_a_long_source() -> None:
    texts = [f"Message {number} is about nothing. {'word ' * 2_000}" for number in range(60)]
    texts[30] = "Ticket ABC-1234 is open, and 98765 rows “are” left."
    source = SourceText(iter(texts))
    summary = "ABC-1234 is open, 98765 rows are left; ABC-1235 and 4321 came later."
    assert source.literal({"ABC-1234", "98765", "4321", '"are"'}) == {"ABC-1234", "98765", '"are"'}
    assert find_inventions(summary, source) == (("identifier", "ABC-1235"), ("number", "4321"))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("set rel-model=3 in --col_lib/", "It sets relModel and COL_LIB."),
        ("ran **build_all**: ok", "It ran BuildAll and build-all."),
        ("see (lib:parse_Table)", "It is `parseTable` or PARSE-TABLE."),
        ("überMenge_neu.txt", "It is überMenge-Neu.txt."),
    ],
)
def test_letters_and_digits_of_a_token_are_enough(source: str, text: str) -> None:
    assert find_inventions(text, SourceText([source])) == ()
    assert find_inventions(text, SourceText([source.replace("l", "lx").replace("M", "Mx")])) != ()


def test_a_quotation_may_go_across_texts_and_leave_words_out() -> None:
    source = SourceText(["Never push to main", "before the nightly build has passed, please."])
    text = 'She wrote: "never push to main, before the nightly build really has passed please".'
    assert find_inventions(text, source) == ()
    assert find_inventions(text.replace("nightly build", "monthly party"), source) != ()
