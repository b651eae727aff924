"""The store against a model of it: a few dictionaries, and the rules read aloud."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.store.samples import draft, verify

from enfold.errors import ConflictError
from enfold.identity import chain, identity
from enfold.records import (
    CURRENT_TIP,
    ROOT,
    AppendPlace,
    SearchScope,
    SessionRecord,
    SnapshotDraft,
    SummaryPlace,
)
from enfold.store import Store, open_store, search, sessions, snapshots, tree
from enfold.store import snapshots as views

Result = TypeVar("Result")
WORDS = ("tea", "milk", "数据库", "foo_bar")
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)
pick = st.integers(0, 10**6)


@dataclass
class Model:
    """One session, as simple as it can be told."""

    parents: dict[str, str | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    tip: str | None = None
    snapshots: list[tuple[str, str, str]] = field(default_factory=list)
    """Id, cutoff, parent; oldest first."""
    undone: set[str] = field(default_factory=set)

    def path(self, tip: str | None) -> list[str]:
        line: list[str] = []
        while tip is not None:
            line.append(tip)
            tip = self.parents[tip]
        return line[::-1]

    def leaves(self) -> set[str]:
        return set(self.parents) - set(self.parents.values())

    def applicable(self, tip: str | None, *, share: bool) -> str | None:
        path = self.path(tip)
        fits = [
            (path.index(cutoff), age, id)
            for age, (id, cutoff, parent) in enumerate(self.snapshots)
            if id not in self.undone and cutoff in path and (share or parent in path)
        ]
        return max(fits)[2] if fits else None


class StoreMachine(RuleBasedStateMachine):
    """Does the same to both and compares."""

    count = 0

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.loop = asyncio.new_event_loop()

    def run(self, work: Awaitable[Result]) -> Result:
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        self.store: Store = self.run(open_store(self.url))
        type(self).count += 1
        name = f"session {self.count}"
        self.session: SessionRecord = self.run(
            self.store.write(sessions.get_or_create, "ours", name)
        )
        self.model = Model()

    @rule(texts=words)
    def append(self, texts: list[str]) -> None:
        self._append(texts, self.model.tip, CURRENT_TIP)

    @rule(texts=words, number=pick)
    @precondition(lambda self: self.model.order)
    def branch(self, texts: list[str], number: int) -> None:
        parent = self._message(number)
        self._append(texts, parent, parent)

    @rule(texts=words)
    def begin_again(self, texts: list[str]) -> None:
        self._append(texts, None, ROOT)

    @rule(number=pick, new=st.just([]) | words)
    @precondition(lambda self: self.model.order)
    def record_late_messages(self, number: int, new: list[str]) -> None:
        path = self.model.path(self._message(number))
        texts, before = [*(self.model.texts[id] for id in path), *new], self.model.tip
        self._append(texts, None, ROOT, forward_only=True)
        if self.model.tip in self.model.path(before):
            self.model.tip = before

    @rule(number=pick)
    @precondition(lambda self: self.model.order)
    def move(self, number: int) -> None:
        self.model.tip = self._message(number)
        self.run(self.store.write(tree.set_tip, self.session.key, self.model.tip))

    @rule(number=pick, expects=st.sampled_from(["right", "wrong", "any"]), share=st.booleans())
    @precondition(lambda self: self.model.tip)
    def compress(self, number: int, expects: str, share: bool) -> None:
        assert self.model.tip is not None
        path = self.model.path(self.model.tip)
        made = SnapshotDraft(
            {"summaryText": "x"},
            cutoff=path[number % len(path)],
            parent=self.model.tip,
            manifest=(SummaryPlace(),),
        )
        applies = self.model.applicable(self.model.tip, share=share)
        expected: Any = {"right": applies, "wrong": "another", "any": snapshots.ANY}[expects]
        recording = self.store.write(
            snapshots.record,
            self.session.key,
            made,
            expected=expected,
            share_across_branches=share,
        )
        if expects == "wrong":
            with pytest.raises(ConflictError):
                self.run(recording)
        else:
            self.run(recording)
            self.model.snapshots.append((made.id, made.cutoff or "", self.model.tip))

    @rule(number=pick)
    @precondition(lambda self: self.model.snapshots)
    def undo(self, number: int) -> None:
        id, *_ = self.model.snapshots[number % len(self.model.snapshots)]
        self.run(self.store.write(snapshots.undo, self.session.key, id))
        self.model.undone.add(id)

    @rule(number=pick, new=words)
    @precondition(lambda self: self.model.order)
    def send_a_history_again(self, number: int, new: list[str]) -> None:
        path = self.model.path(self._message(number))
        contents = [draft(self.model.texts[id]).content_hash for id in path]
        contents += [draft(text).content_hash for text in new]
        count, at = 0, None
        for content in contents:
            at = identity(at, content)
            if at not in self.model.parents:
                break
            count += 1
        for where in ({"session": self.session.key}, {"namespace": "ours"}):
            found = self.run(self.store.read(tree.recognise, chain(contents), **where))
            if "session" in where:
                assert found.count == count
            assert found.count >= count

    @rule(number=pick, word=st.sampled_from(WORDS))
    @precondition(lambda self: self.model.order)
    def look_for(self, number: int, word: str) -> None:
        tip = self._message(number)
        holds = [id for id in self.model.order if word in self.model.texts[id]]
        everywhere = SearchScope(session=self.session.key)
        hits = self.run(self.store.read(search.search, word, everywhere, limit=1_000))
        assert [hit.message for hit in hits] == holds[::-1]
        above = SearchScope(session=self.session.key, tip=tip)
        hits = self.run(self.store.read(search.search, word, above, limit=1_000))
        path = self.model.path(tip)
        assert [hit.message for hit in hits] == [id for id in holds[::-1] if id in path]

    @invariant()
    def the_tree_is_the_same(self) -> None:
        session = self.run(self.store.read(sessions.get, self.session.key))
        assert session.tip == self.model.tip
        path = self.run(self.store.read(tree.path, self.session.key))
        assert [message.id for message in path] == self.model.path(self.model.tip)
        tips = self.run(self.store.read(tree.branches, self.session.key))
        assert {branch.tip for branch in tips} == self.model.leaves()

    @invariant()
    def the_views_are_the_same(self) -> None:
        for tip in self.model.leaves():
            for share in (False, True):
                view = self.run(
                    self.store.read(views.view, self.session.key, tip, share_across_branches=share)
                )
                applies = self.model.applicable(tip, share=share)
                assert (view.snapshot.id if view.snapshot else None) == applies
                path = self.model.path(tip)
                cutoff = next((c for id, c, _ in self.model.snapshots if id == applies), None)
                after = path[path.index(cutoff) + 1 :] if cutoff else path
                assert [message.id for message in view.after] == after

    def teardown(self) -> None:
        if hasattr(self, "store"):
            count = self.run(self.store.read(verify, self.session.key))
            self.run(self.store.write(sessions.delete, self.session.key))
            self.run(self.store.close())
            assert count == len(self.model.parents)
        self.loop.close()

    def _append(
        self,
        texts: list[str],
        parent: str | None,
        place: str | AppendPlace,
        *,
        forward_only: bool = False,
    ) -> None:
        made = [draft(text) for text in texts]
        stored = self.run(
            self.store.write(tree.append, self.session.key, made, place, forward_only=forward_only)
        )
        for text, message in zip(texts, stored, strict=True):
            id = identity(parent, draft(text).content_hash)
            assert (message.id, message.parent) == (id, parent)
            if id not in self.model.parents:
                self.model.parents[id] = parent
                self.model.texts[id] = text
                self.model.order.append(id)
            parent = id
        self.model.tip = parent

    def _message(self, number: int) -> str:
        return self.model.order[number % len(self.model.order)]


def test_the_store_does_as_the_model_does(url: str) -> None:
    run_state_machine_as_test(
        partial(StoreMachine, url),  # type: ignore[arg-type]  # whatever makes one will do
        settings=settings(
            max_examples=50 if url.startswith("sqlite") else 12,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )
