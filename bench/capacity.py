"""What nodes can do at most: memory by body size, several nodes behind one port, and the cost of copies and files.

CPU time is summed over the processes of all nodes. It is what sizing needs: it hardly depends on the number of cores of
the machine that measures.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Self

from brokers import Broker, Running, cores, cpu_s, logging
from clusters import Disqued
from disqued.testing.ports import free_port
from disqued.testing.processes import SERVER, LocalProcess, ProcessFailedError, sees_all
from generator import Load, offer
from machine import broker_environment
from workloads import BATCH, OURS, PRODUCERS, WORKERS, Sizes

COPIES = 3
BODIES_AT_MOST = 1 << 30  # bytes of all bodies of a memory run
FETCH = 32
HALF = "one at a time, half load"

Say = Callable[[str], None]
Costs = dict[str, dict[str, list[dict[str, float]]]]  # file -> workload -> costs in each round


def body_memory(sizes: Sizes, say: Say) -> dict[str, float]:
    """Bytes of RAM for a waiting job by bytes of its body."""
    found = {}
    for size in sizes.bodies:
        jobs = min(sizes.body_jobs, BODIES_AT_MOST // size)
        with Running(OURS) as server:
            before = server.rss_bytes()
            offer(server, Load("add", jobs, pipeline=BATCH, body_bytes=size))
            found[str(size)] = (server.rss_bytes() - before) / jobs
        say(f"memory   {size:>6,}-byte body: {found[str(size)]:,.0f} bytes for a waiting job")
    return found


class SharedPort(LocalProcess):
    """Several nodes behind one port, on all cores but that of the generator."""

    broker = OURS

    def __init__(self, count: int) -> None:
        self.count = count
        self._directory = tempfile.TemporaryDirectory(prefix="disqued-bench-")
        port = free_port(behind=count)
        arguments = [word.format(port=port) for word in OURS.arguments[OURS.arguments.index("--port") :]]
        used = sorted(os.sched_getaffinity(0) - {cores()[1]}) or [cores()[1]]
        command = ["taskset", "--cpu-list", ",".join(map(str, used))]
        command += [*SERVER, "--nodes", str(count), *arguments, "--http-port", "0"]
        super().__init__(command, Path(self._directory.name), port, environment=broker_environment())

    def __enter__(self) -> Self:
        try:
            self.wait_until(self._is_complete, "the nodes form a cluster")
        except BaseException as problem:
            self.stop()
            if isinstance(problem, ProcessFailedError):
                raise SystemExit(f"bench: {problem}") from None
            raise
        return self

    def stop(self) -> int:
        """Stop all nodes."""
        status = super().stop()
        self._directory.cleanup()
        return status

    def cpu_s(self) -> float:
        """CPU time that all nodes have used so far."""
        return sum(map(cpu_s, self._nodes()))

    def _nodes(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def _is_complete(self) -> bool:
        """Whether each of many connections, which the kernel distributes, reaches a node that is connected to all."""
        with contextlib.suppress(OSError):
            return all(sees_all(self.ask("CLUSTER NODES"), self.count) for _ in range(8 * self.count))
        return False


def _behind_one_port(count: int) -> Running | SharedPort:
    return Running(OURS) if count == 1 else SharedPort(count)


def shared_port(sizes: Sizes, say: Say) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Jobs per second and CPU time for a job, by number of nodes behind one port, `sizes.few_rounds` times."""
    loads = {
        "add16": Load("add", sizes.logged_batch, pipeline=BATCH, add_options="REPLICATE 1"),
        "cycle": Load("cycle", sizes.cluster, workers=WORKERS, add_options="REPLICATE 1"),
    }
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for number in range(sizes.few_rounds):
        for count in sizes.shared:
            for name, load in loads.items():
                with _behind_one_port(count) as nodes:
                    before = nodes.cpu_s()
                    line = offer(nodes, load)
                    cost = (nodes.cpu_s() - before) / load.jobs * 1e6
                found.setdefault(name, {}).setdefault(str(count), []).append(
                    {"jobs_per_s": line["jobs_per_s"], "cpu_us": cost}
                )
                rate = f"{line['jobs_per_s']:>10,.0f} jobs/s, {cost:.1f} us of CPU for a job"
                say(f"round {number + 1}  {name:<6} {count} nodes behind one port {rate}")
    return found


def _life(nodes: Disqued, jobs: int, loads: list[Load]) -> dict[str, float]:
    """CPU time for a job in us, at the node of the clients and at another node, and bytes of file at a node."""
    before = [node.cpu_s() for node in nodes.nodes]
    for load in loads:
        line = offer(nodes, load)
        nodes.wait_for_copies(0 if load.mode != "add" else jobs)
    spent = [(node.cpu_s() - begin) / jobs * 1e6 for node, begin in zip(nodes.nodes, before, strict=True)]
    written = mean(node.file_bytes() for node in nodes.nodes) / jobs
    return {"clients": spent[0], "other": mean(spent[1:]), "file_bytes": written, "jobs_per_s": line["jobs_per_s"]}


def _lives(broker: Broker, sizes: Sizes) -> Iterator[tuple[str, dict[str, float]]]:
    """The whole life of jobs with three copies: in batches, one at a time, and at half of that rate."""
    jobs = sizes.cluster
    options = f"REPLICATE {COPIES}"
    batches = [Load("add", jobs, pipeline=BATCH, add_options=options), Load("get", jobs, fetch=FETCH)]
    with Disqued(broker) as nodes:
        yield "in batches", _life(nodes, jobs, batches)
    single = Load("cycle", jobs, connections=PRODUCERS + WORKERS, workers=WORKERS, add_options=options)
    with Disqued(broker) as nodes:
        full = _life(nodes, jobs, [single])
        yield "one at a time", full
    with Disqued(broker) as nodes:
        yield HALF, _life(nodes, jobs, [replace(single, rate=full["jobs_per_s"] / 2)])


def copies(sizes: Sizes, say: Say) -> Costs:
    """What the whole life of a job with three copies on three nodes costs, without and with files."""
    found: Costs = {}
    for number in range(sizes.few_rounds):
        for file, broker in (("none", OURS), ("everysec", logging(OURS, "everysec"))):
            for name, cost in _lives(broker, sizes):
                found.setdefault(file, {}).setdefault(name, []).append(cost)
                us = (
                    f"{cost['clients']:.1f} us of CPU for a job at the clients' node, {cost['other']:.1f} at each other"
                )
                say(f"round {number + 1}  three copies, log {file:<8} {name:<24} {us}")
    return found
