"""The least shares of items that a receipt must reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from enfold.errors import ConfigError
from enfold.receipt import (
    FLOORS,
    FLOORS_WITHOUT_RESTORE,
    Fate,
    Floors,
    ItemCount,
    ItemFates,
    ItemReview,
    Receipt,
    RestorableBy,
    make_receipt,
    shortfalls,
)
from enfold.testing import assistant, system, user
from enfold.text.grammar import ITEM_CLASSES, ItemClass


def made(
    counts: Mapping[ItemClass, ItemCount],
    stated: Mapping[ItemClass, ItemCount] | None = None,
    by: RestorableBy | None = None,
) -> Receipt:
    """A receipt with these counts."""
    none = dict.fromkeys(ITEM_CLASSES, ItemCount())
    items, words = (
        {kind: dict(_fates(count)) for kind, count in {**none, **given}.items()}
        for given in (counts, stated or {})
    )
    return Receipt(lambda: ItemFates(items, words, 0.0), by)


def _fates(count: ItemCount) -> Iterator[tuple[str, Fate]]:
    yield from ((f"kept {n}", "kept") for n in range(count.kept))
    yield from ((f"restorable {n}", "restorable") for n in range(count.restorable))
    yield from ((f"lost {n}", "lost") for n in range(count.lost))


def test_every_class_has_floors_that_are_not_zero() -> None:
    for floors in (FLOORS, FLOORS_WITHOUT_RESTORE):
        assert set(floors.within_reach) == set(floors.stated) == set(ITEM_CLASSES)
        assert min((*floors.within_reach.values(), *floors.stated.values())) > 0
    for kind in ITEM_CLASSES:
        assert FLOORS.stated[kind] < FLOORS.within_reach[kind]


def test_a_shortfall_names_class_share_and_floor() -> None:
    (paths,) = shortfalls(made({"path": ItemCount(1, 0, 99)}, by="store"), FLOORS)
    assert str(paths) == (
        "1 of 100 (1%) path items are kept or restorable, where at least 90.0% are expected"
    )
    assert (paths.required, len(paths.missing)) == (90, 89)
    (dates,) = shortfalls(made({}, {"date": ItemCount(0, 10, 0)}, by="store"))
    assert "0 of 10 (0%) date items in users' words and decisions" in str(dates)


def test_missing_items_are_those_that_reach_the_floor() -> None:
    named = [user(" ".join(f"src/part_{n}.py" for n in range(20)))]
    short = make_receipt(named, [system("src/part_7.py")], restorable=True, by="store")
    (fault,) = shortfalls(short)
    assert fault.missing == ("src/part_0.py", "src/part_1.py", "src/part_2.py")
    mended = system("src/part_7.py " + " ".join(fault.missing))
    assert not shortfalls(make_receipt(named, [mended], restorable=True, by="store"))


def test_items_that_cannot_be_restored_have_floors_of_their_own() -> None:
    listed = assistant(" ".join(f"src/part_{n}.py" for n in range(200)))
    assert ItemReview([listed], [], restorable=True, by="store").shortfalls("A summary.") == ()
    (fault,) = ItemReview([listed], [], restorable=False).shortfalls("A summary.")
    assert str(fault).startswith("0 of 200 (0%) path items are kept or restorable")


@pytest.mark.parametrize(("length", "stated"), [(2_000, 1), (2_001, 0)])
def test_items_of_a_long_pasted_text_are_no_users_words(length: int, stated: int) -> None:
    typed = "Please mend src/parser.py. "
    review = ItemReview(
        [user(typed + "w" * (length - len(typed)))], [], restorable=True, by="store"
    )
    found = review.receipt("A summary.").stated_fates
    assert len(found["path"]) == stated


def test_warnings_are_part_of_the_receipt_without_items() -> None:
    paths = " ".join(f"src/secret_plan_{n}.py" for n in range(20))
    review = ItemReview([user(paths)], [], restorable=True, by="store")
    poor = review.checked_receipt("A summary.")
    (warning,) = poor.warnings
    assert warning.startswith("0 of 20 (0%) path items in users' words")
    assert poor.as_json()["warnings"] == [warning]
    assert "secret_plan" not in warning


def test_a_receipt_above_the_floors_passes() -> None:
    assert not shortfalls(
        made({"path": ItemCount(1, 99, 0)}, {"path": ItemCount(2, 8, 0)}, by="store")
    )
    assert not shortfalls(made({"path": ItemCount(1, 0, 99)}, {"path": ItemCount(2, 0, 8)}))
    assert not shortfalls(made({}))


def test_without_restoring_only_the_summary_counts() -> None:
    nothing_kept = made({"identifier": ItemCount(0, 0, 200)})
    assert shortfalls(nothing_kept)
    assert not shortfalls(made({"identifier": ItemCount(2, 0, 198)}))


def test_a_class_with_few_items_requires_none() -> None:
    assert not shortfalls(made({}, {"path": ItemCount(0, 4, 0)}, by="store"))
    assert shortfalls(made({}, {"path": ItemCount(0, 5, 0)}, by="store"))


def test_the_length_of_a_summary_limits_the_required_items() -> None:
    poor = made({}, {"path": ItemCount(1, 99, 0)}, by="store")
    assert not shortfalls(poor, summary_tokens=299)
    assert shortfalls(poor, summary_tokens=300)


def test_custom_floors() -> None:
    strict = Floors({"path": 1.0}, {})
    assert not shortfalls(make_receipt([user("src/a.py")], [user("src/a.py")]), strict)
    assert shortfalls(make_receipt([user("src/a.py")], []), strict)


@pytest.mark.parametrize("values", [{"path": 1.5}, {"path": -0.1}, {"paths": 0.5}])
def test_invalid_floors_are_refused_by_name(values: dict[ItemClass, float]) -> None:
    with pytest.raises(ConfigError, match="floor 'path"):
        Floors(values, {})
    with pytest.raises(ConfigError, match="floor 'path"):
        Floors({}, values)


def test_decisions_count_like_users_words() -> None:
    decided = [assistant(f"We decided to use lib_{n}_core.") for n in range(10)]
    assert shortfalls(
        make_receipt(decided, [system("They chose libraries.")], restorable=True, by="recall")
    )
    assert not shortfalls(
        make_receipt(decided, [system("lib_1_core and lib_2_core")], restorable=True, by="recall")
    )
