"""The last resort: old content goes without a summary, where none could be written.

Nobody is asked. First old tool output and parameters are cut short, as the truncation strategy does
it. Where that is not enough the old messages leave the view, and a line in their place says so.
Only those who chose it get this: a model that does not know what was done before goes astray.
"""

from __future__ import annotations

from dataclasses import replace

from enfold.acceptance import receipt_for
from enfold.condensation import Condensation, Folded, Step, Task, unchanged, with_middle_folded
from enfold.strategies.truncation import KIND, TruncationConfig, cut_short
from enfold.summaries import summary_tokens

OPERATION = "last_resort_completed"
"""Among a compression's operations: what was done is this, and no summary."""

_LEFT_OUT = (
    "({number} earlier messages were left out here without a summary, because none could be "
    "written. They are stored, and can be looked up.)"
)
_EVERYTHING_OLD = TruncationConfig(preserve_recent_count=0, preserve_first_count=0)
"""What is old, the task says itself."""
_WAYS_BACK = "nothing is lost: undo shows it again, regenerate writes the summary that is missing"


def truncated(task: Task, reason: str) -> Condensation:
    """The task without its old content; the gentler answer if it reaches the target.

    The receipt is part of it: whoever chose the last resort chose to go below the floors.
    """
    answer = cut_short(task, _EVERYTHING_OLD)
    if task.target is not None and answer.tokens(task) > task.target:
        answer = min(answer, _left_out(task), key=lambda each: each.tokens(task))
    if answer.is_unchanged:
        return answer
    return replace(
        answer,
        warnings=(f"truncated, because the summary failed: {reason}", _WAYS_BACK),
        operations=(*answer.operations, OPERATION),
        receipt=receipt_for(task, answer),
    )


def _left_out(task: Task) -> Condensation:
    """Old messages left out, after the summary that there is of what came before them."""
    split = task.split
    indexes = tuple(index for index in split.folded if index != split.pinned)
    if not indexes:
        return unchanged(task, KIND.id, "there is nothing to leave out")
    notice = _LEFT_OUT.format(number=len(indexes))
    text = notice if task.previous is None else f"{task.previous}\n\n{notice}"
    folded = Folded(indexes, text, summary_tokens(text, task.tokenizer), KIND.id)
    answer = Condensation(
        KIND.id, with_middle_folded(task, folded), operations=("leave_out_completed",)
    )
    return replace(answer, steps=(Step("leave_out", task.tokens, answer.tokens(task)),))
