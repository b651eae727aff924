"""`enfold eval`: measure which content survives a compression."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold import tokens
from enfold.cli.condense import ProfileName
from enfold.cli.files import Tokenizer, open_input, save
from enfold.cli.screen import Json, put, put_json, put_table, working
from enfold.errors import ConfigError
from enfold.evaluation import report
from enfold.evaluation.measures import NEWEST, Method
from enfold.evaluation.metrics import metrics as measure_metrics
from enfold.evaluation.run import CaseResult, EvaluationPlan, measure

app = App(
    name="eval",
    usage="enfold eval [OPTIONS] FILES",
    help_epilogue="""\
The files are those of `enfold condense`, whose conversations may have `probes`
(questions), and the files of LoCoMo, LongMemEval and BEAM. Without --profile no
model is called. Shares are means over the questions or the conversations:

  ratio      tokens before per token after
  in view    messages that answer a question and are in the view
  by search  messages found by one search for the question, in 1,500 tokens
  reachable  messages in the view or found by the search
  items      exact items of the conversation in the view
  users      users' messages in the view, verbatim
  typed      sentences that people typed, in the view verbatim
  on target  conversations that end between 80 and 100 % of --budget
  restored   conversations that the ledger restores exactly
  pairs      conversations whose tool calls all have their results
  sending    cost of 20 further requests, with a prompt cache
  after 10   items kept by the first of 10 compressions that are still
             reachable after the last
  rules      rules of --rules in the view, verbatim, after 11 compressions
  answers    marks of a model's answers from the view, with --profile

A message counts as present if its whole text occurs. A second table shows
other rules: 25 of its words in a row, the words of a short answer, and two
loose rules, eight words in a row or half of its content words together.

With several conversations the figures are also given for two halves: tune on
one half and report the other.

Examples:
  enfold eval meetings.jsonl --budget 0.1
  enfold eval locomo10.json --strategy native --strategy smart --plot kept.svg
  enfold eval data/*.jsonl --metrics
  enfold eval chats.jsonl --rules rules.txt
  enfold eval talks.jsonl --profile mine --prompt short.txt --prompt long.txt""",
)


@app.default
def evaluate(
    *files: Annotated[
        Path, Parameter(help="Conversations, with questions or without.", metavar="FILES")
    ],
    strategy: Annotated[
        tuple[str, ...],
        Parameter(help="A strategy; may be given several times. Default: native.", metavar="NAME"),
    ] = (),
    budget: Annotated[
        float, Parameter(help="The target: a share of the tokens up to 1, or a number of tokens.")
    ] = 0.1,
    tokenizer: Tokenizer = tokens.DEFAULT,
    chains: Annotated[
        bool, Parameter(help="Measure ten compressions in a row too.", negative="--no-chains")
    ] = True,
    rules: Annotated[
        Path | None,
        Parameter(
            help="A file with one rule per line; each is added to what a user typed.",
            metavar="FILE",
        ),
    ] = None,
    plot: Annotated[
        Path | None, Parameter(help="Draw the figures into this SVG file.", metavar="FILE")
    ] = None,
    profile: ProfileName = None,
    prompt: Annotated[
        tuple[Path, ...],
        Parameter(
            help="A file with a prompt for summaries; with several, each is measured.",
            metavar="FILE",
        ),
    ] = (),
    jobs: Annotated[
        int,
        Parameter(help="Files measured in parallel, each in a process.", validator=Number(gte=1)),
    ] = 1,
    metrics: Annotated[
        bool, Parameter(help="Print the project's goals; without files, on its sample.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure which content survives a compression."""
    if metrics:
        _show_metrics(files, json=json)
        return
    if not files:
        raise ConfigError("name at least one file of conversations")
    name = tokens.get(tokenizer).name
    if prompt and profile is None:
        raise ConfigError("--prompt needs a model; name its profile with --profile")
    ways = [Method(NEWEST, budget, name)]
    for each in strategy or ("native",):
        ways += [Method(each, budget, name, *texts) for texts in _prompts(prompt)]
    plan = EvaluationPlan(tuple(dict.fromkeys(ways)), chains, profile, _rules(rules))
    with working("Measuring") as progress:
        found = measure(files, plan, jobs=jobs, on_progress=progress)
    if plot is not None:
        save((plot, report.draw(report.summaries(found)).encode()))
    _show(found, json=json)


def _show_metrics(files: tuple[Path, ...], *, json: bool) -> None:
    with working("Measuring") as progress:
        found = measure_metrics(files, on_progress=progress)
    if json:
        put_json(found)
        return
    rows = [[each.name, each.shown, each.goal, str(each.over)] for each in found]
    put_table("Metrics", ["metric", "measured", "goal", "over"], rows)


def _prompts(given: tuple[Path, ...]) -> list[tuple[str | None, str]]:
    """Return each prompt with its label; without any, the strategy's own."""
    if not given:
        return [(None, "")]
    return [(open_input(str(path)).text(), path.stem) for path in given]


def _rules(path: Path | None) -> tuple[str, ...]:
    """Return the rules of a file, without blank lines."""
    lines = open_input(str(path)).text().splitlines() if path is not None else ()
    return tuple(line.strip() for line in lines if line.strip())


def _show(found: list[CaseResult], *, json: bool) -> None:
    summaries = report.summaries(found)
    rules = report.by_rule(summaries)
    if json:
        put_json({**report.as_json(found), "rules": rules})
        return
    if not summaries:
        put("No conversations in these files.")
        return
    put_table("Content after a compression", list(report.COLUMNS), list(report.rows(summaries)))
    if models := report.marked_by(found):
        put(f"Answers and marks by {', '.join(models)}.")
    for each in found:
        if each.failure:
            put(f"{each.case} was not condensed by {each.way.strategy}: {each.failure}")
    if rules:
        put_table(
            "Evidence by rule",
            list(report.SENSITIVITY_COLUMNS),
            list(report.sensitivity_rows(rules)),
        )
    if kinds := list(report.kind_rows(found)):
        put_table("Questions by kind", list(report.KIND_COLUMNS), kinds)
