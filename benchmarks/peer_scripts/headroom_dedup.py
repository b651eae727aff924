"""headroom's cross-turn dedup over the tool results of conversations; prints the time.

The first file has a JSON array of conversations, each an array of results in order; the processed
results are written to the second file.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("HEADROOM_OFFLINE", "1")
logging.disable(logging.CRITICAL)

from headroom.transforms.cross_turn_dedup import DedupBlock, dedup_blocks


def main(given: Path, wanted: Path) -> None:
    """Read the first file, write the second, print the time."""
    conversations = json.loads(given.read_text())
    dedup_blocks([DedupBlock(text="warm\n" * 40, turn=turn) for turn in range(2)])
    after = []
    started, cpu = time.perf_counter(), time.process_time()
    for texts in conversations:
        blocks, _ = dedup_blocks([DedupBlock(text=t, turn=turn) for turn, t in enumerate(texts)])
        after.append([block.text for block in blocks])
    took = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    wanted.write_text(json.dumps(after))
    print(json.dumps(took))


main(*map(Path, sys.argv[1:]))
