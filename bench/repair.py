"""How long lost copies take to return, and how much other commands slow down meanwhile.

    python bench/repair.py                                   interpreted
    PYTHONPATH=build/compiled python bench/repair.py         compiled
    ... --jobs 10000 --rate 5000                             fewer jobs, another repair-rate

Three nodes without files have jobs of 1 KB with three copies. A witness adds, takes and acknowledges jobs of its own
at the first node. Then the third node is killed and started again, empty: every job lacks a copy. The
figures are the seconds until no node misses a copy, and the 99th percentile of the witness's commands before and during
the repair. The script fails unless the jobs are whole within WHOLE_S and the percentile is less than twice the normal.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from disqued.build import FLAVOUR
from disqued.client import Client
from disqued.testing.processes import ServerProcess, form_cluster
from machine import broker_environment
from witness import Witness

NODES = 3
BODY = b"x" * 1024
AT_ONCE = 500
WHOLE_S = 60.0
NORMAL_S = 10.0


def fill(port: int, jobs: int) -> None:
    """Add the jobs."""
    with Client([f"127.0.0.1:{port}"], discover=False) as client:
        for first in range(0, jobs, AT_ONCE):
            count = min(AT_ONCE, jobs - first)
            client.execute_many([("ADDJOB", "mail", BODY, "0", "REPLICATE", str(NODES), "RETRY", "3000")] * count)


def missing(server: ServerProcess) -> int:
    """How many jobs of a node lack copies; -1 while it does not know."""
    fields = server.info("repair")
    left = int(fields["repair_jobs_under_replicated"])
    return left if left or not fields["repair_waits_for"] else -1


def main() -> None:
    """Measure, print, and fail if it took too long."""
    parser = argparse.ArgumentParser(description="Measure how lost copies return.")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=0, help="repair-rate; 0 for the default")
    options = parser.parse_args()
    os.environ.update(broker_environment())
    rate = ("--repair-rate", str(options.rate)) if options.rate else ()
    with ExitStack() as stack:
        paths = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(NODES)]
        servers = [stack.enter_context(ServerProcess(path, *rate)) for path in paths]
        form_cluster(servers)
        fill(servers[0].port, options.jobs)
        witness = Witness(servers[0].port)
        witness.start()
        time.sleep(1)
        witness.begin()
        time.sleep(NORMAL_S)
        normal_ms = witness.p99_ms()
        lost = servers[-1]
        lost.kill()
        back = stack.enter_context(ServerProcess(paths[-1], *rate, port=lost.port))
        began_s = time.perf_counter()
        witness.begin()
        most = 0
        while True:
            left = [missing(server) for server in (*servers[:-1], back)]
            most = max(most, *left)
            if most and not any(left):
                break
            if time.perf_counter() - began_s > 3 * WHOLE_S:
                sys.exit(f"bench: copies are still missing after {3 * WHOLE_S:g} s: {left}")
            time.sleep(0.2)
        whole_s = time.perf_counter() - began_s
        busy_ms = witness.p99_ms()
        witness.end()
        held = int(back.info("jobs")["registered_jobs"])
    print(f"{FLAVOUR}: {options.jobs:,} jobs of 1 KB whole again after {whole_s:.1f} s, {held:,} on the lost node")
    print(f"99th percentile of other commands: {normal_ms:.2f} ms before, {busy_ms:.2f} ms during the repair")
    if whole_s > WHOLE_S or busy_ms > 2 * normal_ms:
        sys.exit(f"bench: more than {WHOLE_S:g} s, or more than twice the percentile")


if __name__ == "__main__":
    main()
