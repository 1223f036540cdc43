"""Measures ordered queues on three nodes beside RabbitMQ's quorum queues and our queues of jobs, all on one core.

    PYTHONPATH=build/compiled python bench/ordered.py            20 minutes; prints tables
    ... --quick                                                  two minutes, to check that everything works
    ... --parts speed,failover                                   some parts only
    ... --before /path/to/another/compiled                       queues of jobs of another build in turn

Each round of `speed` starts fresh nodes of each side in turn; compare the ratios. Every side syncs each job to the
disks of a majority before it answers: ordered queues and quorum queues always do, and our queues of jobs run with
`appendfsync always` and three copies. The nodes of a cluster share one core, and the generator has the other one.

The other parts measure our ordered queues alone:

* `bus`: bytes and frames between the nodes for the whole life of a job, with the workers at the leader, at a follower,
  and at a node without a replica;
* `memory`: what a million waiting jobs of 1 KB add to the memory of each node;
* `failover`: the time from killing a node until all queues accept a job again that is added at another node;
* `idle`: CPU time and frames of many queues that nobody uses;
* `restart`: the time from starting all nodes again until all queues accept a job, with a million jobs in 1,000 queues.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final
from unittest.mock import patch

from brokers import Running, logging
from clusters import NODES, BusTraffic, Disqued, RabbitMQ, sent_by
from disqued.client.wire import Decoder, encode
from disqued.testing.ports import LOOPBACK
from disqued.testing.processes import is_complete, wait_until
from floors import Target
from generator import QUEUE, Load, Measurement, compile_generator, offer
from tables import Table, number, verdict
from workloads import BATCH, OURS, PRODUCERS, WORKERS

ORDERED, QUORUM, JOBS, BEFORE = "ordered", "rabbitmq quorum", "queue of jobs", "queue of jobs, before"
RETRY: Final = "RETRY 300"
TIMEOUT_S: Final = 300.0
POLL_S: Final = 0.05
PIPELINED: Final = 1000
"""How many commands the benchmark itself has under way."""
PING_KINDS: Final = frozenset({"ping", "pong", "meet", "dataid"})
"""What nodes send each other regularly, whatever queues there are; DATAID goes with each PING."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    rounds: int = 5
    jobs: int = 30_000
    quorum: int = 15_000
    waiting: int = 1_000_000
    queues: int = 1_000
    failovers: int = 5
    idle_queues: int = 5_000
    idle_s: float = 20.0


QUICK: Final = Sizes(1, 3_000, 1_500, 100_000, 100, 1, 500, 5.0)

SPEED: Final = {
    "add": Target(2.5, 4.0),
    "get + ack": None,
    "cycle": Target(2.5, 5.0),
    "cycle, workers at a follower": None,
    "SINGLE, prefetch 1": Target(1.0, 2.0),
}
"""The workloads, and how many times the rate of RabbitMQ's quorum queues they must reach."""
WAITING_MB: Final = Target(60, 35, higher_is_better=False)
FAILOVER_S: Final = Target(3, 1.5, higher_is_better=False)
FAILOVERS_S: Final = Target(5, 3, higher_is_better=False)
IDLE_PERCENT: Final = Target(1, 0.3, higher_is_better=False)
IDLE_FRAMES: Final = Target(60, 60, higher_is_better=False)
RESTART_S: Final = Target(15, 5, higher_is_better=False)


# --- commands ---------------------------------------------------------------------------------------------------------


def ask(port: int, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Send commands at once to a node; returns the replies, errors included."""
    with socket.create_connection((LOOPBACK, port), TIMEOUT_S) as connection:
        decoder = Decoder()
        replies: list[Any] = []
        for first in range(0, len(commands), PIPELINED):
            part = commands[first : first + PIPELINED]
            connection.sendall(b"".join([encode(tuple(command)) for command in part]))
            while len(replies) < first + len(part):
                data = connection.recv(1 << 18)
                if not data:
                    raise SystemExit("bench: a node closed the connection")
                replies += decoder.feed(data)
        return replies


def require(port: int, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """Send commands that must succeed."""
    replies = ask(port, commands)
    for command, reply in zip(commands, replies, strict=True):
        if isinstance(reply, Exception):
            raise SystemExit(f"bench: {command}: {reply}")
    return replies


def found(nodes: Disqued) -> list[bytes]:
    """Found the catalog on all nodes. Returns their IDs."""
    ids = [require(node.port, [("CLUSTER", "MYID")])[0] for node in nodes.nodes]
    require(nodes.port, [("CLUSTER", "ORDERED", "INIT", *ids)])
    return ids


def leaders(port: int) -> dict[bytes, bytes]:
    """The node that leads each ordered queue, as a node knows it."""
    status = _by_name(require(port, [("CLUSTER", "ORDERED", "STATUS")])[0])
    groups = [_by_name(group) for group in status[b"queues"]]
    return {group[b"queue"]: group[b"leader"] for group in groups}


def _by_name(flat: list[Any]) -> dict[bytes, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


@contextlib.contextmanager
def ordered_nodes(queues: int = 1, *options: Any, on: int = 0) -> Iterator[Disqued]:
    """Three nodes with an ordered queue, or with many of them; `on` limits the replicas to the first nodes."""
    with Disqued() as nodes:
        ids = found(nodes)
        where = ("ON", *ids[:on]) if on else ()
        names = [QUEUE] if queues == 1 else [f"{QUEUE}:{one}" for one in range(queues)]
        require(nodes.port, [("QNEW", name, "ORDERED", *options, *where) for name in names])
        yield nodes


def leader_first(nodes: Disqued) -> None:
    """Let the node that leads the queue be the first one of the cluster, to which clients connect."""
    leader = leaders(nodes.port)[QUEUE.encode()]
    ids = [require(node.port, [("CLUSTER", "MYID")])[0] for node in nodes.nodes]
    nodes.nodes.insert(0, nodes.nodes.pop(ids.index(leader)))


# --- speed ------------------------------------------------------------------------------------------------------------


def _load(mode: str, jobs: int, options: str = "", worker_port: int = 0, workers: int = WORKERS) -> Load:
    connections = PRODUCERS + workers
    return Load(
        mode, jobs, connections=connections, workers=workers, add_options=options, worker_port=worker_port, fetch=1
    )


def _ordered(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.jobs
    with ordered_nodes() as nodes:
        leader_first(nodes)
        yield "add", offer(nodes, _load("add", jobs, RETRY))
        yield "get + ack", offer(nodes, _load("get", jobs))
        yield "cycle", offer(nodes, _load("cycle", jobs, RETRY))
        yield "cycle, workers at a follower", offer(nodes, _load("cycle", jobs, RETRY, nodes.other_port))
    with ordered_nodes(1, "SINGLE", "PREFETCH", 1) as nodes:
        leader_first(nodes)
        yield "SINGLE, prefetch 1", offer(nodes, _load("cycle", jobs // 5, RETRY, workers=1))


def _quorum(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.quorum
    with RabbitMQ() as nodes:
        yield "add", offer(nodes, _load("add", jobs))
        yield "get + ack", offer(nodes, _load("get", jobs))
        yield "cycle", offer(nodes, _load("cycle", jobs))
        yield "cycle, workers at a follower", offer(nodes, _load("cycle", jobs, "", nodes.other_port))
        yield "SINGLE, prefetch 1", offer(nodes, _load("cycle", jobs // 5, workers=1))


def _jobs(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    options = f"REPLICATE {NODES} {RETRY}"
    with Disqued(logging(OURS, "always")) as nodes:
        yield "add", offer(nodes, _load("add", sizes.jobs, options))
        yield "get + ack", offer(nodes, _load("get", sizes.jobs))
        yield "cycle", offer(nodes, _load("cycle", sizes.jobs, options))
        yield "cycle, workers at a follower", offer(nodes, _load("cycle", sizes.jobs, options, nodes.other_port))


def speed(sizes: Sizes) -> list[Table]:
    """All sides in turn, `sizes.rounds` times."""
    sides: list[tuple[str, Callable[[Sizes], Iterator[tuple[str, Measurement]]]]] = [(ORDERED, _ordered), (JOBS, _jobs)]
    if RabbitMQ.installed():
        sides.append((QUORUM, _quorum))
    rates: dict[str, dict[str, list[float]]] = {}
    for turn in range(sizes.rounds):
        first = turn % len(sides)
        for side, measure in sides[first:] + sides[:first]:
            for name, line in measure(sizes):
                rates.setdefault(name, {}).setdefault(side, []).append(line["jobs_per_s"])
                print(f"round {turn + 1}  {name:<30} {side:<16} {line['jobs_per_s']:>10,.0f} jobs/s", flush=True)
    rows = []
    for name, target in SPEED.items():
        found_rates = rates[name]
        row = [name, *(number(median(found_rates[side])) if side in found_rates else "" for side, _ in sides)]
        row += [_ratio(found_rates, QUORUM, target), _ratio(found_rates, JOBS, None)]
        rows.append(row)
    head = ["", *(side for side, _ in sides), "ordered / quorum", "ordered / queue of jobs"]
    return [Table("Jobs per second on three nodes that share a core", head, rows)]


def _ratio(rates: dict[str, list[float]], other: str, target: Target | None) -> str:
    if other not in rates:
        return ""
    ratios = [ours / theirs for ours, theirs in zip(rates[ORDERED], rates[other], strict=True)]
    return f"x{median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]{verdict(median(ratios), target)}"


def compare_builds(sizes: Sizes, before: str) -> list[Table]:
    """Queues of jobs of this build and of another one, which has no ordered queues, in turn."""
    rates: dict[str, dict[str, list[float]]] = {}
    paths = {JOBS: os.environ.get("PYTHONPATH", ""), BEFORE: before}
    for turn in range(sizes.rounds):
        for side in (JOBS, BEFORE) if turn % 2 == 0 else (BEFORE, JOBS):
            with patch.dict(os.environ, {"PYTHONPATH": paths[side]}):
                for name, line in _queues_of_jobs(sizes):
                    rates.setdefault(name, {}).setdefault(side, []).append(line["jobs_per_s"])
    rows = []
    for name, both in rates.items():
        ratios = [now / then for now, then in zip(both[JOBS], both[BEFORE], strict=True)]
        ratio = f"x{median(ratios):.3f} [{min(ratios):.3f}-{max(ratios):.3f}]"
        rows.append([name, number(median(both[JOBS])), number(median(both[BEFORE])), ratio])
    return [Table("Queues of jobs, jobs per second", ["", "now", "before", "now / before"], rows)]


def _queues_of_jobs(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    jobs = 5 * sizes.jobs
    with Running(OURS) as node:
        yield "one node, add", offer(node, Load("add", jobs))
        yield "one node, get + ack", offer(node, Load("get", jobs))
        yield "one node, cycle", offer(node, _load("cycle", jobs))
        yield "one node, add by 16", offer(node, Load("add", jobs, pipeline=BATCH))
    with Disqued() as nodes:
        yield "three nodes, cycle, 3 copies", offer(nodes, _load("cycle", sizes.jobs, f"REPLICATE {NODES}"))


# --- the bus ----------------------------------------------------------------------------------------------------------


def bus(sizes: Sizes) -> list[Table]:
    """Frames and bytes on the bus for a job, by the place of the workers."""
    rows = []
    for title, on, worker in (("leader", 0, 0), ("follower", 0, 1), ("node without a replica", 1, 1)):
        with ordered_nodes(on=on) as nodes:
            leader_first(nodes)
            before = nodes.traffic()
            offer(nodes, _load("cycle", sizes.jobs, RETRY, nodes.nodes[worker].port))
            frames, size = _sent(before, nodes.traffic())
            after = nodes.traffic()
            kinds = sorted(set(after) - PING_KINDS, key=lambda kind: -(after[kind][1] - before.get(kind, (0, 0))[1]))
            largest = ", ".join(
                f"{kind} {(after[kind][1] - before.get(kind, (0, 0))[1]) / sizes.jobs:.0f}" for kind in kinds[:4]
            )
            rows.append([title, number(size / sizes.jobs), f"{frames / sizes.jobs:.2f}", largest])
    head = ["workers at", "bytes for a job", "frames for a job", "bytes by message"]
    return [Table("Traffic between the nodes for the whole life of a job", head, rows)]


def _sent(before: BusTraffic, after: BusTraffic) -> tuple[int, int]:
    """Frames and bytes, without the regular pings."""
    frames = size = 0
    for kind, (count, length) in after.items():
        if kind not in PING_KINDS:
            earlier = before.get(kind, (0, 0))
            frames += count - earlier[0]
            size += length - earlier[1]
    return frames, size


# --- memory, idle queues ----------------------------------------------------------------------------------------------


def memory(sizes: Sizes) -> list[Table]:
    """What waiting jobs add to the memory of each node."""
    with ordered_nodes() as nodes:
        leader_first(nodes)
        offer(nodes, Load("add", 2_000, body_bytes=1024, add_options=RETRY))
        before = [node.rss_bytes() for node in nodes.nodes]
        offer(
            nodes,
            Load(
                "add",
                sizes.waiting,
                first=2_000,
                pipeline=BATCH,
                body_bytes=1024,
                add_options=RETRY,
                time_limit=1200,
            ),
        )
        used = [node.rss_bytes() - was for node, was in zip(nodes.nodes, before, strict=True)]
    megabytes = [size / 2**20 for size in used]
    per_job = [f"{size / sizes.waiting:.0f}" for size in used]
    mark = verdict(max(megabytes), WAITING_MB) if sizes.waiting >= 1_000_000 else ""
    rows = [
        ["MB above empty, the leader first", ", ".join(f"{one:.0f}" for one in megabytes) + mark],
        ["bytes for a job", ", ".join(per_job)],
    ]
    return [Table(f"Memory of {sizes.waiting:,} waiting jobs of 1 KB", ["", ""], rows)]


def idle(sizes: Sizes) -> list[Table]:
    """CPU time and frames of queues that nobody uses."""
    spent = {}
    for queues in (1, sizes.idle_queues):
        began = time.monotonic()
        with ordered_nodes(queues) as nodes:
            made_s = time.monotonic() - began
            time.sleep(sizes.idle_s / 2)
            before = [node.cpu_s() for node in nodes.nodes]
            frames = _sent({}, sent_by(nodes.nodes))[0]
            time.sleep(sizes.idle_s)
            cpu = sum(node.cpu_s() for node in nodes.nodes) - sum(before)
            spent[queues] = (100 * cpu / sizes.idle_s, (_sent({}, sent_by(nodes.nodes))[0] - frames) / sizes.idle_s)
    (one_percent, _), (percent, frames_per_s) = spent.values()
    added = (percent - one_percent) / NODES
    rows = [
        ["made, with the start of the nodes", f"{made_s:.1f} s"],
        ["share of a core for each node, above that of one queue", f"{added:.2f} %{verdict(added, IDLE_PERCENT)}"],
        ["frames per second of all nodes, without pings", f"{frames_per_s:.0f}{verdict(frames_per_s, IDLE_FRAMES)}"],
    ]
    return [Table(f"{sizes.idle_queues:,} queues that nobody uses", ["", ""], rows)]


# --- failover and restart ---------------------------------------------------------------------------------------------


def _accepts_again(port: int, queues: Sequence[bytes]) -> float:
    """Add a job to each queue until all have accepted one; returns the seconds."""
    began = time.monotonic()
    left = list(queues)
    while left:
        replies = ask(port, [("ADDJOB", name, "again", 20_000, "RETRY", 300) for name in left])
        left = [name for name, reply in zip(left, replies, strict=True) if isinstance(reply, Exception)]
        if left:
            time.sleep(POLL_S)  # the nodes have better to do than to refuse
        if time.monotonic() - began > TIMEOUT_S:
            raise SystemExit(f"bench: {len(left)} queues accept no jobs after {TIMEOUT_S:g} s")
    return time.monotonic() - began


def failover(sizes: Sizes) -> list[Table]:
    """Kill the node that leads a queue, and one that leads a third of many."""
    rows = []
    for queues, target in ((1, FAILOVER_S), (sizes.queues, FAILOVERS_S)):
        spent = []
        led = 0
        for _ in range(sizes.failovers):
            with ordered_nodes(queues) as nodes:
                known = leaders(nodes.port)
                _accepts_again(nodes.port, list(known))
                ids = [require(node.port, [("CLUSTER", "MYID")])[0] for node in nodes.nodes]
                victim = nodes.nodes[ids.index(next(iter(known.values())))]
                led = sum(1 for leader in known.values() if leader == ids[nodes.nodes.index(victim)])
                other = next(node for node in nodes.nodes if node is not victim)
                victim.kill()
                spent.append(_accepts_again(other.port, list(known)))
        worst = max(spent)
        rows.append([f"{queues:,}", f"{led:,}", f"{median(spent):.2f} s", f"{worst:.2f} s{verdict(worst, target)}"])
    head = ["queues", "led by the killed node", "median", "longest"]
    return [Table("From the kill of a node until all queues accept a job again", head, rows)]


def restart(sizes: Sizes) -> list[Table]:
    """Kill all nodes with many jobs in many queues, and start them again."""
    with ordered_nodes(sizes.queues) as nodes:
        names = list(leaders(nodes.port))
        load = Load("add", sizes.waiting, pipeline=BATCH, queues=sizes.queues, add_options=RETRY, time_limit=1200)
        offer(nodes, load)
        for node in nodes.nodes:
            node.kill()
        began = time.monotonic()
        for node in nodes.nodes:
            node.launch_again()
        for node in nodes.nodes:
            node.wait_ready()
        wait_until(lambda: is_complete(nodes.nodes), "the nodes find each other", lambda: nodes.output, TIMEOUT_S)
        formed_s = time.monotonic() - began
        _accepts_again(nodes.port, names)
        spent = time.monotonic() - began
        lengths = sum(require(nodes.port, [("QLEN", name) for name in names]))
    if lengths < sizes.waiting + len(names):
        raise SystemExit(f"bench: {lengths} jobs were there after the restart")
    mark = verdict(spent, RESTART_S) if sizes.waiting >= 1_000_000 else ""
    rows = [["the nodes form a cluster", f"{formed_s:.1f} s"], ["all queues accept a job", f"{spent:.1f} s{mark}"]]
    return [Table(f"Restart of all nodes, {sizes.waiting:,} jobs in {sizes.queues:,} queues", ["", ""], rows)]


PARTS: Final[dict[str, Callable[[Sizes], list[Table]]]] = {
    "speed": speed,
    "bus": bus,
    "memory": memory,
    "failover": failover,
    "idle": idle,
    "restart": restart,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="ordered", description="Measure ordered queues.")
    parser.add_argument("--quick", action="store_true", help="few jobs, one round")
    parser.add_argument("--parts", default=",".join(PARTS), help="which parts, separated by commas")
    parser.add_argument("--rounds", type=int, help="how many rounds of speed")
    parser.add_argument("--before", help="the PYTHONPATH of another build, whose queues of jobs are measured in turn")
    given = parser.parse_args()
    sizes = QUICK if given.quick else Sizes()
    if given.rounds:
        sizes = replace(sizes, rounds=given.rounds)
    compile_generator()
    tables: list[Table] = []
    for part in given.parts.split(",") if given.parts else []:
        for table in PARTS[part](sizes):
            tables.append(table)
            print(table.as_text(), end="\n\n", flush=True)
    if given.before:
        tables += compare_builds(sizes, given.before)
        print(tables[-1].as_text())


if __name__ == "__main__":
    main()
