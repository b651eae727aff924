"""The overhead of proxies: enfold, a bare pass-through, LiteLLM and headroom.

    python benchmarks/proxy.py [--seconds 5] [--no-peers] [--requests 100000]
    python benchmarks/proxy.py --cpu [--times 400]

The upstream does nothing. Upstream, proxies and load are separate processes on loopback; the proxy
has one core if the system allows it. Bodies: a short one, 100 messages, 100,000 and a million
tokens, for a model with a larger window, so nothing is compressed. Each is sent a few times,
followed by a pause, so that a turn of a known conversation is measured. All proxies run at once and
are measured in turns. Every response is checked. `--requests` sends this many different requests
and measures the memory. `--cpu` only compares the CPU time of enfold and of the pass-through for a
request, background work included: it is the same on a busy machine. There a conversation grows,
too: each request has the reply before and a new message.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from load import KEY, REST, LoadFigures, WrongAnswerError, measure, request, send_all
from peers import HEADROOM, LITELLM

HERE = Path(__file__).parent / "proxy_servers.py"
CONCURRENT = 32
MODEL = "gpt-4.1-mini"
DIRECT, BARE, ENFOLD = "no proxy", "bare pass-through", "enfold"
LOOKS = 10
"""Number of memory measurements."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy to start in front of the upstream."""

    name: str
    command: list[str]
    port: int
    variables: dict[str, str] = field(default_factory=dict)


def bodies() -> dict[str, bytes]:
    """Return the requests by name."""
    return {
        "short": _body(0, ""),
        "100 messages": _body(99, "a few words " * 8),
        "100k tokens": _body(99, "word " * 1_000),
        "1M tokens": _body(999, "word " * 1_000),
    }


def _body(messages: int, text: str, mark: str = "") -> bytes:
    history = [
        {"role": "assistant" if number % 2 else "user", "content": f"{number}: {text}"}
        for number in range(messages)
    ]
    question = {"role": "user", "content": f"And now?{mark}"}
    return json.dumps({"model": MODEL, "messages": [*history, question]}).encode()


class NotStartedError(Exception):
    """A server does not answer."""


@contextmanager
def running(command: list[str], port: int, core: int | None, **variables: str) -> Iterator[int]:
    """Start a server; yield its process id when it answers on the port."""
    pinned = ["taskset", "-c", str(core), *command] if core is not None else command
    quiet = subprocess.DEVNULL
    environment = {**os.environ, **variables}
    with subprocess.Popen(pinned, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            _wait(port, process)
            yield process.pid
        finally:
            process.terminate()


def _wait(port: int, process: subprocess.Popen[bytes], seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    probe = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=_body(0, ""),
        headers={"content-type": "application/json", "authorization": f"Bearer {KEY}"},
    )
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(probe, timeout=20)
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise NotStartedError(f"nothing answers on port {port}")


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def memory(process: int) -> float:
    """Return the memory of a process in megabytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def ours(folder: str, target: str) -> Iterator[Proxy]:
    """Return the pass-through and enfold."""
    port = free_port()
    yield Proxy(BARE, [sys.executable, str(HERE), "bare", str(port), target], port)
    port = free_port()
    serve = [sys.executable, "-m", "enfold.cli", "serve", "--no-ui", f"--port={port}"]
    database = f"--db=sqlite:///{folder}/p.db"
    wide = ["models", "set", f"openai:{MODEL}", "--max-input=4000000", database]
    subprocess.run([sys.executable, "-m", "enfold.cli", *wide], check=True, capture_output=True)
    yield Proxy(ENFOLD, [*serve, database], port, {"ENFOLD_OPENAI_BASE_URL": target})


def theirs(folder: str, target: str) -> Iterator[Proxy | str]:
    """Return LiteLLM and headroom, or the reasons why they are missing."""
    quiet = {
        "HOME": folder,
        "DO_NOT_TRACK": "1",
        "OPENAI_API_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "HEADROOM_OFFLINE": "1",
        "HEADROOM_TELEMETRY": "off",
    }
    for peer, command in ((LITELLM, _litellm(folder, target)), (HEADROOM, _headroom(target))):
        python = peer.environment()
        if isinstance(python, str):
            yield f"{peer.name} is missing: {python}"
            continue
        port = free_port()
        started = [str(python.parent / command[0]), *command[1:], "--port", str(port)]
        yield Proxy(peer.name, started, port, quiet)


def _litellm(folder: str, target: str) -> list[str]:
    config = Path(folder) / "litellm.json"
    upstream = {"model": f"openai/{MODEL}", "api_base": f"{target}/v1", "api_key": KEY}
    served = {"model_name": MODEL, "litellm_params": upstream}
    general = {"master_key": KEY, "disable_spend_logs": True, "disable_error_logs": True}
    # JSON is YAML as well.
    config.write_text(
        json.dumps({"model_list": [served], "general_settings": general}), encoding="utf-8"
    )
    return ["litellm", "--config", str(config), "--host", "127.0.0.1", "--num_workers", "1"]


def _headroom(target: str) -> list[str]:
    free = ["--no-cache", "--no-rate-limit", "--disable-kompress", "--no-telemetry"]
    return [
        "headroom",
        "proxy",
        "--host",
        "127.0.0.1",
        "--no-optimize",
        "--no-subscription-tracking",
        *free,
        "--openai-api-url",
        target,
    ]


def measured(
    proxies: list[Proxy], upstream: int, seconds: float
) -> tuple[dict[tuple[str, str], LoadFigures], dict[str, float]]:
    """Measure every body through every proxy, in turns, and the memory of each."""
    results: dict[tuple[str, str], LoadFigures] = {}
    core = 0 if (os.cpu_count() or 1) > 1 else None
    ports = {DIRECT: upstream, **{proxy.name: proxy.port for proxy in proxies}}
    with ExitStack() as stack:
        processes: dict[str, int] = {}
        for proxy in proxies:
            server = running(proxy.command, proxy.port, core, **proxy.variables)
            try:
                processes[proxy.name] = stack.enter_context(server)
            except (NotStartedError, OSError) as error:
                if proxy.name in {BARE, ENFOLD}:
                    raise
                print(f"  proxy: {proxy.name} was left out: {error}", file=sys.stderr)
                del ports[proxy.name]
        for name, body in bodies().items():
            print(f"  proxy: {name}", file=sys.stderr)
            single = 200 if len(body) < 1_000_000 else 50
            found = measure(ports, body, seconds, concurrent=CONCURRENT, single=single)
            results |= {(name, through): figures for through, figures in found.items()}
        held = {name: memory(process) for name, process in processes.items()}
    return results, held


def table(results: dict[tuple[str, str], LoadFigures]) -> Iterator[str]:
    """Yield a table by body, with ratios to enfold."""
    yield "| body | through | p50 ms | added ms | × bare | requests/s | enfold: times as many |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for name in bodies():
        of_body = {through: found for (body, through), found in results.items() if body == name}
        if missing := {DIRECT, BARE, ENFOLD} - of_body.keys():
            yield f"| {name} | no answer from {', '.join(sorted(missing))} | | | | | |"
            continue
        direct, bare = of_body[DIRECT], of_body[BARE]
        for through, found in of_body.items():
            added = found.p50 - direct.p50
            share = added / max(1e-6, bare.p50 - direct.p50)
            times = of_body[ENFOLD].per_second / found.per_second
            yield (
                f"| {name} | {through} | {found.p50 * 1e3:.2f} | {added * 1e3:.2f} "
                f"| {share:.1f} | {found.per_second:,.0f} | {times:,.2f} × |"
            )


def remembered(proxy: Proxy, requests: int) -> Iterator[str]:
    """Yield a table of the memory over many different requests."""
    yield f"\n{requests:,} requests of 20 messages to enfold, the last message of each new:\n"
    yield "| sent | MB |"
    yield "|--:|--:|"
    batch = requests // LOOKS
    with running(proxy.command, proxy.port, None, **proxy.variables) as process:
        yield f"| 1 | {memory(process):.0f} |"
        for look in range(LOOKS):
            numbers = range(look * batch, (look + 1) * batch)
            short_requests = [
                request(_body(19, "a few words " * 8, f" {number}")) for number in numbers
            ]
            uvloop.run(send_all(proxy.port, short_requests, CONCURRENT))
            yield f"| {(look + 1) * batch:,} | {memory(process):.0f} |"


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def growing(conversations: int, turns: int) -> Iterator[bytes]:
    """Yield the bodies of conversations: each adds the reply and a message to the one before."""
    for conversation in range(conversations):
        messages: list[dict[str, str]] = []
        for turn in range(turns):
            text = f"{conversation}.{turn}: {'a few words ' * 8}"
            messages.append({"role": "user", "content": text})
            yield json.dumps({"model": MODEL, "messages": messages}).encode()
            messages.append({"role": "assistant", "content": "pong"})


def compared(proxies: list[Proxy], times: int) -> Iterator[str]:
    """Yield a table of the CPU time for a request."""
    works = {name: [body] * times for name, body in bodies().items() if name != "1M tokens"}
    works["conversation that grows"] = list(growing(max(1, times // 40), 40))
    yield "| body | bare ms of CPU | enfold ms of CPU | × bare |"
    yield "|---|--:|--:|--:|"
    with ExitStack() as stack:
        processes = [
            (each, stack.enter_context(running(each.command, each.port, None, **each.variables)))
            for each in proxies
        ]
        for name, sent in works.items():
            requests = list(map(request, sent))
            taken: dict[str, float] = {}
            for proxy, process in processes:
                uvloop.run(send_all(proxy.port, requests[:3], 1))
                time.sleep(REST)  # background work of the requests before
                before = cpu_seconds(process)
                uvloop.run(send_all(proxy.port, requests, 1))
                time.sleep(REST)
                taken[proxy.name] = (cpu_seconds(process) - before) * 1000 / len(requests)
            bare, ours = taken[BARE], taken[ENFOLD]
            yield f"| {name} | {bare:.2f} | {ours:.2f} | {ours / max(bare, 1e-6):.2f} |"


def report_cpu(times: int) -> Iterator[str]:
    """Yield the comparison of CPU times."""
    upstream = free_port()
    target = f"http://127.0.0.1:{upstream}"
    command = [sys.executable, str(HERE), "upstream", str(upstream)]
    with tempfile.TemporaryDirectory() as folder, running(command, upstream, None):
        yield from compared(list(ours(folder, target)), times)


def report(seconds: float, requests: int, *, peers: bool) -> Iterator[str]:
    """Yield the report as Markdown."""
    upstream = free_port()
    target = f"http://127.0.0.1:{upstream}"
    command = [sys.executable, str(HERE), "upstream", str(upstream)]
    core = None
    if (os.cpu_count() or 1) > 1 and hasattr(os, "sched_setaffinity"):
        core = 1
        # The load has to stay off the proxy's core, too.
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {0})
    with tempfile.TemporaryDirectory() as folder, running(command, upstream, core):
        proxies = list(ours(folder, target))
        others = list(theirs(folder, target)) if peers else []
        proxies += [each for each in others if isinstance(each, Proxy)]
        results, held = measured(proxies, upstream, seconds)
        yield from table(results)
        yield f"\nMemory at the end: {', '.join(f'{n} {mb:.0f} MB' for n, mb in held.items())}."
        yield from (each for each in others if isinstance(each, str))
        if requests:
            try:
                yield from remembered(proxies[1], requests)
            except (WrongAnswerError, ConnectionError, NotStartedError) as error:
                yield f"\nNot measured further: {error}"


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--times", type=int, default=400)
    options = parser.parse_args()
    lines = report(options.seconds, options.requests, peers=options.peers)
    for line in report_cpu(options.times) if options.cpu else lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
