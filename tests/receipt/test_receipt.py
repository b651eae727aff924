"""The fates of exact items that left the view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.jsontext import dumps, loads
from enfold.messages import Message, text_of
from enfold.receipt import ItemCount, ItemReview, make_receipt
from enfold.testing import assistant, call, result, system, user
from enfold.text.grammar import ITEM_CLASSES
from tests.text.test_items import TEXTS

GONE = [
    user("Please fix src/a.py, the port is in config.yaml"),
    assistant("", call("1", "bash", {"command": "pytest -q tests"})),
    result("1", "FAILED src/b.py in 45 ms: KeyError"),
    assistant("We decided to go with asyncpg_pool. Also seen: other_thing."),
]


def test_an_item_is_kept_if_the_view_contains_it() -> None:
    made = make_receipt(GONE, [system("Fixing src/a.py; KeyError after 45 ms"), user("Go on.")])
    assert made.items["path"] == {"src/a.py": "kept", "config.yaml": "lost", "src/b.py": "lost"}
    assert made.items["error"] == {"KeyError": "kept"}
    assert made.items["number"] == {"45 ms": "kept"}
    assert made.counts["path"] == ItemCount(1, 0, 2)
    assert made.counts["command"] == ItemCount(0, 0, 1)
    assert made.restorable_by is None


def test_other_items_are_restorable_if_there_is_a_way() -> None:
    made = make_receipt(GONE, [], restorable=True, by="ledger")
    assert made.total == ItemCount(0, made.total.total, 0)
    assert made.restorable_by == "ledger"


def test_the_way_may_depend_on_the_item() -> None:
    made = make_receipt(GONE, [], lambda item: item.endswith(".py"), by="recall")
    assert made.counts["path"] == ItemCount(0, 2, 1)


def test_a_part_of_a_longer_word_is_not_the_item() -> None:
    gone = [user("5 ms, foo_bar, a.py")]
    assert make_receipt(gone, [user("15 ms, foo_bars, data.py")]).total == ItemCount(0, 0, 3)
    assert make_receipt(gone, [user("in 5 ms,foo_bar;(a.py)")]).total == ItemCount(3, 0, 0)
    assert make_receipt(gone, [user("用foo_bar在a.py中5 ms后")]).total == ItemCount(3, 0, 0)


def test_json_is_read_before_it_is_compared() -> None:
    gone = [result("1", '{"files": ["src/a.py", "C:\\\\x\\\\b.txt"]}')]
    shown = [assistant("", call("2", "read", {"path": "src/a.py"})), user("C:\\x\\b.txt")]
    assert make_receipt(gone, shown).total == ItemCount(2, 0, 0)


def test_users_words_and_decisions_are_counted_separately() -> None:
    made = make_receipt(GONE, [system("asyncpg_pool and src/a.py")])
    assert made.stated["path"] == ItemCount(1, 0, 1), "src/b.py was said by a tool"
    assert made.stated["identifier"] == ItemCount(1, 0, 0), "other_thing was not decided"
    pasted = [user("src/a.py\n" + "log line\n" * 500)]
    assert make_receipt(pasted, []).stated["path"] == ItemCount()
    chinese = [assistant("我们决定采用redis_cache。另外还有some_thing。")]
    assert make_receipt(chinese, []).stated["identifier"] == ItemCount(0, 0, 1)


def test_receipts_with_the_same_fates_are_equal() -> None:
    made = make_receipt(GONE, [])
    assert made == make_receipt(GONE, [])
    assert made != make_receipt(GONE, GONE)
    assert made != "a receipt"


def test_an_item_counts_once() -> None:
    made = make_receipt([user("src/a.py src/a.py"), user("src/a.py")], [])
    assert made.counts["path"] == ItemCount(0, 0, 1)


def test_the_json_form_has_figures_and_bounded_lists() -> None:
    many = [user(" ".join(f"src/f{n}.py" for n in range(300)))]
    value = loads(dumps(make_receipt(many, [user("src/f7.py")]).as_json(limit=10)))
    assert value["items"]["path"] == {"kept": 1, "restorable": 0, "lost": 299}
    assert value["kept"] == [{"class": "path", "item": "src/f7.py"}]
    assert len(value["lost"]) == 10
    assert value["more"] == {"kept": 0, "restorable": 0, "lost": 289}
    assert value["restorable_by"] is None
    assert value["seconds"] >= 0
    assert set(value["items"]) == set(value["said"]) == set(ITEM_CLASSES)
    full = make_receipt(many, []).as_json(limit=None)
    assert (len(full["lost"]), full["more"]["lost"]) == (300, 0)


def test_figures_contain_no_text_of_the_conversation() -> None:
    assert b"src" not in dumps(make_receipt(GONE, []).counts_as_json())


def test_the_text_form_names_lost_items() -> None:
    made = make_receipt([user("src/a.py, src/b.py and 45 ms")], [user("45 ms")])
    assert str(made).splitlines() == [
        "Exact items of the content that left the view: 1 kept, 2 lost",
        " - path: 0 kept, 2 lost",
        " - number: 1 kept, 0 lost",
        " - Lost: src/a.py, src/b.py",
    ]
    stored = make_receipt([user(" ".join(f"src/f{n}.py" for n in range(12)))], [], lambda _: False)
    assert str(stored).endswith("src/f7.py and 4 more")
    assert "1 restorable by store" in str(
        make_receipt([user("a.py")], [], restorable=True, by="store")
    )
    assert str(make_receipt([], [user("src/a.py")])) == "No exact items left the view."


MESSAGES = st.lists(
    st.builds(
        lambda role, text: Message(role, (user(text).parts[0],)),
        st.sampled_from(["user", "assistant"]),
        TEXTS,
    ),
    max_size=5,
)


@given(MESSAGES, MESSAGES, st.booleans())
def test_every_item_has_exactly_one_fate(
    gone: list[Message], view: list[Message], restorable: bool
) -> None:
    made = make_receipt(gone, view, restorable)
    total = made.total
    assert total.kept + total.restorable + total.lost == sum(map(len, made.items.values()))
    assert not (total.lost if restorable else total.restorable)
    text = "\n".join(text_of(message.parts) for message in view)
    assert all(item in text for _, item in made.with_fate("kept"))
    for kind, count in made.stated.items():
        assert count.total <= made.counts[kind].total


@given(MESSAGES, MESSAGES, MESSAGES)
def test_a_longer_view_keeps_at_least_as_much(
    gone: list[Message], view: list[Message], more: list[Message]
) -> None:
    before, after = make_receipt(gone, view), make_receipt(gone, [*view, *more])
    assert set(before.with_fate("kept")) <= set(after.with_fate("kept"))


@given(MESSAGES)
def test_a_view_with_everything_keeps_everything(gone: list[Message]) -> None:
    assert make_receipt(gone, gone).total.lost == 0


@pytest.mark.parametrize(
    "key", ["sk-proj-abcDEF123456abcDEF123456", "ghp_0123456789abcdefABCDEF01"]
)
def test_keys_are_in_no_form_of_a_receipt(key: str) -> None:
    made = make_receipt([user(f"use {key} and src/a.py; token={key}")], [])
    shown = f"{made!r}{made}{dumps(made.as_json(limit=None)).decode()}"
    assert "src/a.py" in shown
    assert key[:12] not in shown


class _Unread(list[Message]):
    """Messages that may not be read."""

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("read too early")


def test_messages_are_read_when_items_are_read() -> None:
    made = make_receipt(_Unread(GONE), [system("A summary.")], restorable=True, by="store")
    assert (made.restorable_by, made.warnings, made.invented) == ("store", (), ())
    assert made.notes_as_json() == {"restorable_by": "store", "warnings": [], "invented": []}
    with pytest.raises(AssertionError, match="read too early"):
        _ = made.items


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=2), TEXTS)
def test_a_summary_counts_as_a_part_of_the_view(
    gone: list[str], kept: list[str], summary: str
) -> None:
    old, shown, view = (list(map(user, texts)) for texts in (gone, kept, [*kept, summary]))
    whole = ItemReview(old, shown, restorable=True).receipt(summary)
    assert whole.items == make_receipt(old, view, restorable=True).items
    for name, found in whole.stated_fates.items():
        assert found.items() <= whole.items[name].items()
