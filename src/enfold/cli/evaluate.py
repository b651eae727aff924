"""`enfold eval`: what survives a compression, on conversations with known questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold import tokens
from enfold.cli.condense import ProfileName
from enfold.cli.files import open_input, save
from enfold.cli.screen import Json, Tokenizer, put, put_json, put_table, working
from enfold.errors import ConfigError
from enfold.evaluation import report
from enfold.evaluation.measures import NEWEST, Method
from enfold.evaluation.metrics import metrics as measure_metrics
from enfold.evaluation.run import CaseResult, EvaluationPlan, measure

app = App(
    name="eval",
    usage="enfold eval [OPTIONS] FILES",
    help_epilogue="""\
Read are the files that `enfold condense` reads, whose conversations may have
`probes` beside their messages, and the files of LoCoMo, LongMemEval and BEAM.
Without --profile no model is asked. Shares are means over the questions or the conversations:

  ratio      tokens before for each one after
  in view    of the messages that answer a question, those that the view holds
  by search  those that one search for the question reaches, in 1,500 tokens
  reachable  those that are in the view or reached by the search
  items      exact items of the conversation that the view holds
  users      users' messages that stand in the view word for word
  restored   conversations that the ledger gives back exactly
  pairs      conversations whose tool calls all have their results
  sending    what 20 further requests cost, with a prompt cache
  after 10   of the items that the first of 10 compressions kept, those that
             can still be reached after the last
  answers    marks of a model's answers from the view, with --profile

A message is there if half of what tells it apart stands together. By rule, from
the strictest to the loosest, a second table has the same: its text stands there,
of all messages or of those that say something; or eight of its words in a row.

With several conversations the figures are given for two halves as well: what
is tuned on one should be reported on the other.

Examples:
  enfold eval meetings.jsonl --budget 0.1
  enfold eval locomo10.json --strategy native --strategy smart --plot kept.svg
  enfold eval data/*.jsonl --metrics
  enfold eval talks.jsonl --profile mine --prompt short.txt --prompt long.txt""",
)


@app.default
def evaluate(
    *files: Annotated[
        Path, Parameter(help="Conversations, with questions or without.", metavar="FILES")
    ],
    strategy: Annotated[
        tuple[str, ...],
        Parameter(help="Of these; may be given several times. If unset: native.", metavar="NAME"),
    ] = (),
    budget: Annotated[
        float,
        Parameter(help="Where to end: a share of the tokens up to 1, or so many tokens."),
    ] = 0.1,
    tokenizer: Tokenizer = tokens.DEFAULT,
    chains: Annotated[
        bool, Parameter(help="Leave out the chains of compressions.", negative="--no-chains")
    ] = True,
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
        Parameter(help="So many files at once, each in a process.", validator=Number(gte=1)),
    ] = 1,
    metrics: Annotated[
        bool, Parameter(help="The project's own figures; without files, on its sample.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure what survives a compression."""
    if metrics:
        _show_metrics(files, json=json)
        return
    if not files:
        raise ConfigError("name at least one file of conversations")
    name = tokens.get(tokenizer).name
    if prompt and profile is None:
        raise ConfigError("a prompt is for models; name the profile that asks them: --profile")
    ways = [Method(NEWEST, budget, name)]
    for each in strategy or ("native",):
        ways += [Method(each, budget, name, *texts) for texts in _prompts(prompt)]
    plan = EvaluationPlan(tuple(dict.fromkeys(ways)), chains, profile)
    with working("Measuring") as progress:
        found = measure(files, plan, jobs=jobs, told=progress)
    if plot is not None:
        save((plot, report.draw(report.summaries(found)).encode()))
    _show(found, json=json)


def _show_metrics(files: tuple[Path, ...], *, json: bool) -> None:
    with working("Measuring") as progress:
        found = measure_metrics(files, told=progress)
    if json:
        put_json([each.as_json() for each in found])
        return
    rows = [[each.name, each.shown, each.goal, str(each.over)] for each in found]
    put_table("Metrics", ["metric", "measured", "goal", "over"], rows)


def _prompts(given: tuple[Path, ...]) -> list[tuple[str | None, str]]:
    """Each prompt and what it is called; the strategy's own where none is given."""
    if not given:
        return [(None, "")]
    return [(open_input(str(path)).text(), path.stem) for path in given]


def _show(found: list[CaseResult], *, json: bool) -> None:
    summaries = report.summaries(found)
    rules = report.by_rule(summaries)
    if json:
        put_json(report.as_json(found) | {"rules": [each.as_json() for each in rules]})
        return
    if not summaries:
        put("No conversations in these files.")
        return
    put_table("What survives", list(report.COLUMNS), list(report.rows(summaries)))
    for each in found:
        if each.failure:
            put(f"{each.case} was not made smaller by {each.way.strategy}: {each.failure}")
    if rules:
        put_table(
            "Evidence by rule",
            list(report.SENSITIVITY_COLUMNS),
            list(report.sensitivity_rows(rules)),
        )
