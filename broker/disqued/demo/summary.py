"""The result of the demonstration: nodes, workers, the account of all jobs, and whether both counts agree."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from disqued.client import JobDetails
from disqued.demo.ordered import OrderedJobs
from disqued.demo.pipeline import Pipeline
from disqued.demo.report import NodeReport, Report, percentile
from disqued.demo.source import Count


def figures(report: Report) -> Table:
    """Return a table with the account of all jobs, the throughput and the latencies."""
    jobs = len(report.jobs.completed)
    rate = jobs / report.elapsed_s if report.elapsed_s else 0.0
    rows = {
        "jobs added": f"{len(report.jobs.added):,}",
        "jobs done": f"{jobs:,}",
        "jobs lost": f"{len(report.jobs.uncompleted):,}",
        "deliveries repeated": f"{report.jobs.duplicates:,}",
        "jobs per second": f"{rate:,.0f}",
        "add to ack, p50 / p99": _milliseconds(report.latencies_s),
        "fetch to ack, p50 / p99": _milliseconds(report.hold_times_s),
        "definitions": f"{report.total.definitions:,}",
        "files that are not valid Python": f"{report.total.unparsable:,}",
    }
    table = Table(title="Summary", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _milliseconds(values_s: list[float]) -> str:
    return " / ".join(f"{percentile(values_s, percent) * 1000:,.0f} ms" for percent in (50, 99))


def nodes(report: Report) -> Table:
    """Return a table of the nodes: their clients, their copies and what happened to them."""
    table = Table(title="Nodes", title_justify="left")
    table.add_column("node")
    table.add_column("used by")
    table.add_column("copies of jobs", justify="right")
    table.add_column("end")
    for node in report.nodes:
        table.add_row(node.name, node.part, f"{node.copies:,}", _end(node))
    return table


def _end(node: NodeReport) -> str:
    if node.killed_s is None:
        return "never stopped"
    killed = f"killed holding {node.held:,} jobs"
    return killed if node.back_s is None else f"{killed}, back in {node.back_s - node.killed_s:.1f} s"


def workers(report: Report) -> Table:
    """Return a table of the workers and their results."""
    table = Table(title="Workers", title_justify="left")
    table.add_column("worker")
    table.add_column("jobs", justify="right")
    table.add_column("definitions", justify="right")
    table.add_column("end")
    for worker in report.workers:
        end = f"killed holding {len(worker.held)} jobs" if worker.killed else "finished"
        table.add_row(worker.name, f"{worker.acknowledged:,}", f"{worker.definitions:,}", end)
    return table


def dead_letters(queue: str, jobs: Sequence[JobDetails]) -> Table:
    """Return a table of dead letters and why they are ones."""
    table = Table(title=f"Dead letters in {queue}", title_justify="left")
    table.add_column("job")
    table.add_column("failed in")
    table.add_column("attempts", justify="right")
    table.add_column("reason")
    for job in sorted(jobs, key=lambda job: job.body or b""):
        body = (job.body or b"").decode("utf-8", "replace")
        table.add_row(body, job.origin_queue, str(job.attempts_before), job.reason)
    return table


def losses(pipeline: Pipeline) -> Table:
    """Return a table of the nodes that were killed and lost their jobs, and when the copies were back."""
    table = Table(title="Nodes killed, without a file", title_justify="left")
    table.add_column("node")
    table.add_column("copies lost", justify="right")
    table.add_column("copies made again", justify="right")
    table.add_column("whole again after", justify="right")
    for loss in pipeline.losses:
        table.add_row(loss.node.name, f"{loss.held:,}", f"{loss.rebuilt:,}", f"{loss.whole_s:.1f} s")
    return table


def tasks(pipeline: Pipeline) -> Table:
    """Return a table with the account of all tasks."""
    account = pipeline.account
    rows = {
        "tasks added": f"{len(account.ids):,}",
        "tasks done": f"{len(account.done):,}",
        "tasks lost": f"{len(account.ids) - len(account.done):,}",
        "delivered before their parents were done": f"{len(account.early):,}",
        "deliveries repeated": f"{account.deliveries - len(account.ids):,}",
        "writes under an old claim": f"{account.late_writes:,}",
        "accepted of these": f"{account.accepted:,}",
        "wait of urgent tasks, p50 / p99": _milliseconds(list(account.waits_of(urgent=True))),
        "wait of the others, p50 / p99": _milliseconds(list(account.waits_of(urgent=False))),
    }
    table = Table(title="Tasks", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def ordered_workers(scene: OrderedJobs) -> Table:
    """Return a table of the workers of the ordered queue, in the order in which they got jobs."""
    table = Table(title="Workers of the ordered queue", title_justify="left")
    table.add_column("worker")
    table.add_column("first job", justify="right")
    table.add_column("last job", justify="right")
    table.add_column("jobs", justify="right")
    for worker, deliveries in scene.order.by_worker().items():
        numbers = [delivery.number for delivery in deliveries]
        table.add_row(worker, f"{numbers[0]:,}", f"{numbers[-1]:,}", f"{len(set(numbers)):,}")
    return table


def ordered_jobs(scene: OrderedJobs) -> Table:
    """Return a table with the account of the jobs of the ordered queue."""
    order = scene.order
    rows = {
        "jobs added": f"{scene.added:,}",
        "jobs done": f"{len(scene.done):,}",
        "deliveries repeated": f"{order.repeated():,}",
        "gaps": f"{len(order.gaps()):,}",
        "inversions": f"{len(order.inversions()):,}",
        "next add accepted after the leader was killed": f"{scene.accepted_s:.1f} s",
        "next job delivered": f"{scene.delivered_s:.1f} s",
    }
    table = Table(title="Ordered jobs", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def disagreement(report: Report, direct: Count) -> str | None:
    """Return what is wrong with the result, or None."""
    if report.total != direct:
        return f"the workers counted {_words(report.total)}, the count without the broker is {_words(direct)}"
    lost, unexpected = len(report.jobs.uncompleted), len(report.jobs.unexpected)
    if lost or unexpected:
        return f"{lost} jobs were lost, {unexpected} jobs were delivered that no producer added"
    for node in report.nodes:
        if node.killed_s is not None and not node.is_back:
            return f"{node.name} was killed and did not rejoin the cluster"
    killed = [worker for worker in report.workers if worker.killed]
    if killed and not report.jobs.duplicates:
        return f"{killed[0].name} was killed holding {len(killed[0].held)} jobs, but no job was delivered again"
    return None


def _words(count: Count) -> str:
    return f"{count.definitions:,} definitions and {count.unparsable:,} unparsable files"
