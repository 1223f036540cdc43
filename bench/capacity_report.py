"""Tables of what nodes can do at most, and the sizing table that is calculated from them."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, Final

from capacity import COPIES, HALF, Costs
from tables import Table, number

HEADROOM: Final = 0.5
"""The share of a core that a node may use in the sizing table: the rest is for peaks, failures and restarts."""

BACKLOG_S: Final = 600
BACKLOG_BODIES: Final = ("64", "1024")
RATES: Final = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
LOG: Final = "everysec"
TITLES: Final = {
    "add16": "add by 16",
    "cycle": "whole cycle, one at a time",
    "in batches": "whole life, added by 16, fetched and acknowledged by 32",
    "one at a time": "whole life, one at a time",
    HALF: "whole life, one at a time, half of that rate",
}


def total_us(cost: dict[str, float]) -> float:
    """CPU time of all nodes for a job."""
    return cost["clients"] + (COPIES - 1) * cost["other"]


def nodes_for(jobs_per_s: float, cpu_us: float) -> int:
    """Return how many nodes, each with a core, this rate needs, if a job takes `cpu_us` of all nodes together."""
    return max(COPIES, math.ceil(jobs_per_s * cpu_us / 1e6 / HEADROOM))


def _memory(found: dict[str, float]) -> Table:
    rows = [[f"{int(size):,}", f"{value:,.0f}", f"{value - int(size):,.0f}"] for size, value in found.items()]
    return Table("Memory of a waiting job, bytes", ["body", "memory", "beside the body"], rows)


def _shared(found: dict[str, dict[str, list[dict[str, float]]]]) -> Table:
    rows = []
    for workload, by_count in found.items():
        for count, rounds in by_count.items():
            rates = [line["jobs_per_s"] for line in rounds]
            cost = median(line["cpu_us"] for line in rounds)
            spread = f" [{number(min(rates))}-{number(max(rates))}]" if len(rates) > 1 else ""
            rows.append([TITLES[workload], count, f"{number(median(rates))}{spread}", f"{cost:.1f}"])
    title = "Nodes of one machine behind one port, clients distributed among them, one copy"
    return Table(title, ["workload", "nodes", "jobs/s", "CPU of all nodes for a job, us"], rows)


def _costs(found: Costs) -> Table:
    rows = []
    for file, workloads in found.items():
        for workload, rounds in workloads.items():
            clients, other = (median(line[which] for line in rounds) for which in ("clients", "other"))
            total = median(map(total_us, rounds))
            cells = [f"{clients:.1f}", f"{other:.1f}", f"{total:.1f}", number(1e6 / total)]
            rows.append([TITLES[workload], "no" if file == "none" else file, *cells])
    head = ["workload", "file", "clients' node", "each other node", "all nodes", "jobs/s for each core of the cluster"]
    return Table("CPU of a job with three copies, us", head, rows)


def _sizing(costs: Costs, memory: dict[str, float]) -> Table:
    """What a rate needs, with clients distributed over the nodes."""
    measured = costs[LOG]
    batched, single = (median(map(total_us, measured[workload])) for workload in ("in batches", HALF))
    file_bytes = COPIES * median(line["file_bytes"] for line in measured[HALF])
    sizes = [size for size in BACKLOG_BODIES if size in memory]
    rows = []
    for rate in RATES:
        backlogs = [_gigabytes(rate * BACKLOG_S * COPIES * memory[size]) for size in sizes]
        nodes = [str(nodes_for(rate, cpu_us)) for cpu_us in (batched, single)]
        rows.append([f"{rate:,}", *nodes, f"{rate * file_bytes / 1e6:.1f} MB/s", *backlogs])
    heads = [f"memory for a backlog of {BACKLOG_S // 60} minutes, {int(size):,}-byte bodies" for size in sizes]
    head = ["jobs/s", "nodes, in batches", "nodes, one at a time", "written to files", *heads]
    title = f"Sizing: three copies and files, {HEADROOM:.0%} of a core for each node; memory and files of all nodes"
    return Table(title, head, rows)


def _gigabytes(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"


def tables(results: dict[str, Any]) -> list[Table]:
    """The tables of what nodes can do at most."""
    made = []
    if "body_memory" in results:
        made.append(_memory(results["body_memory"]))
    if "shared_port" in results:
        made.append(_shared(results["shared_port"]))
    if "copies" in results:
        made.append(_costs(results["copies"]))
    if "copies" in results and "body_memory" in results:
        made.append(_sizing(results["copies"], results["body_memory"]))
    return made
