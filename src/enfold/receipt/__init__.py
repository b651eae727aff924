"""The receipt: what became of every exact item of what left the view.

Exact items are paths, addresses, identifiers, numbers with their unit, dates, names, errors and
commands. Each is

- kept: literally in the view, in a summary or in what stays;
- restorable: not in the view, but to be had again. `restorable_by` says how: by `recall`, where the
  model itself can look it up; from the `store`, where a program finds it in the session's history;
  from the `ledger`, where a program restores the conversation;
- lost: neither.

`extract` finds the items of a text, `receipt` says what became of them, `check` refuses what falls
below a floor.

A receipt's JSON, whose names do not change:

    {"items": {CLASS: {"kept": 3, "restorable": 9, "lost": 0}, …},
     "said": {CLASS: {…}, …},           of these, what users said themselves, and decisions
     "restorable_by": "ledger",         or "store", "recall", null
     "seconds": 0.02,
     "kept": [{"class": CLASS, "item": "src/a.py"}, …],
     "restorable": […],
     "lost": […],
     "more": {"kept": 0, "restorable": 12, "lost": 0}}    how many are not named in the lists
"""

from __future__ import annotations

from enfold.receipt.floors import ALONE, FLOORS, Floors, check
from enfold.receipt.items import CLASSES, Class, Items, extract
from enfold.receipt.receipt import Count, Fate, Means, Receipt, receipt

__all__ = [
    "ALONE",
    "CLASSES",
    "FLOORS",
    "Class",
    "Count",
    "Fate",
    "Floors",
    "Items",
    "Means",
    "Receipt",
    "check",
    "extract",
    "receipt",
]
