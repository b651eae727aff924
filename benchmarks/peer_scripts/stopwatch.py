"""The common part of all contenders: read the work, measure it, print the result.

A script is started as `python SCRIPT WORK CONTENDER FILE`; FILE has messages in the `openai`
dialect. It prints one JSON object. Times are CPU times of all cores, because the machine has other
work too.
"""

import gc
import json
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

KEPT = 100
"""Number of messages after the summary when a turn is measured."""
KEEP_TOKENS = 30_000
"""Tokens that a compression keeps verbatim."""
PLENTY = 10**9
SUMMARY = "They talked about the release, its tests and what is left to do. " * 20
SECONDS = 20
"""CPU time limit for repetitions, in seconds. A busy machine must not reduce their number."""


def start(works):
    """Run the command line: `list` the contenders of each work, or run one of them.

    A contender is a function that takes the messages and returns a result.
    """
    if sys.argv[1] == "list":
        print(json.dumps({work: list(contenders) for work, contenders in works.items()}))
        return
    work, name, file = sys.argv[1:]
    messages = json.loads(Path(file).read_text(encoding="utf-8"))
    print(json.dumps(works[work][name](messages)))


def timed(step, rounds=5):
    """Return the median time of some runs of `step`, which gets the round, and the last result."""
    taken, until = [], time.process_time() + SECONDS
    result = None
    for number in range(rounds):
        gc.collect()
        started = time.process_time()
        result = step(number)
        taken.append(time.process_time() - started)
        if time.process_time() > until:
            break
    return statistics.median(taken), result


def turns(step, history, rounds=25):
    """Return the time of a turn: `step` adds a question and an answer, and returns the view.

    `history` names the place of the whole history: "file", "memory" or "lost".
    """
    seconds, sent = timed(lambda number: step(*turn(number)), rounds)
    return {"seconds": seconds, "sent": len(sent), "history": history}


def turn(number):
    """Return a new question and a new answer."""
    return (
        {"role": "user", "content": f"Question {number}: what is left to do before the release?"},
        {"role": "assistant", "content": f"Answer {number}: the tests, and a word to the users."},
    )


def peak(step):
    """Return the peak memory that `step` adds, in bytes."""
    gc.collect()
    tracemalloc.start()
    step()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def size(messages):
    """Return the characters of the messages."""
    return sum(len(message["content"] or "") for message in messages)


def orphans(messages):
    """Return the number of tool results without a call and of calls without a result."""
    called = {call["id"] for each in messages for call in each.get("tool_calls") or ()}
    answered = {each["tool_call_id"] for each in messages if each["role"] == "tool"}
    return len(called ^ answered)
