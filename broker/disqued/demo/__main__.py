"""`python -m disqued.demo`: run the demonstration and, on a terminal, keep the cluster running until Ctrl-C.

Exit status: 0 if both counts agree, 1 if they differ or the demonstration could not run, 2 for invalid arguments, 130
if it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path

from rich.console import Console

from disqued.build import FLAVOUR
from disqued.demo import summary
from disqued.demo.cluster import BrokerNode, Cluster, choose_ports, running_cluster
from disqued.demo.failing import BAD, DEAD, JOBS, LIMIT, QUEUE, FailingJobs
from disqued.demo.ordered import JOBS as ORDERED_JOBS
from disqued.demo.ordered import OrderedJobs
from disqued.demo.outage import Outage
from disqued.demo.pipeline import Pipeline
from disqued.demo.producer import COPIES
from disqued.demo.report import NodeReport, Report
from disqued.demo.source import count_directly, source_files, standard_library
from disqued.demo.tasks import COUNTS, GROUP, SUMS, TASKS
from disqued.demo.view import view
from disqued.demo.workers import PRODUCERS, Workers, WorkFailedError
from disqued.testing.processes import ProcessFailedError

MOST_WORKERS = 8

PARTS = ("producers", "workers", "nobody")
"""The processes that connect to each node first. The workers' node is the one that is killed."""

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run with these command line arguments and return the exit status."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        names = source_files(options.source)
        with running_cluster(choose_ports(options.port)) as cluster:
            _introduce(console, cluster, options, len(names))
            status = _demonstrate(console, cluster, options, names)
            if status == 0:
                failing = FailingJobs(cluster)
                _fail_and_redrive(console, failing)
                status = _run_pipeline(console, cluster, options.source, names) or _keep_order(console, cluster)
                if status == 0 and console.is_terminal:
                    _serve(console, cluster, failing)
            return status
    except (ProcessFailedError, WorkFailedError, ValueError) as error:
        console.print(f"The demonstration failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m disqued.demo", description="Run a cluster and kill a node.")
    parser.add_argument(
        "--source",
        type=_folder,
        default=standard_library(),
        help="folder with Python files (default: the standard library)",
    )
    parser.add_argument("--workers", type=_positive, default=min(MOST_WORKERS, cores + 1), help="worker processes")
    parser.add_argument("--retry", type=_positive, default=3, help="retry time of the jobs in seconds (default: 3)")
    parser.add_argument("--port", type=_positive, help="port of the first node (default: 7711, or a free port)")
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return path.resolve()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def _introduce(console: Console, cluster: Cluster, options: argparse.Namespace, files: int) -> None:
    console.print(f"Cluster: {', '.join(node.address for node in cluster.nodes)}, {FLAVOUR} build")
    console.print(f"Input:   {files:,} Python files of {options.source}", soft_wrap=True)
    console.print(
        f"Load:    {PRODUCERS} producers on node 1, {options.workers} workers on node 2 that parse the files, "
        f"{COPIES} copies of each job, retry time {options.retry} s",
        soft_wrap=True,
    )
    console.print("Faults:  node 2 is killed and restarted, and one worker is killed\n")


def _demonstrate(console: Console, cluster: Cluster, options: argparse.Namespace, names: list[str]) -> int:
    first, second, _ = cluster.nodes
    report = Report(len(names), [_node_report(node, part) for node, part in zip(cluster.nodes, PARTS, strict=True)])
    report.node_of = {node_id: report.nodes[node.number - 1] for node_id, node in cluster.ids().items()}
    workers = Workers(first.address, second.address, options.source, names, options.workers, options.retry)
    outage = Outage(cluster, second)
    with view(console, len(names)) as shown:

        def update(report: Report) -> None:
            outage.step(report)
            shown.reported(report)

        direct = count_directly(options.source, names, os.cpu_count() or 1, shown.counted)
        workers.run(report, update)
        outage.finish(report)
        shown.reported(report)
    console.print()
    console.print(summary.nodes(report))
    console.print(summary.workers(report))
    console.print(summary.figures(report))
    problem = summary.disagreement(report, direct)
    if problem is not None:
        console.print(f"FAILED: {problem}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        f"OK: {direct.definitions:,} definitions, the same as counted without the broker. No job was lost.",
        style="bold green",
        soft_wrap=True,
    )
    return 0


def _node_report(node: BrokerNode, part: str) -> NodeReport:
    return NodeReport(node.name, node.address, part)


def _command_line() -> str:
    """Return the command `disque` as the user can type it: the one of this environment unless one is on the path."""
    installed = Path(sys.executable).with_name("disque")
    return os.path.relpath(installed) if installed.exists() and shutil.which("disque") is None else "disque"


def _fail_and_redrive(console: Console, failing: FailingJobs) -> None:
    console.print(
        f"\nJobs that fail: {JOBS} mails, {len(BAD)} of them with an address that the worker cannot read. Each job may "
        f"fail {LIMIT} times (QCONF {QUEUE} SET limit {LIMIT}).",
        soft_wrap=True,
    )
    dead = failing.fail()
    console.print(f"{len(failing.done)} mails were sent. The others are dead letters, with the reason:\n")
    console.print(summary.dead_letters(DEAD, dead))
    failing.redrive()
    console.print(
        f"OK: the worker was repaired and the dead letters redriven (REDRIVE {DEAD}); {len(failing.done)} of {JOBS} "
        "mails were sent.",
        style="bold green",
        soft_wrap=True,
    )


def _run_pipeline(console: Console, cluster: Cluster, folder: Path, files: list[str]) -> int:
    console.print(
        f"\nA pipeline of {TASKS:,} tasks: {COUNTS} count a file each, after a task that lists them; {SUMS} add up "
        f"{GROUP} counts each, after all of these; one adds up the sums. Workers take them with claims and write to a "
        "table that refuses lower ones; some stop for longer than their lease. Nodes 2 and 3 are killed, one after the "
        "other, and come back without their jobs.\n",
        soft_wrap=True,
    )
    pipeline = Pipeline.of(cluster, folder, files, console.print)
    pipeline.run()
    console.print()
    console.print(summary.losses(pipeline))
    console.print(summary.tasks(pipeline))
    problem = pipeline.problem(pipeline.count_directly())
    if problem is not None:
        console.print(f"FAILED: {problem}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        f"OK: {pipeline.total:,} definitions, the same as counted without the broker. No task was lost or early, and "
        "no write under an old claim was accepted.",
        style="bold green",
        soft_wrap=True,
    )
    return 0


def _keep_order(console: Console, cluster: Cluster) -> int:
    console.print(
        f"\nAn ordered queue of {ORDERED_JOBS} numbered jobs, added one after the other, with a worker at each node. "
        "The queue has three replicas and serves one worker at a time (QNEW ORDERED SINGLE PREFETCH 1). The node that "
        "leads it and serves its active worker is killed, and comes back.\n",
        soft_wrap=True,
    )
    scene = OrderedJobs(cluster, partial(console.print, soft_wrap=True))
    scene.run()
    console.print()
    console.print(summary.ordered_workers(scene))
    console.print(summary.ordered_jobs(scene))
    problem = scene.problem()
    if problem is not None:
        console.print(f"FAILED: {problem}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        f"OK: {len(scene.done)} jobs were delivered in the order in which they were added, without a gap or an "
        "inversion, although the leader was killed.",
        style="bold green",
        soft_wrap=True,
    )
    return 0


def _serve(console: Console, cluster: Cluster, failing: FailingJobs) -> None:
    one, other, _ = cluster.nodes
    try:
        disque = _command_line()
        page = failing.leave_one()
        console.print("\nThe cluster keeps running. Try it in another terminal:\n")
        console.print(f"    {disque} -p {one.port} addjob greetings hello 0")
        console.print(f"    {disque} -p {other.port} getjob from greetings")
        console.print(f"    {disque} -p {one.port} top\n")
        console.print(f"One more mail could not be sent. See why in the console: {page}\n", soft_wrap=True)
        console.print("Press Ctrl-C to stop it.")
        while True:
            time.sleep(1)  # short waits: a signal that arrives just before a long one would not end it
    except KeyboardInterrupt:
        console.print("Stopped.")


if __name__ == "__main__":
    sys.exit(main())
