"""headroom: a transcript made smaller, by default and by repeats only."""

import logging
import os

os.environ.setdefault("HEADROOM_OFFLINE", "1")
os.environ.setdefault("HEADROOM_TELEMETRY", "off")
logging.disable(logging.CRITICAL)

from headroom import compress
from headroom.transforms.cross_turn_dedup import DedupBlock, dedup_blocks
from stopwatch import PLENTY, start, timed

MODEL = "gpt-4o"


def prune(messages):
    """Compress with the defaults, without a model."""
    compress([{"role": "user", "content": "warm"}], model=MODEL)

    def step(_number):
        done = compress(list(messages), model=MODEL, model_limit=PLENTY, kompress_model="disabled")
        return done.messages

    seconds, after = timed(step, rounds=1)
    return {"seconds": seconds, "after": after, "restored": False}


def dedup(messages):
    """Replace repeats of earlier results by references."""
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]

    def step(_number):
        blocks = [DedupBlock(text=messages[at]["content"], turn=at) for at in results]
        shorter, _ = dedup_blocks(blocks)
        after = list(messages)
        for at, block in zip(results, shorter, strict=True):
            after[at] = {**messages[at], "content": block.text}
        return after

    seconds, after = timed(step, rounds=3)
    return {"seconds": seconds, "after": after, "restored": False}


start({"prune": {"headroom compress": prune, "headroom, repeats alone": dedup}})
