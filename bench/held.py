"""What jobs cost that wait for others: at rest, while a node is away, and when what they wait for ends.

    python bench/held.py                                     interpreted
    PYTHONPATH=build/compiled python bench/held.py           compiled
    ... --jobs 10000 --parents 10000 --away 60               fewer jobs, each with its own parent, a longer absence
    ... --document                                           also update docs/performance.md

Three nodes in memory share one core. Each job is added with three copies, in turn at each node, and waits for one
parent (ADDJOB AFTER). As many plain jobs, added before in the same way, show what the waiting adds. A witness uses the
first node meanwhile. Then the third node is suspended (SIGSTOP) for longer than it takes to be considered failed, and
continues. At last all parents are acknowledged at the first node, and the clock runs until every job is queued.

The script fails if questions about parents are not bounded: a node may ask each other one about each parent once in
REPEAT_MS, and as often again when a node is back.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import machine
from clusters import NODES, BusTraffic, Disqued, sent_by
from disqued.build import FLAVOUR
from disqued.client import Client
from disqued.fates.asking import JITTER_MS, REPEAT_MS
from page import renew
from tables import Table
from witness import Witness

PAGE = machine.ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- waiting jobs begin -->", "<!-- waiting jobs end -->"
BODY = b"x" * 64
AT_ONCE = 500
OPTIONS = ("0", "REPLICATE", str(NODES), "RETRY", "3000")
REST_S = 60.0
SAMPLE_S = 1.0
PATIENCE_S = 300.0
QUESTIONS = ("jobask", "jobtold")
QUESTION_BYTES = 40


@dataclass(frozen=True, slots=True)
class Phase:
    """What a part of the run cost: of the messages only JOBASK and JOBTOLD of all nodes."""

    name: str
    seconds: float
    p99_ms: float
    messages_per_s: float
    bytes_per_s: float
    peak_messages: float
    """In the worst second."""
    asked: float
    """Questions about one parent by one node to one other node."""


class Meter:
    """Measures one part of the run after the other."""

    def __init__(self, nodes: Disqued, witness: Witness, parents: int) -> None:
        self._nodes = nodes
        self._witness = witness
        self._parents = parents

    def measure(self, name: str, until: Callable[[float], bool], running: int = NODES) -> Phase:
        """Watch the first `running` nodes until a condition on the seconds holds."""
        nodes = self._nodes.nodes[:running]
        self._witness.begin()
        first = last = sent_by(nodes)
        began_s = last_s = time.monotonic()
        peak = 0.0
        while not until(time.monotonic() - began_s):
            time.sleep(SAMPLE_S / 10)
            now_s = time.monotonic()
            if now_s - last_s >= SAMPLE_S:
                now = sent_by(nodes)
                peak = max(peak, _sum(last, now)[0] / (now_s - last_s))
                last, last_s = now, now_s
        seconds = time.monotonic() - began_s
        end = sent_by(nodes)
        messages, size = _sum(first, end)
        asked = (end.get("jobask", (0, 0))[1] - first.get("jobask", (0, 0))[1]) / QUESTION_BYTES
        asked /= self._parents * NODES * (NODES - 1)
        rate = messages / seconds
        return Phase(name, seconds, self._witness.p99_ms(), rate, size / seconds, max(peak, rate), asked)


def _sum(before: BusTraffic, after: BusTraffic) -> tuple[int, int]:
    """Messages and bytes about the fates of jobs."""
    pairs = [(after.get(kind, (0, 0)), before.get(kind, (0, 0))) for kind in QUESTIONS]
    return sum(now[0] - then[0] for now, then in pairs), sum(now[1] - then[1] for now, then in pairs)


def add(nodes: Disqued, queue: str, jobs: int, options: Callable[[int], Sequence[str]]) -> tuple[list[str], float]:
    """Add jobs at all nodes at the same time; returns their IDs and the seconds."""

    def send(number: int) -> list[str]:
        mine = range(number, jobs, NODES)
        ids: list[str] = []
        with Client([f"127.0.0.1:{nodes.nodes[number].port}"], discover=False) as client:
            for first in range(0, len(mine), AT_ONCE):
                part = mine[first : first + AT_ONCE]
                for reply in client.execute_many([("ADDJOB", queue, BODY, *OPTIONS, *options(job)) for job in part]):
                    if not isinstance(reply, bytes):
                        sys.exit(f"bench: ADDJOB: {reply!r}")
                    ids.append(reply.decode())
        return ids

    began_s = time.monotonic()
    with ThreadPoolExecutor(NODES) as clients:
        ids = [job_id for part in clients.map(send, range(NODES)) for job_id in part]
    return ids, time.monotonic() - began_s


def acknowledge(nodes: Disqued, ids: Sequence[str]) -> None:
    """Acknowledge jobs at the first node."""
    with Client([f"127.0.0.1:{nodes.port}"], discover=False) as client:
        for first in range(0, len(ids), AT_ONCE):
            client.execute("ACKJOB", *ids[first : first + AT_ONCE])


def used_bytes(nodes: Disqued) -> tuple[int, int]:
    """Memory of all nodes: as they count it, and of their processes."""
    counted = sum(int(dict(_fields(node.ask("INFO memory")))["used_memory"]) for node in nodes.nodes)
    return counted, sum(node.rss_bytes() for node in nodes.nodes)


def _fields(info: str) -> Iterable[tuple[str, str]]:
    for line in info.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name, value


def queued(nodes: Disqued) -> int:
    """How many of the jobs are queued."""
    return sum(int(node.ask("QLEN children").lstrip(":")) for node in nodes.nodes)


def costs(jobs: int, seconds: Sequence[float], memory: Sequence[tuple[int, int]]) -> Table:
    """What plain and held jobs cost: the seconds to add them, and the growth of memory (counted, of the processes)."""
    plain_s, held_s = seconds
    copies = jobs * NODES
    rows = [["added", f"{jobs / plain_s:,.0f} jobs/s", f"{jobs / held_s:,.0f} jobs/s (x{plain_s / held_s:.2f})"]]
    for number, what in enumerate(("as counted", "of the process")):
        plain, held = (grown[number] / copies for grown in memory)
        rows.append([f"memory of a copy, {what}", f"{plain:.0f} bytes", f"{held:.0f} bytes (x{held / plain:.2f})"])
    return Table("Jobs that wait for others, beside plain ones", ["what", "plain", "waiting"], rows)


def run(jobs: int, parents: int, away_s: float) -> tuple[Table, list[Phase]]:
    """Measure; returns what plain and held jobs cost, and the parts of the run."""
    with Disqued() as nodes:
        used = [used_bytes(nodes)]
        _, plain_s = add(nodes, "plain", jobs, lambda _: ())
        used.append(used_bytes(nodes))
        parent_ids, _ = add(nodes, "parents", parents, lambda _: ("RETAIN", "600"))
        used.append(used_bytes(nodes))
        _, held_s = add(nodes, "children", jobs, lambda job: ("AFTER", parent_ids[job * parents // jobs]))
        used.append(used_bytes(nodes))
        grown = [(after[0] - before[0], after[1] - before[1]) for before, after in (used[:2], used[2:])]
        table = costs(jobs, (plain_s, held_s), grown)
        print(table.as_text())
        witness = Witness(nodes.port)
        witness.start()
        meter = Meter(nodes, witness, parents)
        phases = [meter.measure("at rest", lambda seconds: seconds >= REST_S)]
        os.kill(nodes.nodes[-1].pid, signal.SIGSTOP)
        try:
            phases.append(meter.measure("one node is suspended", lambda seconds: seconds >= away_s, NODES - 1))
        finally:
            os.kill(nodes.nodes[-1].pid, signal.SIGCONT)
        phases.append(meter.measure("it is back", lambda seconds: seconds >= REST_S))
        if queued(nodes):
            sys.exit("bench: jobs were queued before their parents were done")
        with ThreadPoolExecutor(1) as client:
            ends = client.submit(acknowledge, nodes, parent_ids)
            phases.append(meter.measure("parents end, until all are queued", partial(_is_over, nodes, jobs)))
            ends.result()
        witness.end()
    return table, phases


def parts(phases: Sequence[Phase]) -> Table:
    """The parts of the run."""
    head = [
        "while",
        "s",
        "JOBASK and JOBTOLD/s",
        "in the worst second",
        "kB/s",
        "asked about each parent",
        "p99 of others",
    ]
    rows = [
        [
            phase.name,
            f"{phase.seconds:.1f}",
            f"{phase.messages_per_s:.1f}",
            f"{phase.peak_messages:.0f}",
            f"{phase.bytes_per_s / 1000:.1f}",
            f"{phase.asked:.2f} times",
            f"{phase.p99_ms:.2f} ms",
        ]
        for phase in phases
    ]
    return Table("Questions between the nodes, and the latency of other commands", head, rows)


def _is_over(nodes: Disqued, jobs: int, seconds: float) -> bool:
    """Whether all jobs are queued; exits if that takes too long."""
    count = queued(nodes)
    if count < jobs and seconds > PATIENCE_S:
        sys.exit(f"bench: {count:,} of {jobs:,} jobs are queued {PATIENCE_S:g} s after their parents ended")
    return count >= jobs


def main() -> None:
    """Measure, print, and fail if nodes asked too often."""
    parser = argparse.ArgumentParser(description="Measure jobs that wait for others.")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--parents", type=int, default=1000)
    parser.add_argument("--away", type=float, default=40.0, help="seconds for which a node is suspended")
    parser.add_argument("--document", action="store_true", help="update docs/performance.md")
    given = parser.parse_args()
    facts = machine.describe()
    what = f"{given.jobs:,} jobs that wait for {given.parents:,} parents"
    print(f"bench: {what}, {FLAVOUR}")
    table, phases = run(given.jobs, given.parents, given.away)
    print(f"\n{parts(phases).as_text()}")
    for phase in phases:
        most = 2 + phase.seconds * 1000 / (REPEAT_MS - JITTER_MS)
        if phase.asked > most:
            sys.exit(f"bench: {phase.name}: each node asked {phase.asked:.1f} times about each parent, not {most:.1f}")
    if given.document:
        date = datetime.now(UTC).date().isoformat()
        begin = (
            f"{what}. Measured on {date}, {facts['processor']}, disqued {facts['disqued']}, commit {facts['commit']}."
        )
        renew(PAGE, BEGIN, END, "\n" + "\n\n".join([begin, table.as_markdown(), parts(phases).as_markdown()]) + "\n")


if __name__ == "__main__":
    main()
