"""What options of ADDJOB cost: jobs per second and memory with them, beside the same jobs without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from brokers import BROKERS, Running
from generator import Load, Measurement, offer
from workloads import BATCH, Sizes, rotated, whole_cycle

WITHOUT: Final = "none"
OPTIONS: Final = {WITHOUT: "", "PRIORITY": "PRIORITY 5", "META of 64 bytes": f"META {'m' * 64}"}
"""The words of ADDJOB by the name of the row."""

OptionCosts = dict[str, dict[str, list[Measurement]]]  # row -> workload -> one measurement a round


def compare(sizes: Sizes, say: Callable[[str], None]) -> OptionCosts:
    """The workloads with each option on this broker alone, `sizes.rounds` times, in rotating order."""
    found: OptionCosts = {}
    for number in range(sizes.rounds):
        for name in rotated(tuple(OPTIONS), number):
            for workload, line in _measured(OPTIONS[name], sizes):
                found.setdefault(name, {}).setdefault(workload, []).append(line)
                say(f"round {number + 1}  {workload:<6} {name:<17} {line['jobs_per_s']:>10,.0f} jobs/s")
    return found


def _measured(words: str, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    """Jobs added by 16 and got by 32, then whole cycles; the memory is that of the waiting jobs in between."""
    with Running(BROKERS[0]) as server:
        before = server.rss_bytes()
        line = offer(server, Load("add", sizes.batch, pipeline=BATCH, add_options=words))
        yield "add16", line | {"bytes_per_job": (server.rss_bytes() - before) / sizes.batch}
        yield "get32", offer(server, Load("get", sizes.batch, fetch=32))
    with Running(BROKERS[0]) as server:
        yield "cycle", offer(server, replace(whole_cycle(sizes), add_options=words))
