"""A cluster of three nodes compared with one node and RabbitMQ's quorum queues, and the cost of a job on the bus.

Every workload gets fresh nodes, all on the same core. A workload whose replies arrive before its copies (ASYNC) lasts
until every node holds every job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from brokers import Broker, Running
from clusters import NODES, BusTraffic, Disqued, RabbitMQ, waiting_clients
from generator import Load, Measurement, offer
from workloads import BATCH, OURS, PRODUCERS, WORKERS, Rounds, Sizes

REPLICATED = f"REPLICATE {NODES}"
ONE_NODE, THREE_NODES, RABBITMQ = "one node", "three nodes", "rabbitmq quorum"
AWAY_LOAD = 0.8
"""The part of the maximum load at which the latency to workers on another node is measured."""
IDLE_CLIENTS = 1000
IDLE_SETTLE_S = 3.0

Traffic = dict[str, dict[str, tuple[float, float]]]  # phase -> kind of message -> messages and bytes for a job


@dataclass(frozen=True, slots=True)
class Adding:
    """How jobs are added to a cluster."""

    name: str
    options: str
    copies: int
    pipeline: int = 1


ADDING = (
    Adding("add1 r1", "REPLICATE 1", 1),
    Adding("add16 r1", "REPLICATE 1", 1, BATCH),
    Adding("add1 r3", REPLICATED, NODES),
    Adding("add16 r3", REPLICATED, NODES, BATCH),
    Adding("add1 async", f"{REPLICATED} ASYNC", NODES),
    Adding("add16 async", f"{REPLICATED} ASYNC", NODES, BATCH),
)


def _load(mode: str, jobs: int, options: str, worker_port: int = 0, pipeline: int = 1, fetch: int = 1) -> Load:
    connections = PRODUCERS + WORKERS
    return Load(
        mode,
        jobs,
        connections=connections,
        workers=WORKERS,
        pipeline=pipeline,
        fetch=fetch,
        add_options=options,
        worker_port=worker_port,
    )


def _one_node(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    """One node, with which the cluster is compared."""
    for pipeline, name in ((1, "add1"), (BATCH, "add16")):
        with Running(OURS) as server:
            yield name, offer(server, _load("add", sizes.cluster, "REPLICATE 1", pipeline=pipeline))
    with Running(OURS) as server:
        yield "cycle", offer(server, _load("cycle", sizes.cluster, "REPLICATE 1"))


def _three_nodes(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    for adding in ADDING:
        with Disqued() as nodes:
            line = offer(nodes, _load("add", sizes.cluster, adding.options, pipeline=adding.pipeline))
            if adding.copies == NODES:
                line["seconds"] += nodes.wait_for_copies(sizes.cluster)
                line["jobs_per_s"] = sizes.cluster / line["seconds"]
            yield adding.name, line
            if adding.name == "add16 r3":
                yield "get1 r3", offer(nodes, _load("get", sizes.cluster, ""))
            if adding.name == "add16 async":
                yield "get32 r3", offer(nodes, _load("get", sizes.cluster, "", fetch=32))
    for name, options in (("r1", "REPLICATE 1"), ("r3", REPLICATED)):
        with Disqued() as nodes:
            yield f"cycle {name}", offer(nodes, _load("cycle", sizes.cluster, options))
        with Disqued() as nodes:
            away = offer(nodes, _load("cycle", sizes.cluster, options, nodes.other_port))
            yield f"cycle away {name}", away
        if name == "r1":
            with Disqued() as nodes:
                load = _load("cycle", sizes.cluster, options, nodes.other_port)
                yield "cycle away load", offer(nodes, replace(load, rate=AWAY_LOAD * away["jobs_per_s"]))


def _rabbitmq(sizes: Sizes) -> Iterator[tuple[str, Measurement]]:
    jobs = sizes.quorum
    with RabbitMQ() as nodes:
        yield "add1 r3", offer(nodes, _load("add", jobs, ""))
        yield "get1 r3", offer(nodes, _load("get", jobs, ""))
        yield "cycle r3", offer(nodes, _load("cycle", jobs, ""))
        yield "cycle away r3", offer(nodes, _load("cycle", jobs, "", nodes.other_port))


def compare(brokers: tuple[Broker, ...], sizes: Sizes, say: Callable[[str], None]) -> Rounds:
    """One node, three nodes and RabbitMQ, `sizes.rounds` times, in turn.

    Without RabbitMQ where it is not installed, and where only our own broker is measured.
    """
    sides: list[tuple[str, Callable[[Sizes], Iterator[tuple[str, Measurement]]]]] = [
        (ONE_NODE, _one_node),
        (THREE_NODES, _three_nodes),
    ]
    if len(brokers) > 1 and not RabbitMQ.installed():
        say("RabbitMQ is not installed (`apt-get install rabbitmq-server`): three nodes are measured without it")
    elif len(brokers) > 1:
        sides.append((RABBITMQ, _rabbitmq))
    results: Rounds = {}
    for number in range(sizes.rounds):
        turn = number % len(sides)
        for side, measure in sides[turn:] + sides[:turn]:
            for name, line in measure(sizes):
                results.setdefault(side, {}).setdefault(name, []).append(line)
                say(f"round {number + 1}  {name:<14} {side:<16} {line['jobs_per_s']:>10,.0f} jobs/s")
    return results


def _per_job(before: BusTraffic, after: BusTraffic, jobs: int) -> dict[str, tuple[float, float]]:
    """Messages and bytes sent per job, without the regular pings."""
    found = {}
    for kind, (messages, size) in sorted(after.items()):
        earlier = before.get(kind, (0, 0))
        if messages > earlier[0] and kind not in {"ping", "pong", "meet"}:
            found[kind] = ((messages - earlier[0]) / jobs, (size - earlier[1]) / jobs)
    return found


def traffic(sizes: Sizes, say: Callable[[str], None]) -> Traffic:
    """Bus messages and bytes per job, by phase of its life."""
    jobs = sizes.cluster
    found: Traffic = {}
    for phase, options in (("add, synchronous", REPLICATED), ("add, ASYNC", f"{REPLICATED} ASYNC")):
        with Disqued() as nodes:
            start = nodes.traffic()
            offer(nodes, _load("add", jobs, options))
            nodes.wait_for_copies(jobs)
            added = nodes.traffic()
            found[phase] = _per_job(start, added, jobs)
            if phase == "add, synchronous":
                offer(nodes, _load("get", jobs, "", fetch=32))
                nodes.wait_for_copies(0)
                found["get + acknowledge"] = _per_job(added, nodes.traffic(), jobs)
    with Disqued() as nodes:
        start = nodes.traffic()
        offer(nodes, _load("cycle", jobs, "REPLICATE 1", nodes.other_port))
        nodes.wait_for_copies(0)
        found["whole life, one copy, consumers on another node"] = _per_job(start, nodes.traffic(), jobs)
    for phase, kinds in found.items():
        messages, size = (sum(column) for column in zip(*kinds.values(), strict=True)) if kinds else (0, 0)
        say(f"traffic  {phase:<50} {messages:.2f} messages, {size:.0f} bytes for a job")
    return found


def idle(sizes: Sizes, say: Callable[[str], None]) -> dict[str, float]:
    """Bus messages per second on three nodes where 1,000 clients wait for jobs, by number of queues they wait for."""
    found = {}
    for queues in (1, 100, IDLE_CLIENTS):
        with Disqued() as nodes, waiting_clients([node.port for node in nodes.nodes], IDLE_CLIENTS, queues):
            time.sleep(IDLE_SETTLE_S)
            before, began = nodes.traffic(), time.monotonic()
            time.sleep(sizes.idle_s)
            after, seconds = nodes.traffic(), time.monotonic() - began
            sent = sum(messages for messages, _ in after.values()) - sum(messages for messages, _ in before.values())
            found[str(queues)] = sent / seconds
            say(f"idle     {IDLE_CLIENTS} clients wait for {queues} queues: {sent / seconds:.1f} messages per second")
    return found
