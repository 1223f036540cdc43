"""`make bench`: compares the broker with other brokers, with one load generator, in several alternating rounds.

    python bench/run.py                       takes 25 minutes, prints tables, writes build/bench/results.json
    python bench/run.py --document            also updates docs/performance.md with its plots
    python bench/run.py --document --parts cluster      measures a part again; the page keeps the other ones
    python bench/run.py --quick               takes a minute; a smoke test whose figures mean little
    PYTHONPATH=build/compiled python bench/run.py      the compiled build

The broker runs with this interpreter. It uses two cores, one for the broker and one for the generator; keep the machine
idle otherwise. If that is impossible, `chrt --fifo 1 python bench/run.py` (as root) gives both precedence; maxima then
include the 50 ms per second that the kernel reserves for other processes.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import capacity
import cluster
import encryption
import machine
import moves
import noise
import options
import pauses
import persistence
import report
import workloads
from brokers import BROKERS, Broker, chosen, cores
from generator import compile_generator
from workloads import QUICK, Sizes

RESULTS = machine.ROOT / "build" / "bench" / "results.json"
SPARE_FILES = 500  # descriptors beside the clients'

Say = Callable[[str], None]
PARTS: dict[str, Callable[[tuple[Broker, ...], Sizes, Say], Any]] = {
    "noise": lambda _, sizes, say: noise.measure(sizes, say),
    "comparison": workloads.compare,
    "encryption": encryption.compare,
    "options": lambda _, sizes, say: options.compare(sizes, say),
    "moves": lambda _, sizes, say: moves.compare(sizes, say),
    "memory": workloads.memory,
    "pauses_ms": lambda _, sizes, say: workloads.pauses(sizes, say),
    "longest_ms": lambda _, sizes, say: pauses.measure(sizes, say),
    "growth": workloads.growth,
    "cluster": cluster.compare,
    "traffic": lambda _, sizes, say: cluster.traffic(sizes, say),
    "idle": lambda _, sizes, say: cluster.idle(sizes, say),
    "policies": persistence.policies,
    "loads": persistence.loads,
    "rewrites": persistence.rewrites,
    "body_memory": lambda _, sizes, say: capacity.body_memory(sizes, say),
    "shared_port": lambda _, sizes, say: capacity.shared_port(sizes, say),
    "copies": lambda _, sizes, say: capacity.copies(sizes, say),
    "rewrite_cost": lambda _, sizes, say: persistence.rewrite_cost(sizes, say),
    "logged_cluster": lambda _, sizes, say: persistence.replicated(sizes, say),
}
ALL_PARTS = ",".join(PARTS)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure the broker beside others.")
    parser.add_argument("--quick", action="store_true", help="few jobs, one round")
    parser.add_argument("--rounds", type=int, help="rounds of the comparison (default 5, quick 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="this many times as many jobs (default 1)")
    parser.add_argument("--brokers", help="comma separated, disqued among them (default all)")
    parser.add_argument("--parts", default=ALL_PARTS, help=f"comma separated (default {ALL_PARTS})")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    parser.add_argument("--document", action="store_true", help="renew docs/performance.md and its plots")
    chosen_options = parser.parse_args()
    unknown = [part for part in chosen_options.parts.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {unknown[0]!r}; known are: {', '.join(PARTS)}")
    if chosen_options.document and (chosen_options.quick or chosen_options.brokers):
        parser.error("--document needs all brokers and all jobs: no --quick or --brokers")
    return chosen_options


def allow_many_files(sizes: Sizes) -> Sizes:
    """Raise the limit on open files as far as permitted, and skip levels of blocked clients beyond it."""
    _, permitted = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (permitted, permitted))
    possible = tuple(level for level in sizes.blocked if level + SPARE_FILES <= permitted)
    if possible != sizes.blocked:
        print(f"bench: {permitted} open files are permitted: blocked clients are measured to {possible[-1]}")
    return replace(sizes, blocked=possible)


def main() -> None:
    """Measure, print and store the results."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: stopped"))  # so that no broker outlives the run
    given = arguments()
    brokers = chosen(given.brokers.split(",") if given.brokers else [broker.name for broker in BROKERS])
    if brokers[0].name != "disqued":
        raise SystemExit("bench: --brokers must begin with disqued: everything is compared with it")
    sizes = (QUICK if given.quick else Sizes()).scaled(given.scale)
    sizes = allow_many_files(replace(sizes, rounds=given.rounds or sizes.rounds))
    compile_generator()
    facts = machine.describe()
    if cores()[0] == cores()[1]:
        print("bench: only one core: broker and generator share it, the figures mean little")
    print(f"bench: disqued {facts['disqued']}, beside {', '.join(broker.name for broker in brokers[1:]) or 'nobody'}")

    begin = time.monotonic()
    results: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": facts,
        "brokers": [broker.name for broker in brokers],
        "sizes": asdict(sizes),
    }
    for part in given.parts.split(","):
        results[part] = PARTS[part](brokers, sizes, lambda line: print(f"{time.monotonic() - begin:5.0f} s  {line}"))
    results["elapsed_s"] = round(time.monotonic() - begin, 1)

    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{report.as_text(results)}\n\nwritten: {given.output}")
    if given.document:
        report.update_document(results)
        print(f"renewed: {report.DOCUMENT}")


if __name__ == "__main__":
    main()
