"""How much of a core's time the machine takes away from a program: no latency can be measured better than that.

A process on the broker's core does nothing but read the clock. A gap between two readings is time in which the core did
something else: interrupts, other processes, or another virtual machine.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from brokers import cores, pinned
from workloads import Sizes

GAP_NS = 100_000
"""Shorter gaps are not counted: interrupts and the garbage of the measurement itself."""


def spin(seconds: float) -> dict[str, float]:
    """Read the clock for a time; returns the longest gap in milliseconds and the share of the time lost in gaps."""
    gc.disable()
    began_ns = last_ns = time.perf_counter_ns()
    end_ns = began_ns + int(seconds * 1e9)
    longest_ns = lost_ns = 0
    while last_ns < end_ns:
        now_ns = time.perf_counter_ns()
        gap_ns = now_ns - last_ns
        if gap_ns > GAP_NS:
            lost_ns += gap_ns
            longest_ns = max(longest_ns, gap_ns)
        last_ns = now_ns
    return {"longest_ms": longest_ns / 1e6, "lost": lost_ns / (last_ns - began_ns)}


def measure(sizes: Sizes, say: Callable[[str], None]) -> list[dict[str, float]]:
    """Measure the core of the broker, `sizes.rounds` times."""
    found = []
    for _ in range(sizes.rounds):
        command = pinned(cores()[0], sys.executable, __file__, "--spin", str(sizes.noise_s))
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found.append(json.loads(printed))
        say(f"machine  longest gap {found[-1]['longest_ms']:.1f} ms, {found[-1]['lost']:.2%} of the time lost")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] != ["--spin"]:
        raise SystemExit(f"{Path(__file__).name} is a part of bench/run.py")
    print(json.dumps(spin(float(sys.argv[2]))))
