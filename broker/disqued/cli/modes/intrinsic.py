"""`--intrinsic-latency`: measures how long this machine delays a busy process.

A loop reads the clock as fast as possible. The longest step is time that the scheduler, the hypervisor or the
interpreter took. A server on this machine cannot reply faster than that.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from disqued.cli.exits import Exit

if TYPE_CHECKING:
    import argparse

    from disqued.cli.endpoint import Endpoint


def run(endpoint: Endpoint, options: argparse.Namespace) -> Exit:  # noqa: ARG001  all modes have the same signature
    """Measure for the given time, and print each new maximum at once."""
    clock_ns = time.perf_counter_ns
    worst_ns = turns = 0
    began_ns = last_ns = clock_ns()
    end_ns = began_ns + int(options.intrinsic_latency * 1e9)
    while last_ns < end_ns:
        now_ns = clock_ns()
        if now_ns - last_ns > worst_ns:
            worst_ns = now_ns - last_ns
            sys.stdout.write(f"Max latency so far: {worst_ns / 1000:.1f} microseconds.\n")
            sys.stdout.flush()
        last_ns = now_ns
        turns += 1
    average_us = (last_ns - began_ns) / 1000 / max(1, turns)
    sys.stdout.write(
        f"\n{turns} total runs (avg latency: {average_us:.4f} microseconds per run).\n"
        f"Worst run took {worst_ns / 1000 / average_us if turns else 0:.0f}x longer than the average.\n"
    )
    return Exit.OK
