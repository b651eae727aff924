"""Repeats: results that another result shows in full become a reference to it.

Operations that were repeated with the same outcome, or with one that contains the other's, are
consolidated; what failed never is.
"""

from __future__ import annotations

from collections.abc import Sequence

from enfold.strategies.lossless import markers
from enfold.strategies.lossless.drafts import Draft, Terms
from enfold.strategies.lossless.operations import OPERATIONS, identity_of, kind_of
from enfold.strategies.lossless.texts import Right

_MOST_OUTCOMES = 8
"""How many different outcomes of one operation are compared with."""


def fold_repeats(drafts: Sequence[Draft], terms: Terms) -> None:
    """Replace results that are in view elsewhere, word for word."""
    kept: dict[str, int] = {}
    for index in _in_order(drafts, terms):
        draft = drafts[index]
        source = kept.setdefault(draft.text, index)
        if source != index and _may_be_replaced(draft):
            marker = _reference(drafts, source, index, terms)
            _replace(drafts, index, source, (0, len(draft.text)), marker, terms)


def _reference(drafts: Sequence[Draft], source: int, index: int, terms: Terms) -> str:
    call = drafts[source].was.call
    number = terms.numbers[drafts[source].was.message]
    if call is not None and kind_of(call) == "read":
        return markers.file_reference(number, markers.describe(call), above=source < index)
    return markers.reference(number, markers.describe(call))


def consolidate(drafts: Sequence[Draft], terms: Terms) -> None:
    """Replace outcomes of an operation that another run of the same operation contains."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index in _in_order(drafts, terms):
        call = drafts[index].was.call
        if call is not None and kind_of(call) in OPERATIONS:
            groups.setdefault(identity_of(call), []).append(index)
    for group in groups.values():
        if len(group) > 1:
            _consolidate(drafts, group, terms)


def _consolidate(drafts: Sequence[Draft], group: Sequence[int], terms: Terms) -> None:
    """One group of the same operation: what contains most is kept, then what comes first."""
    kept: list[int] = []
    contained: dict[int, list[tuple[int, int]]] = {}
    for index in sorted(group, key=lambda i: -len(drafts[i].text)):
        found = _container(drafts, index, kept[:_MOST_OUTCOMES])
        if found is None:
            kept.append(index)
        else:
            source, at = found
            contained.setdefault(source, []).append((index, at))
    for source, members in contained.items():
        number = terms.numbers[drafts[source].was.message]
        description = markers.describe(drafts[source].was.call)
        replaced = [(index, at) for index, at in members if _may_be_replaced(drafts[index])]
        marker = markers.consolidated(len(replaced) + 1, number, description)
        for index, at in replaced:
            place = (at, at + len(drafts[index].text))
            _replace(drafts, index, source, place, marker, terms)


def _container(drafts: Sequence[Draft], index: int, kept: Sequence[int]) -> tuple[int, int] | None:
    """An outcome that contains this one as whole lines, and where."""
    text = drafts[index].text
    for source in kept:
        at = f"\n{drafts[source].text}\n".find(f"\n{text}\n")
        if at >= 0:
            return source, at
    return None


def _replace(
    drafts: Sequence[Draft],
    index: int,
    source: int,
    at: tuple[int, int],
    marker: str,
    terms: Terms,
) -> None:
    if terms.pays(drafts[index].text, marker):
        drafts[index].replace_by(marker, source, at)
        drafts[source].is_whole = True


def _in_order(drafts: Sequence[Draft], terms: Terms) -> list[int]:
    """Drafts of results, those first that are kept where several say the same."""
    results = [index for index, draft in enumerate(drafts) if _may_be_pointed_to(draft)]
    return results[::-1] if terms.keep_last else results


def _may_be_pointed_to(draft: Draft) -> bool:
    """A result that is shown in full; one with a marker in it is not, whoever put it there."""
    shown = draft.was
    return (
        shown.is_result
        and not shown.is_error
        and bool(draft.text)
        and not draft.holes
        and "⟨ " not in draft.text
    )


def _may_be_replaced(draft: Draft) -> bool:
    return draft.right is not Right.NOTHING and not draft.is_whole and not draft.is_named
