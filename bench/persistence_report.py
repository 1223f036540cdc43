"""Tables of the append-only file: each policy compared with none and with Redis, loading, a rewrite, logged copies."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from floors import (
    BESIDE_REWRITE,
    LOAD,
    LOG_AGAINST_NONE,
    LOG_BESIDE_STREAMS,
    REWRITE_CPU,
    REWRITE_PAUSE,
    STREAMS,
    Target,
)
from persistence import NONE, POLICIES
from tables import Table, number, verdict

OURS = "disqued"
WORKLOADS: Final = {
    "add1": "add, one at a time",
    "add16": "add, pipelined by 16",
    "get1": "get + acknowledge, one at a time",
    "get32": "get + acknowledge, by 32",
}
REPLICATED: Final = {
    "add1 r3": "add one at a time, REPLICATE 3",
    "add16 r3": "add by 16, REPLICATE 3",
    "cycle r3": "whole cycle, REPLICATE 3",
}
BESIDE: Final = {
    "add16": WORKLOADS["add16"],
    "get32": WORKLOADS["get32"],
    "cycle": "whole cycle, 10 producers, 40 blocked workers",
}
PHASES: Final = ("before", "during", "after")

Lines = list[dict[str, Any]]


def ratios(lines: Lines, others: Lines) -> list[float]:
    """Jobs per second divided by those of the others, round by round."""
    return [float(line["jobs_per_s"]) / float(other["jobs_per_s"]) for line, other in zip(lines, others, strict=True)]


def _ratio(lines: Lines, others: Lines, floor: Target | None = None) -> str:
    found = ratios(lines, others)
    if not found:
        return "-"
    spread = f" [{min(found):.2f}-{max(found):.2f}]" if len(found) > 1 else ""
    return f"x{median(found):.2f}{spread}{verdict(median(found), floor)}"


def _latency(lines: Lines, workload: str) -> str:
    """p50 and p99 of the first request of the workload: an add, or a fetch."""
    kind = "add" if workload.startswith("add") else "fetch"
    if not lines:
        return "-"
    return " / ".join(
        f"{median(line['latency_us'][kind][which] for line in lines) / 1000:.2f}" for which in ("p50", "p99")
    )


def _policies(results: dict[str, dict[str, dict[str, Lines]]]) -> Table:
    head = ["workload", "log", "disqued, jobs/s", "beside none", f"beside {STREAMS}, same policy", "CPU, us"]
    head += ["p50 / p99, ms", f"{STREAMS} p50 / p99, ms"]
    table = Table("The append-only file: the cost of each policy of `appendfsync`", head, [])
    for workload, title in WORKLOADS.items():
        measured = results[workload]
        for policy in POLICIES:
            ours, theirs = measured[policy][OURS], measured[policy].get(STREAMS, [])
            batched = workload == "add16" and policy == "everysec"
            table.rows.append(
                [
                    title,
                    policy,
                    number(median(line["jobs_per_s"] for line in ours)),
                    "-"
                    if policy == NONE
                    else _ratio(ours, measured[NONE][OURS], LOG_AGAINST_NONE if batched else None),
                    _ratio(ours, theirs, LOG_BESIDE_STREAMS if batched else None) if theirs else "-",
                    f"{median(line['server_cpu_us_per_job'] for line in ours):.2f}",
                    _latency(ours, workload),
                    _latency(theirs, workload),
                ]
            )
    return table


def _loads(results: dict[str, Lines], jobs: int) -> Table:
    head = ["broker", "time until ready, s", "CPU, s", "file, bytes for a job"]
    table = Table(f"Restart with {jobs:,} jobs in the file", head, [])
    for broker, lines in results.items():
        seconds = [float(line["seconds"]) for line in lines]
        floor = verdict(median(seconds), LOAD) if broker == OURS else ""
        cpu_s = median(line["cpu_s"] for line in lines)
        size = median(line["file_bytes"] for line in lines) / jobs
        cell = f"{median(seconds):.1f} [{min(seconds):.1f}-{max(seconds):.1f}]{floor}"
        table.rows.append([broker, cell, f"{cpu_s:.1f}", f"{size:.0f}"])
    return table


def _rewrites(results: dict[str, Lines], sizes: dict[str, Any]) -> Table:
    head = ["broker", "phase", "p50, ms", "p99, ms", "worst p99, ms", "longest reply, ms", "duration, s"]
    rate = f"{sizes['rewrite_rate']:,.0f} adds per second"
    table = Table(f"{rate} during a rewrite of the file, {sizes['load']:,} jobs in memory", head, [])
    for broker, lines in results.items():
        for phase in PHASES:
            found = [line[phase] for line in lines if line[phase]]
            if not found:
                continue
            middle = {name: median(values[name] for values in found) for name in found[0]}
            longest = [values["max"] for values in found]
            floor = verdict(middle["max"], REWRITE_PAUSE) if broker == OURS and phase == "during" else ""
            cells = [f"{middle[name]:.2f}" for name in ("p50", "p99", "worst_p99")]
            cell = f"{middle['max']:.1f} [{min(longest):.1f}-{max(longest):.1f}]{floor}"
            took = f"{median(line['seconds'] for line in lines):.1f}" if phase == "during" else ""
            table.rows.append([broker, phase, *cells, cell, took])
    return table


def _rewrite_cost(results: dict[str, Any], jobs: int) -> Table:
    table = Table(f"The cost of a rewrite of the file, {jobs:,} jobs in memory", ["what", "disqued"], [])
    for workload, found in results["rates"].items():
        cell = f"x{median(found):.2f} [{min(found):.2f}-{max(found):.2f}]{verdict(median(found), BESIDE_REWRITE)}"
        table.rows.append([f"{BESIDE[workload]}, throughput over that without a rewrite", cell])
    found = results["cpu_us"]
    cell = f"{median(found):.2f} [{min(found):.2f}-{max(found):.2f}]{verdict(median(found), REWRITE_CPU)}"
    table.rows.append(["CPU for each job that is rewritten at rest, us", cell])
    return table


def _replicated(results: dict[str, dict[str, Lines]]) -> Table:
    head = ["workload, three nodes on one core", "none, jobs/s", "everysec, jobs/s", "ratio", "p50 / p99, ms"]
    table = Table("Copies on disk: three nodes with an append-only file each", head, [])
    for workload, title in REPLICATED.items():
        without, logged = results[workload][NONE], results[workload]["everysec"]
        rates = [number(median(line["jobs_per_s"] for line in lines)) for lines in (without, logged)]
        table.rows.append([title, *rates, _ratio(logged, without), _latency(logged, "add")])
    return table


def tables(results: dict[str, Any]) -> list[Table]:
    """The tables of the append-only file."""
    made = []
    if "policies" in results:
        made.append(_policies(results["policies"]))
    if "loads" in results:
        made.append(_loads(results["loads"], results["sizes"]["load"]))
    if "rewrites" in results:
        made.append(_rewrites(results["rewrites"], results["sizes"]))
    if "rewrite_cost" in results:
        made.append(_rewrite_cost(results["rewrite_cost"], results["sizes"]["load"]))
    if "logged_cluster" in results:
        made.append(_replicated(results["logged_cluster"]))
    return made
