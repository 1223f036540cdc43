"""What options and settings cost: jobs per second and memory with them, beside the same jobs without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from brokers import BROKERS, Running
from generator import QUEUE, Load, Measurement, offer
from workloads import BATCH, Sizes, rotated, whole_cycle


@dataclass(frozen=True, slots=True)
class Row:
    """What differs from plain jobs: words of ADDJOB, the command of workers behind GETJOB, settings of the queue."""

    add_words: str = ""
    ack_command: str = "ACKJOB"
    settings: str = ""


WITHOUT: Final = "none"
OPTIONS: Final = {
    WITHOUT: Row(),
    "PRIORITY": Row("PRIORITY 5"),
    "META of 64 bytes": Row(f"META {'m' * 64}"),
    "NACK with back-off": Row(ack_command="NACK", settings='backoff "3600000 3600000"'),
}
"""By the name of the row. Jobs that are given back with NACK wait for an hour, in place of being acknowledged."""

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


def _measured(row: Row, sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    """Jobs added by 16 and got by 32, then whole cycles; the memory is that of the waiting jobs in between."""
    with Running(BROKERS[0]) as server:
        _set(server, row)
        before = server.rss_bytes()
        line = offer(server, Load("add", sizes.batch, pipeline=BATCH, add_options=row.add_words))
        yield "add16", line | {"bytes_per_job": (server.rss_bytes() - before) / sizes.batch}
        yield "get32", offer(server, Load("get", sizes.batch, fetch=32, ack_command=row.ack_command))
    with Running(BROKERS[0]) as server:
        _set(server, row)
        cycle = replace(whole_cycle(sizes), add_options=row.add_words, ack_command=row.ack_command)
        yield "cycle", offer(server, cycle)


def _set(server: Running, row: Row) -> None:
    """Set the settings of the queue."""
    if row.settings and server.ask(f"QCONF {QUEUE} SET {row.settings}") != "OK":
        raise SystemExit(f"bench: the node refuses QCONF {QUEUE} SET {row.settings}")
