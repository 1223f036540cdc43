"""The end of the demonstration: nodes, workers, what became of every job, and whether both counts agree."""

from __future__ import annotations

from rich.table import Table

from disqued.demo.source import Count
from disqued.demo.tally import NodeTally, Tally, percentile


def figures(tally: Tally) -> Table:
    """What became of every job, rate and latencies."""
    jobs = len(tally.jobs.completed)
    rate = jobs / tally.elapsed_s if tally.elapsed_s else 0.0
    rows = {
        "jobs added": f"{len(tally.jobs.added):,}",
        "jobs done": f"{jobs:,}",
        "jobs lost": f"{len(tally.jobs.uncompleted):,}",
        "deliveries repeated": f"{tally.jobs.duplicates:,}",
        "jobs per second": f"{rate:,.0f}",
        "add to ack, p50 / p99": _milliseconds(tally.latencies_s),
        "take to ack, p50 / p99": _milliseconds(tally.hold_times_s),
        "definitions": f"{tally.total.definitions:,}",
        "files that are not valid Python": f"{tally.total.unparsable:,}",
    }
    table = Table(title="Summary", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _milliseconds(values_s: list[float]) -> str:
    return " / ".join(f"{percentile(values_s, percent) * 1000:,.0f} ms" for percent in (50, 99))


def nodes(tally: Tally) -> Table:
    """Who talked to each node, where copies were, and what happened to it."""
    table = Table(title="Nodes", title_justify="left")
    table.add_column("node")
    table.add_column("used by")
    table.add_column("copies of jobs", justify="right")
    table.add_column("end")
    for node in tally.nodes:
        table.add_row(node.name, node.part, f"{node.copies:,}", _end(node))
    return table


def _end(node: NodeTally) -> str:
    if node.killed_s is None:
        return "served all the time"
    killed = f"killed holding {node.held:,} jobs"
    return killed if node.back_s is None else f"{killed}, back in {node.back_s - node.killed_s:.1f} s"


def workers(tally: Tally) -> Table:
    """What each worker did."""
    table = Table(title="Workers", title_justify="left")
    table.add_column("worker")
    table.add_column("jobs", justify="right")
    table.add_column("definitions", justify="right")
    table.add_column("end")
    for worker in tally.workers:
        end = f"killed holding {len(worker.held)} jobs" if worker.killed else "finished"
        table.add_row(worker.name, f"{worker.acknowledged:,}", f"{worker.definitions:,}", end)
    return table


def disagreement(tally: Tally, direct: Count) -> str | None:
    """What is wrong with the result, or None."""
    if tally.total != direct:
        return f"the broker's workers counted {_words(tally.total)}, the direct count is {_words(direct)}"
    lost, unexpected = len(tally.jobs.uncompleted), len(tally.jobs.unexpected)
    if lost or unexpected:
        return f"{lost} jobs were lost, {unexpected} were delivered that nobody added"
    for node in tally.nodes:
        if node.killed_s is not None and not node.is_back:
            return f"{node.name} was killed and did not come back into the cluster"
    killed = [worker for worker in tally.workers if worker.killed]
    if killed and not tally.jobs.duplicates:
        return f"{killed[0].name} was killed holding {len(killed[0].held)} jobs, but no job was delivered again"
    return None


def _words(count: Count) -> str:
    return f"{count.definitions:,} definitions and {count.unparsable:,} unparsable files"
