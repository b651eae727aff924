"""Acceptance: whether a strategy's answer is taken, with the receipt for what it takes away.

`accept` has the last word: the rules that `validate` knows, then the receipt and its floors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from enfold.condensation import Condensation, Edited, Folded, Task, validate
from enfold.messages import Message, Text
from enfold.receipt import Receipt, check, receipt


def accept(task: Task, answer: Condensation, *, may_be_unchanged: bool = False) -> Condensation:
    """The answer with its receipt; `CompressionError` with the reason if it may not be used.

    One that is not smaller is a `NoGainError`, unless it says that nothing is to be changed and
    that is fine.
    """
    validate(task, answer, may_be_unchanged=may_be_unchanged)
    if answer.receipt is not None:
        return answer
    made = receipt_for(task, answer)
    check(made, room=task.summary_tokens if answer.summary is not None else None)
    return replace(answer, receipt=made)


def receipt_for(task: Task, answer: Condensation) -> Receipt:
    """What becomes of the exact items of what the answer folds, or takes out by editing."""
    gone = tuple(_gone(task, answer))
    view = tuple(_view(task, answer)) if gone else ()
    return receipt(gone, view, task.restorable_by is not None, by=task.restorable_by)


def _gone(task: Task, answer: Condensation) -> Iterator[Message]:
    """What the view no longer says: folded messages, an earlier summary, the edited parts."""
    for entry in answer.entries:
        if isinstance(entry, Folded):
            if task.previous is not None:
                yield Message("system", (Text(task.previous),))
            yield from (task.as_said(index) for index in entry.indexes)
        elif isinstance(entry, Edited):
            yield taken_out(task.as_said(entry.index), entry.message)


def taken_out(said: Message, shown: Message) -> Message:
    """A message with only those of its parts that an edit did not leave as they were."""
    return replace(said, parts=tuple(part for part in said.parts if part not in shown.parts))


def _view(task: Task, answer: Condensation) -> Iterator[Message]:
    """What the model is sent."""
    if answer.summary is None and task.previous is not None:
        yield Message("system", (Text(task.previous),))
    for entry in answer.entries:
        if isinstance(entry, Folded):
            yield Message("system", (Text(entry.text),))
        else:
            yield entry.message if isinstance(entry, Edited) else task.messages[entry.index]
