"""A real model behind a real server on this machine: llama.cpp serving SmolLM2, 135M parameters.

Run as a program it serves the weights in the file named first until its standard input ends. The
fixture `model_url` starts that program and gives the address of its OpenAI-compatible API. The
model writes fluent fiction: it is there for real tokens, streams and usage, not for good summaries.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

WINDOW = 4096
SLOTS = 2
"""Requests at the same time; each has its share of the window."""
SLOT_WINDOW = WINDOW // SLOTS


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """Where the model answers, as a base URL for OpenAI clients."""
    found = sorted(Path(sys.prefix, "model").glob("*/*.gguf"))
    if not found:
        pytest.skip("no model weights in .venv/model; `make test-model` fetches them")
    # A thread that waits by spinning stalls a busy machine.
    quiet = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(found[0])]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=quiet, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().decode().strip()
        assert address.startswith("http://127.0.0.1:")
        yield f"{address}/v1"
        process.stdin.close()


def serve(weights: str) -> None:
    """Serve the model until standard input ends; the address is the only line printed."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx = WINDOW
    parameters.n_parallel = SLOTS
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1])
