"""Tables of the cluster results: three nodes compared with one and with RabbitMQ, and the cost of a job on the bus."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from cluster import AWAY_LOAD, IDLE_CLIENTS, ONE_NODE, RABBITMQ, THREE_NODES
from floors import (
    ASYNC_COPIES,
    AWAY_CYCLE,
    AWAY_DELIVERY_MS,
    PIPELINED_COPIES,
    QUORUM_CYCLE,
    SYNCHRONOUS_COPIES,
    Target,
)
from tables import Table, number, verdict

Measured = dict[str, dict[str, list[dict[str, Any]]]]  # side -> workload -> a measurement for each round


@dataclass(frozen=True, slots=True)
class Beside:
    """A workload on three nodes, and the workload on one node it is divided by."""

    title: str
    workload: str
    one_node: str = ""
    floor: Target | None = None
    quorum_floor: Target | None = None
    p50_floor: Target | None = None  # in ms


ROWS: Final = (
    Beside("add one at a time, REPLICATE 1", "add1 r1", "add1"),
    Beside("add by 16, REPLICATE 1", "add16 r1", "add16"),
    Beside("add one at a time, REPLICATE 3", "add1 r3", "add1", SYNCHRONOUS_COPIES),
    Beside("add by 16, REPLICATE 3", "add16 r3", "add16", PIPELINED_COPIES),
    Beside("add one at a time, REPLICATE 3 ASYNC", "add1 async", "add1"),
    Beside("add by 16, REPLICATE 3 ASYNC", "add16 async", "add16", ASYNC_COPIES),
    Beside("get + acknowledge one at a time, three copies", "get1 r3"),
    Beside("get + acknowledge by 32, three copies", "get32 r3"),
    Beside("whole cycle, REPLICATE 1", "cycle r1", "cycle"),
    Beside("whole cycle, REPLICATE 1, workers on another node", "cycle away r1", "cycle", AWAY_CYCLE),
    Beside(f"the same at {AWAY_LOAD:.0%} of that load", "cycle away load", p50_floor=AWAY_DELIVERY_MS),
    Beside("whole cycle, REPLICATE 3", "cycle r3", "cycle", quorum_floor=QUORUM_CYCLE),
    Beside("whole cycle, REPLICATE 3, workers on another node", "cycle away r3", "cycle", quorum_floor=QUORUM_CYCLE),
)


def rates(measured: Measured, side: str, workload: str) -> list[float]:
    """Jobs per second, a figure for each round; empty where it was not measured."""
    return [float(line["jobs_per_s"]) for line in measured.get(side, {}).get(workload, [])]


def _ratio(ours: list[float], theirs: list[float], floor: Target | None) -> str:
    if not ours or not theirs:
        return "-"
    found = [one / other for one, other in zip(ours, theirs, strict=True)]
    spread = f" [{min(found):.2f}-{max(found):.2f}]" if len(found) > 1 else ""
    return f"x{median(found):.2f}{spread}{verdict(median(found), floor)} ({number(median(theirs))})"


def _latency(measured: Measured, workload: str, p50_floor: Target | None) -> str:
    """p50 and p99 of an add or, in a cycle, from the add to the worker, in ms."""
    kind = "delivery" if workload.startswith("cycle") else "add"
    lines = [line["latency_us"][kind] for line in measured[THREE_NODES][workload] if kind in line["latency_us"]]
    if not lines:
        return "-"
    p50, p99 = (median(line[which] for line in lines) / 1000 for which in ("p50", "p99"))
    return f"{p50:.2f} / {p99:.2f}{verdict(p50, p50_floor)}"


def _comparison(measured: Measured) -> Table:
    head = ["workload", "three nodes, jobs/s", "beside one node", f"beside {RABBITMQ}", "p50 / p99, ms"]
    table = Table("Three nodes on one core, beside one node on that core and RabbitMQ's three", head, [])
    for row in ROWS:
        ours = rates(measured, THREE_NODES, row.workload)
        if ours:
            beside_one = _ratio(ours, rates(measured, ONE_NODE, row.one_node), row.floor)
            beside_quorum = _ratio(ours, rates(measured, RABBITMQ, row.workload), row.quorum_floor)
            latency = _latency(measured, row.workload, row.p50_floor)
            table.rows.append([row.title, number(median(ours)), beside_one, beside_quorum, latency])
    return table


def _traffic(found: dict[str, dict[str, list[float]]]) -> Table:
    head = ["phase of a job with three copies", "messages", "bytes", "by type"]
    table = Table("The cost of a job on the cluster bus", head, [])
    for phase, kinds in found.items():
        which = ", ".join(f"{messages:.2f} {kind.upper()}" for kind, (messages, _) in kinds.items())
        messages, size = (sum(column) for column in zip(*kinds.values(), strict=True))
        table.rows.append([phase, f"{messages:.2f}", f"{size:.0f}", which])
    return table


def _idle(found: dict[str, float]) -> Table:
    rows = [[queues, f"{messages:.1f}"] for queues, messages in found.items()]
    title = f"Bus messages per second while {IDLE_CLIENTS} clients wait for jobs on three nodes"
    return Table(title, ["queues", "messages"], rows)


def tables(results: dict[str, Any]) -> list[Table]:
    """The tables of the cluster results."""
    made = []
    if "cluster" in results:
        made.append(_comparison(results["cluster"]))
    if "traffic" in results:
        made.append(_traffic(results["traffic"]))
    if "idle" in results:
        made.append(_idle(results["idle"]))
    return made
