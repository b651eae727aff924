"""Generated conversations of any length; the same seed gives the same text on every machine.

`chat` and `agent` return messages in the `openai` dialect. The text is invented but has realistic
properties: common words are frequent, code has indentation, JSON has ids and timestamps, a few
percent are Chinese, and an agent reads the same file more than once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, chain
from typing import Any

Message = dict[str, Any]

CHARACTERS_PER_TOKEN = 3.07
"""Of the generated text, with o200k_base."""

WORDS = """
the of and to a in is that it was for on are as with they be at this have from or one had by
but not what all were we when your can said there use an each which she do how their if will
up other about out many then them these so some her would make like him into time has look
two more write go see number no way could people my than first water been call who its now
find long down day did get come made may part request response error value function file
model test user server message token client session config build result change branch query
table index cache thread process memory network latency timeout retry release version field
schema payload header parser stream buffer worker queue event handler service endpoint policy
because after before while should might however although instead therefore without between
"""
COMMON = WORDS.split()
SYLLABLES = "ba co di fer gal hin jor kel lum mav nor pli qua rin sto tem ula vex wyn zo ra ti en"
CHINESE = (
    "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可"
    "她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三"
    "已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女"
    "问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由"
)
PATHS = [f"src/{a}/{b}.py" for a in ("api", "core", "store", "web") for b in COMMON[90:110]]


class Author:
    """Writes texts that depend only on the seed."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        rare = [self._invent() for _ in range(8_000)]
        self._words = COMMON + rare
        weights = [1 / (rank + 5) for rank in range(len(self._words))]
        self._weights = list(accumulate(weights))
        self._files = {path: self.code(60) for path in PATHS}

    def words(self, count: int) -> list[str]:
        """Return words, common ones more often."""
        return self.random.choices(self._words, cum_weights=self._weights, k=count)

    def prose(self, words: int) -> str:
        """Return sentences in paragraphs."""
        sentences: list[str] = []
        while words > 0:
            taken = self.words(self.random.randint(5, 22))
            words -= len(taken)
            if self.random.random() < 0.15:
                taken.insert(1, str(self.random.randint(2, 90_000)))
            end = self.random.choice((".", ".", ".", "?", ":", ".\n\n"))
            sentences.append(" ".join(taken).capitalize() + end)
        return " ".join(sentences)

    def chinese(self, characters: int) -> str:
        """Return Chinese sentences."""
        text = "".join(self.random.choices(CHINESE, k=characters))
        return "。".join(text[at : at + 17] for at in range(0, characters, 17)) + "。"

    def code(self, lines: int) -> str:
        """Return functions of an invented module."""
        written: list[str] = []
        while len(written) < lines:
            name, first, second, third = self.words(4)
            number = self.random.randint(0, 99)
            written += [
                f"def {name}_{first}({first}: str, {second}: int = {number}) -> {third.title()}:",
                f'    """{self.prose(6)}"""',
                f"    if not {first}.startswith({third!r}):",
                f'        raise ValueError(f"{second} is {{{second}}}, expected {name}")',
                f"    return {third.title()}({first}, [{second} * i for i in range({number})])",
                "",
            ]
        return "\n".join(written[:lines])

    def records(self, count: int) -> str:
        """Return a service's response in JSON."""
        rows = [
            {
                "id": f"{self.random.getrandbits(64):016x}",
                "day": f"2025-01-{self.random.randint(10, 31)}T00:00:00Z",
                "title": " ".join(self.words(5)),
                "status": self.random.choice(("open", "closed", "merged")),
                "amount": round(self.random.uniform(0, 5_000), 2),
                "tags": self.words(3),
            }
            for _ in range(count)
        ]
        return json.dumps({"items": rows, "next": None}, indent=self.random.choice((None, 2)))

    def _invent(self) -> str:
        """Return a word that no vocabulary contains."""
        return "".join(self.random.choices(SYLLABLES.split(), k=self.random.randint(2, 4)))

    def file(self, path: str) -> str:
        """Return a file of the invented project; the same text each time."""
        return self._files[path]

    def path(self) -> str:
        """Return the path of one of the project's files."""
        return self.random.choice(PATHS)


def chat(messages: int, *, seed: int = 0) -> list[Message]:
    """Return a chat of this many messages, including the system prompt."""
    return _take(_chat_turns(Author(seed)), messages, _one)[:messages]


def agent(messages: int, *, seed: int = 0) -> list[Message]:
    """Return a coding agent's transcript of at least this many messages."""
    return _take(_agent_turns(Author(seed)), messages, _one)


def mixed(tokens: int, *, seed: int = 0) -> list[Message]:
    """Return alternating chat and agent messages of about this many tokens of o200k_base."""
    author = Author(seed)
    pairs = zip(_chat_turns(author), _agent_turns(author), strict=False)
    return _take(chain.from_iterable(pairs), tokens, _about_tokens)


def _take(
    turns: Iterable[list[Message]], enough: int, size: Callable[[Message], float]
) -> list[Message]:
    """Return whole turns until their sizes reach the wanted size."""
    taken: list[Message] = []
    total = 0.0
    for turn in turns:
        if total >= enough:
            break
        taken += turn
        total += sum(map(size, turn))
    return taken


def _one(_message: Message) -> int:
    return 1


def _about_tokens(message: Message) -> float:
    characters = len(message["content"]) + len(json.dumps(message.get("tool_calls", "")))
    return characters / CHARACTERS_PER_TOKEN


def _chat_turns(author: Author) -> Iterator[list[Message]]:
    """Yield the system prompt, then questions with their answers."""
    yield [{"role": "system", "content": author.prose(60)}]
    while True:
        chinese = author.random.random() < 0.05
        question = author.chinese(60) if chinese else author.prose(author.random.randint(5, 60))
        answer = author.chinese(180) if chinese else author.prose(author.random.randint(30, 180))
        if author.random.random() < 0.2:
            answer += f"\n```python\n{author.code(8)}\n```"
        yield [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def _agent_turns(author: Author) -> Iterator[list[Message]]:
    """Yield the plan, then calls with their results, with a user message now and then."""
    yield [
        {"role": "system", "content": author.prose(200)},
        {"role": "user", "content": author.prose(80)},
    ]
    for step in range(1, 10**9):
        if step % 12 == 0:
            yield [
                {"role": "assistant", "content": author.prose(90)},
                {"role": "user", "content": author.prose(30)},
            ]
        calls = [_call(author) for _ in range(author.random.choice((1, 1, 1, 2)))]
        yield [
            {"role": "assistant", "content": author.prose(15), "tool_calls": calls},
            *(_result(author, call) for call in calls),
        ]


def _call(author: Author) -> dict[str, Any]:
    name = author.random.choice(("read_file", "read_file", "run_tests", "search", "write_file"))
    arguments: dict[str, Any] = {"path": author.path()}
    if name == "write_file":
        arguments["content"] = author.code(20)
    elif name != "read_file":
        arguments |= {"query": " ".join(author.words(3)), "limit": author.random.randint(5, 50)}
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "id": f"call_{author.random.getrandbits(48):012x}",
        "type": "function",
        "function": function,
    }


def _result(author: Author, call: dict[str, Any]) -> Message:
    function = call["function"]
    path = json.loads(function["arguments"])["path"]
    match function["name"]:
        case "read_file":
            text = author.file(path)
        case "write_file":
            text = f"wrote {path}"
        case "search":
            text = author.records(author.random.randint(2, 12))
        case _:
            text = "\n".join(
                f"{author.path()}::test_{name} PASSED [{at:3}%]"
                for at, name in enumerate(author.words(author.random.randint(5, 60)))
            )
    return {"role": "tool", "tool_call_id": call["id"], "content": text}
