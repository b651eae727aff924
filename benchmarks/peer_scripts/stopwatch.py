"""What every contender does alike: read the work, take the time, print what came of it.

A script is started as `python SCRIPT WORK CONTENDER FILE`: FILE holds messages in the `openai`
dialect. It prints one JSON object. Times are those of all cores together, because
a machine that is measured on has other work as well.
"""

import gc
import json
import statistics
import sys
import time
import tracemalloc
from pathlib import Path

KEPT = 100
"""Messages that are still live when a turn is measured, whatever came before."""
KEEP_TOKENS = 30_000
"""What a fold leaves as it is."""
PLENTY = 10**9
SUMMARY = "They talked about the release, its tests and what is left to do. " * 20
SECONDS = 20
"""How long a contender may go on repeating its work."""


def start(works):
    """Do what the command line says: `list` the contenders of each work, or let one of them work.

    A contender is a function that is given the messages and returns a result.
    """
    if sys.argv[1] == "list":
        print(json.dumps({work: list(contenders) for work, contenders in works.items()}))
        return
    work, name, file = sys.argv[1:]
    messages = json.loads(Path(file).read_text(encoding="utf-8"))
    print(json.dumps(works[work][name](messages)))


def timed(step, rounds=5):
    """The median of some runs of `step`, which gets the round's number; and what the last gave."""
    taken, until = [], time.perf_counter() + SECONDS
    result = None
    for number in range(rounds):
        gc.collect()
        started = time.process_time()
        result = step(number)
        taken.append(time.process_time() - started)
        if time.perf_counter() > until:
            break
    return statistics.median(taken), result


def turns(step, history, rounds=25):
    """A turn's time: `step` adds a question and an answer, and gives what is to be sent.

    `history` says where the whole history is then: "file", "memory" or "lost".
    """
    seconds, sent = timed(lambda number: step(*turn(number)), rounds)
    return {"seconds": seconds, "sent": len(sent), "history": history}


def turn(number):
    """A question and an answer that were not there before."""
    return (
        {"role": "user", "content": f"Question {number}: what is left to do before the release?"},
        {"role": "assistant", "content": f"Answer {number}: the tests, and a word to the users."},
    )


def peak(step):
    """The most that `step` takes beside what is there already, in bytes."""
    gc.collect()
    tracemalloc.start()
    step()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def size(messages):
    """Characters that messages say."""
    return sum(len(message["content"] or "") for message in messages)


def orphans(messages):
    """Tool results without their call, and calls without their result."""
    called = {call["id"] for each in messages for call in each.get("tool_calls") or ()}
    answered = {each["tool_call_id"] for each in messages if each["role"] == "tool"}
    return len(called ^ answered)
