"""Cases: conversations with questions and their evidence, read from several formats."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Literal, TypeAlias

from enfold import transcripts
from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Conversation, Message, Text
from enfold.transcripts.source import located, opened

Half: TypeAlias = Literal["tuning", "reporting"]
HALVES: tuple[Half, Half] = ("tuning", "reporting")


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a conversation."""

    question: str
    answer: str | None = None
    """The right answer. None if the data has none."""
    evidence: tuple[int, ...] = ()
    """Indexes of the messages that answer it. Empty if unknown."""
    category: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and its questions."""

    id: str
    conversation: Conversation
    probes: tuple[Probe, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the conversation."""
        return self.conversation.messages


def halves(ids: Iterable[str]) -> dict[str, Half]:
    """Assign every other case to each half, in the order of a hash of the ids.

    Parameters are tuned on one half and reported on the other; the hash makes the choice arbitrary.
    """
    ordered: Sequence[str] = sorted(set(ids), key=lambda id: sha256(id.encode()).hexdigest())
    return {id: HALVES[place % 2] for place, id in enumerate(ordered)}


_QUESTIONS_FILE = "probing_questions/probing_questions.json"
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_LONGMEMEVAL_TIMES = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d")
_BEAM_TIME = "%B-%d-%Y"
_ANSWERS = ("ideal_response", "ideal_answer", "answer", "ideal_summary", "expected_compliance")
"""Fields of BEAM with the right answer, by the kind of question."""


def read(path: Path) -> Iterator[Case]:
    """Yield the cases of a file in any format; raise `InputError` if it cannot be read."""
    with opened(path) as source:
        first = next(source.records, None)
        value = first.value() if first is not None else None
        fields = value.keys() if isinstance(value, dict) else set()
        if first is None or not any(needed <= fields for needed in (*_READERS, _BATCH)):
            yield from _conversations(path)
            return
        reader = next((reader for needed, reader in _READERS.items() if needed <= fields), None)
        if reader is None:
            # The file is one chat of BEAM, whose batches are its records.
            rest = [record.value() for record in source.records]
            yield from _beam({"chat": [value, *rest]}, str(path), path)
            return
        yield from reader(value, first.place, path)
        for record in source.records:
            yield from reader(record.value(), record.place, path)


def _conversations(path: Path) -> Iterator[Case]:
    for number, transcript in enumerate(transcripts.read(path), start=1):
        places = {entry.id: index for index, entry in enumerate(transcript.branch())}
        probes: list[Probe] = []
        with located(f"{path} {transcript.id}".strip()):
            for each in transcript.extras.get("probes") or ():
                if not isinstance(each, dict) or not isinstance(each.get("question"), str):
                    raise InputError("a probe is an object with a question", place="probes")
                evidence = each.get("evidence_message_ids") or ()
                probes.append(
                    Probe(
                        each["question"],
                        _text(each.get("answer")),
                        tuple(places[id] for id in evidence if id in places),
                        str(each.get("category") or ""),
                    )
                )
        id = transcript.id or f"{path.name} {number}"
        yield Case(id, transcript.conversation(), tuple(probes))


_LOCOMO_KINDS = {
    "1": "several sessions",
    "2": "temporal",
    "3": "inference",
    "4": "one session",
    "5": "abstention",
}
"""The kinds of LoCoMo's questions by number."""


def _locomo(value: Any, place: str, _path: Path) -> Iterator[Case]:
    with located(place):
        conversation = value["conversation"]
        if not isinstance(conversation, dict):
            raise InputError("expected an object", place="conversation")
        sessions = (n for n in conversation if n.startswith("session_") and n[8:].isdigit())
        messages: list[Message] = []
        places: dict[str, int] = {}
        for name in sorted(sessions, key=lambda name: int(name[8:])):
            time = _time(conversation.get(f"{name}_date_time"), _LOCOMO_TIME)
            for turn in conversation[name]:
                places[str(turn.get("dia_id"))] = len(messages)
                messages.append(_message(conversation, turn, time))
        probes = tuple(
            Probe(
                str(each["question"]),
                _text(each.get("answer")),
                tuple(places[id] for id in _evidence(each) if id in places),
                _LOCOMO_KINDS.get(str(each.get("category", "")), ""),
            )
            for each in _list(value, "qa")
        )
    id = f"locomo/{value.get('sample_id', place)}"
    yield Case(id, Conversation(tuple(messages)), probes)


def _message(
    conversation: Mapping[str, Any], turn: Mapping[str, Any], time: datetime | None
) -> Message:
    """Return a message: the first speaker is the user, a picture becomes its description."""
    speaker = str(turn.get("speaker", ""))
    caption = turn.get("blip_caption")
    words = str(turn.get("text", "")) + (f" [picture: {caption}]" if caption else "")
    role = "assistant" if speaker == conversation.get("speaker_b") else "user"
    name = speaker or None
    return Message(role, (Text(words),), name=name, at=time)  # type: ignore[arg-type]  # one of two


def _evidence(probe: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of turns; some entries contain several."""
    for entry in probe.get("evidence") or ():
        yield from str(entry).replace(";", " ").split()


def _longmemeval(value: Any, place: str, _path: Path) -> Iterator[Case]:
    with located(place):
        sessions, dates = _list(value, "haystack_sessions"), value.get("haystack_dates") or ()
        turns: list[Any] = []
        messages: list[Message] = []
        for session, date in zip(sessions, chain(dates, repeat(None)), strict=False):
            turns += session
            messages += [_turn(turn, _time(date, *_LONGMEMEVAL_TIMES)) for turn in session]
        evidence = tuple(index for index, turn in enumerate(turns) if turn.get("has_answer"))
        question, kind = str(value["question"]), str(value.get("question_type", ""))
        if str(value.get("question_id", "")).endswith("_abs"):
            kind = "abstention"
        probe = Probe(question, _text(value.get("answer")), evidence, kind)
    id = f"longmemeval/{value.get('question_id', place)}"
    yield Case(id, Conversation(tuple(messages)), (probe,))


def _beam(value: Any, place: str, path: Path) -> Iterator[Case]:
    with located(place):
        messages: list[Message] = []
        places: dict[Any, int] = {}
        time: datetime | None = None
        for entry in _batches_and_turns(value["chat"]):
            # An anchor, of a batch or of a turn, dates what follows up to the next anchor.
            time = _time(entry.get("time_anchor"), _BEAM_TIME) or time
            if "role" in entry:
                places.setdefault(entry.get("id"), len(messages))
                messages.append(_turn(entry, time))
        probes: list[Probe] = []
        for kind, questions in _questions(value, path).items():
            for each in questions:
                answer = next((each[name] for name in _ANSWERS if each.get(name)), None)
                found = (places.get(id) for id in _ids(each.get("source_chat_ids")))
                evidence = tuple(dict.fromkeys(index for index in found if index is not None))
                probes.append(Probe(str(each["question"]), _text(answer), evidence, kind))
    id = f"beam/{value.get('conversation_id', path.parent.name)}"
    yield Case(id, Conversation(tuple(messages)), tuple(probes))


def _batches_and_turns(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the messages at any depth of batches, and each batch before its messages."""
    if isinstance(value, dict):
        yield value
        yield from _batches_and_turns([] if "role" in value else value.get("turns", []))
    elif isinstance(value, list):
        for inner in value:
            yield from _batches_and_turns(inner)


def _questions(value: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the questions by kind: an object, a text of one, or a separate file."""
    found = value.get("probing_questions")
    if found is None:
        questions_file = path.parent / _QUESTIONS_FILE
        found = loads(questions_file.read_bytes()) if questions_file.is_file() else {}
    if isinstance(found, str):
        try:
            found = ast.literal_eval(found)
        except (ValueError, SyntaxError):
            raise InputError("no object of questions", place="probing_questions") from None
    if not isinstance(found, dict):
        raise InputError("expected an object", place="probing_questions")
    return found


def _ids(value: Any) -> Iterator[int]:
    """Yield the ids of a list or an object of lists."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _ids(inner)


def _turn(turn: Any, time: datetime | None) -> Message:
    if not isinstance(turn, dict) or turn.get("role") not in ("user", "assistant"):
        raise InputError("expected turns of the roles user and assistant")
    return Message(turn["role"], (Text(str(turn.get("content", ""))),), at=time)


def _time(value: Any, *forms: str) -> datetime | None:
    """Return the time that a text in one of these forms gives, as UTC; None for other values."""
    for form in forms:
        try:
            return datetime.strptime(str(value), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _list(value: Mapping[str, Any], field: str) -> Sequence[Any]:
    if not isinstance(value.get(field), list):
        raise InputError("expected an array", place=field)
    return value[field]  # type: ignore[no-any-return]  # just looked at


_READERS: Mapping[frozenset[str], Callable[[Any, str, Path], Iterator[Case]]] = {
    frozenset({"conversation", "qa"}): _locomo,
    frozenset({"haystack_sessions", "question"}): _longmemeval,
    frozenset({"chat", "probing_questions"}): _beam,
}
"""The fields of a record -> the reader of its format."""
_BATCH = frozenset({"batch_number", "turns"})
"""The fields of a record that is a part of a chat of BEAM."""
