"""Rows per second into and out of queues with Spark, beside what one would write by hand, and the memory of a task.

    PYTHONPATH=build/compiled python bench/pipeline.py                 some six minutes; prints tables
    PYTHONPATH=build/compiled python bench/pipeline.py --document      the same, and renews docs/spark/performance.md
    python bench/pipeline.py --quick                                   a minute, to see that everything works

One broker, fresh, pinned to one core as in `run.py`; Spark has what is left of the machine, which with two cores is one
and a bit: ratios of one line are comparable, growth with executors ends early. Needs Java and the extras of `dev`.
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
FULL: dict[str, Any] = {"executors": (1, 2, 4), "jobs": 100_000, "rounds": 3, "memory": (2_000, 20_000, 100_000)}
QUICK: dict[str, Any] = {"executors": (1,), "jobs": 2_000, "rounds": 1, "memory": (200,)}


def _measure(said: dict[str, Any]) -> Any:
    """One run of the workloads against a broker of its own."""
    with Running(BROKERS[0]) as broker:
        command = [sys.executable, str(WORKLOADS), json.dumps({**said, "port": broker.port})]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=dict(os.environ))
    if done.returncode != 0:
        raise SystemExit(f"bench: the workloads ended with {done.returncode}")
    return json.loads(done.stdout.decode().splitlines()[-1])


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(prog="pipeline", description="Measure the Spark connector beside code by hand.")
    parser.add_argument("--quick", action="store_true", help="few jobs, one round")
    parser.add_argument("--document", action="store_true", help="renew docs/spark/performance.md with its plot")
    chosen = parser.parse_args()
    sizes = QUICK if chosen.quick else FULL
    results: dict[str, Any] = {"machine": machine.describe(), "jobs": sizes["jobs"], "executors": {}}
    for executors in sizes["executors"]:
        said = {"executors": executors, "jobs": sizes["jobs"], "rounds": sizes["rounds"], "memory": []}
        results["executors"][str(executors)] = _measure(said)
    results["memory"] = _measure({"executors": 1, "jobs": 1, "rounds": 1, "memory": sizes["memory"]})
    for table in pipeline_report.tables(results):
        print(table.as_text(), end="\n\n")
    if chosen.document:
        pipeline_report.document(results)


if __name__ == "__main__":
    main()
