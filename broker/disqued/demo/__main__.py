"""`python -m disqued.demo`: run the demonstration, then keep the cluster up until Ctrl-C if somebody watches.

Exit status: 0 when both counts agree, 1 when they do not or the demonstration could not run, 2 for wrong arguments, 130
when it was interrupted before its end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from rich.console import Console

from disqued.build import FLAVOUR
from disqued.demo import summary
from disqued.demo.cluster import BrokerNode, Cluster, choose_ports, running_cluster
from disqued.demo.crew import PRODUCERS, Crew, CrewFailedError
from disqued.demo.outage import Outage
from disqued.demo.producer import COPIES
from disqued.demo.source import count_directly, source_files, standard_library
from disqued.demo.tally import NodeTally, Tally
from disqued.demo.view import view
from disqued.testing.processes import ProcessFailedError

MOST_WORKERS = 8

PARTS = ("producers", "workers", "nobody")
"""Who begins at each node. The workers' node is the one that fails."""

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run with these command line arguments; the exit status."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        names = source_files(options.source)
        with running_cluster(choose_ports(options.port)) as cluster:
            _introduce(console, cluster, options, len(names))
            status = _demonstrate(console, cluster, options, names)
            if status == 0 and console.is_terminal:
                _serve(console, cluster)
            return status
    except (ProcessFailedError, CrewFailedError, ValueError) as error:
        console.print(f"The demonstration failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(prog="python -m disqued.demo", description="A cluster at work on real input.")
    parser.add_argument("--source", type=_folder, default=standard_library(), help="folder of Python files to count")
    parser.add_argument("--workers", type=_positive, default=min(MOST_WORKERS, cores + 1), help="worker processes")
    parser.add_argument("--retry", type=_positive, default=3, help="retry time of the jobs, in seconds")
    parser.add_argument("--port", type=_positive, help="the first node's port; 7711 if free, else any, when left out")
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return path.resolve()


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def _introduce(console: Console, cluster: Cluster, options: argparse.Namespace, files: int) -> None:
    console.print(f"Cluster: {', '.join(node.address for node in cluster.nodes)}, {FLAVOUR} build")
    console.print(f"Input:   {files:,} Python files of {options.source}", soft_wrap=True)
    console.print(
        f"Crew:    {PRODUCERS} producers at node 1, {options.workers} workers at node 2, "
        f"{COPIES} copies of each job, retry time {options.retry} s",
        soft_wrap=True,
    )
    console.print("         node 2 will be killed and started again, and one worker killed\n")


def _demonstrate(console: Console, cluster: Cluster, options: argparse.Namespace, names: list[str]) -> int:
    first, second, _ = cluster.nodes
    tally = Tally(len(names), [_told(node, part) for node, part in zip(cluster.nodes, PARTS, strict=True)])
    tally.node_of = {node_id: tally.nodes[node.number - 1] for node_id, node in cluster.ids().items()}
    crew = Crew(first.address, second.address, options.source, names, options.workers, options.retry)
    outage = Outage(cluster, second)
    with view(console, len(names)) as shown:

        def turn(tally: Tally) -> None:
            outage.step(tally)
            shown.reported(tally)

        direct = count_directly(options.source, names, os.cpu_count() or 1, shown.counted)
        crew.run(tally, turn)
        outage.finish(tally)
        shown.reported(tally)
    console.print()
    console.print(summary.nodes(tally))
    console.print(summary.workers(tally))
    console.print(summary.figures(tally))
    problem = summary.disagreement(tally, direct)
    if problem is not None:
        console.print(f"FAILED: {problem}", style="bold red", soft_wrap=True)
        return 1
    console.print(
        f"OK: {direct.definitions:,} definitions, the same as counted without the broker; no job was lost.",
        style="bold green",
        soft_wrap=True,
    )
    return 0


def _told(node: BrokerNode, part: str) -> NodeTally:
    return NodeTally(node.name, node.address, part)


def _serve(console: Console, cluster: Cluster) -> None:
    one, other, _ = cluster.nodes
    try:
        console.print(f"\nThe cluster keeps serving on {one.address} and the others. In another terminal:\n")
        console.print(f"    disque -p {one.port} addjob greetings hello 0")
        console.print(f"    disque -p {other.port} getjob from greetings")
        console.print(f"    disque -p {one.port} top\n")
        console.print("Ctrl-C ends it.")
        while True:
            time.sleep(1)  # not one long wait: a signal just before it would not end it
    except KeyboardInterrupt:
        console.print("Bye.")


if __name__ == "__main__":
    sys.exit(main())
