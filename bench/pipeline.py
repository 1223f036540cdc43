"""Measures rows per second into and out of queues with Spark, compared with code by hand, and the memory of a task.

    PYTHONPATH=build/compiled python bench/pipeline.py                 about twelve minutes; prints tables
    PYTHONPATH=build/compiled python bench/pipeline.py --document      the same, and updates docs/spark/performance.md
    python bench/pipeline.py --quick                                   one minute, to check that everything works

Each run starts a new broker, pinned to one core as in `run.py`. Spark uses the rest of the machine, which is little
more than one core if there are two. So compare the ratios within a line; the growth with executors is limited. Requires
Java and the development dependencies.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine
import pipeline_report
from brokers import BROKERS, Running

WORKLOADS = Path(__file__).with_name("pipeline_workloads.py")
FULL: dict[str, Any] = {
    "executors": (1, 2, 4),
    "jobs": {"into": 100_000, "out of": 600_000},
    "rounds": 5,
    "memory": (2_000, 20_000, 100_000),
}
QUICK: dict[str, Any] = {"executors": (1,), "jobs": {"into": 2_000, "out of": 2_000}, "rounds": 1, "memory": (200,)}


def _measure(parameters: dict[str, Any]) -> Any:
    """Run the workloads once, with a new broker."""
    with Running(BROKERS[0]) as broker:
        command = [sys.executable, str(WORKLOADS), json.dumps({**parameters, "port": broker.port})]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=dict(os.environ))
    if done.returncode != 0:
        raise SystemExit(f"bench: the workloads failed with exit code {done.returncode}")
    return json.loads(done.stdout.decode().splitlines()[-1])


def main() -> None:
    """Measure, print the tables, and update the page with `--document`."""
    parser = argparse.ArgumentParser(prog="pipeline", description="Compare the Spark connector with code by hand.")
    parser.add_argument("--quick", action="store_true", help="few jobs, one round")
    parser.add_argument("--document", action="store_true", help="update docs/spark/performance.md and its plot")
    chosen = parser.parse_args()
    sizes = QUICK if chosen.quick else FULL
    results: dict[str, Any] = {"machine": machine.describe(), "jobs": sizes["jobs"], "executors": {}}
    for executors in sizes["executors"]:
        parameters = {"executors": executors, "jobs": sizes["jobs"], "rounds": sizes["rounds"], "memory": []}
        results["executors"][str(executors)] = _measure(parameters)
    results["memory"] = _measure({"executors": 1, "jobs": {}, "rounds": 1, "memory": sizes["memory"]})
    for table in pipeline_report.tables(results):
        print(table.as_text(), end="\n\n")
    if chosen.document:
        pipeline_report.document(results)


if __name__ == "__main__":
    main()
