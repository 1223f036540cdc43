"""Turns the JSON of a benchmark run into tables: plain text for a terminal, Markdown and plots for the documentation.

As a program, `python bench/report.py results.json` rewrites docs/performance.md between its two markers and draws the
plots beside it; the text around the markers stays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

import capacity_report
import cluster_report
import encryption_report
import options_report
import persistence_report
from floors import LATENCIES, MEMORY, PAUSE, RATES, WAITING_GROWTH, Row
from machine import ROOT
from page import renew
from tables import Table, number, verdict

DOCUMENT = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"
OURS = "disqued"
POINTS = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "longest"}
HALF_LOADS = (("half_add", "add", "ADDJOB"), ("half_cycle", "delivery", "From the add to a blocked worker"))
GROWTH_TITLES = {"waiting": "waiting jobs", "queues": "queues", "blocked": "blocked workers"}

Results = dict[str, Any]


def ratios(row: Row, measured: dict[str, Any], peer: str) -> list[float]:
    """Ours divided by the peer's, round by round."""
    pairs = zip(measured[OURS], measured[peer], strict=True)
    return [row.value(ours) / row.value(theirs) for ours, theirs in pairs]


def _ratio_cell(row: Row, measured: dict[str, Any], peer: str) -> str:
    if peer not in measured or OURS not in measured:
        return "-"
    found = ratios(row, measured, peer)
    spread = f" [{min(found):.2f}-{max(found):.2f}]" if len(found) > 1 else ""
    theirs = median(row.value(line) for line in measured[peer])
    return f"x{median(found):.2f}{spread}{verdict(median(found), row.targets.get(peer))} ({number(theirs)})"


def _comparison(results: Results, title: str, rows: tuple[Row, ...]) -> Table:
    names = [name for name in results["brokers"] if name != OURS]
    table = Table(title, ["workload", "disqued", *(f"beside {name}" for name in names)], [])
    for row in rows:
        measured = results["comparison"].get(row.workload, {})
        if OURS in measured:
            values = [row.value(line) for line in measured[OURS]]
            ours = f"{number(median(values))} {row.unit}"
            table.rows.append([row.title, ours, *(_ratio_cell(row, measured, name) for name in names)])
    return table


def _cpu(results: Results) -> Table:
    names = results["brokers"]
    table = Table("CPU of the broker for one job, us (user and system)", ["workload", *names], [])
    for row in RATES:
        measured = results["comparison"].get(row.workload, {})
        cells = [
            f"{median(line['server_cpu_us_per_job'] for line in measured[name]):.2f}" if name in measured else "-"
            for name in names
        ]
        table.rows.append([row.title, *cells])
    return table


def _distributions(results: Results) -> list[Table]:
    """Latency at half load as a distribution, and what the machine itself adds."""
    made = []
    for workload, kind, title in HALF_LOADS:
        measured = results["comparison"].get(workload, {})
        rows = [
            [name, *(number(median(line["latency_us"][kind][point] for line in lines)) for point in POINTS)]
            for name, lines in measured.items()
        ]
        made.append(Table(f"{title} at half load, us: medians of the rounds", ["broker", *POINTS.values()], rows))
    return made


def _noise(results: Results) -> str:
    gaps = [found["longest_ms"] for found in results["noise"]]
    lost = median(found["lost"] for found in results["noise"])
    return (
        f"noise: a process that only reads the clock on the broker's core pauses for up to {median(gaps):.1f} ms "
        f"[{min(gaps):.1f}-{max(gaps):.1f}] and loses {lost:.2%} of its time"
    )


def _limits(results: Results) -> Table:
    table = Table("Memory, pauses and growth", ["what", "disqued", "others"], [])
    sizes = results["sizes"]
    if "memory" in results:
        own = results["memory"][OURS]
        others = ", ".join(f"{name} {value:.0f}" for name, value in results["memory"].items() if name != OURS)
        title = f"bytes for a waiting job, 64-byte body, {sizes['memory']:,} jobs"
        table.rows.append([title, f"{own:.0f}{verdict(own, MEMORY)}", others or "-"])
    if "pauses_ms" in results:
        found = results["pauses_ms"]
        cell = f"{median(found):.0f} ms [{min(found):.0f}-{max(found):.0f}]{verdict(median(found), PAUSE)}"
        table.rows.append([f"longest reply while adding {sizes['pause']:,} jobs", cell, "-"])
    for what, curves in results.get("growth", {}).items():
        grown = {name: curve[-1]["cpu_us"] / curve[0]["cpu_us"] for name, curve in curves.items()}
        target = WAITING_GROWTH if what == "waiting" else None
        first, last = curves[OURS][0]["level"], curves[OURS][-1]["level"]
        title = f"cost of a job's life, {first:,.0f} to {last:,.0f} {GROWTH_TITLES[what]}"
        others = ", ".join(f"{name} x{value:.2f}" for name, value in grown.items() if name != OURS)
        table.rows.append([title, f"x{grown[OURS]:.2f}{verdict(grown[OURS], target)}", others or "-"])
    return table


def _longest(results: Results) -> list[Table]:
    """How long a command with much work makes other clients wait."""
    if "longest_ms" not in results:
        return []
    jobs = results["sizes"]["long"]
    rows = [
        [title, f"{median(found):.1f} ms [{min(found):.1f}-{max(found):.1f}]{verdict(median(found), PAUSE)}"]
        for title, found in results["longest_ms"].items()
    ]
    return [Table(f"Longest reply to another client, {jobs:,} jobs", ["while a client sends", "disqued"], rows)]


def _growth(results: Results) -> list[Table]:
    tables = []
    for what, curves in results.get("growth", {}).items():
        title = f"CPU for a job's life (add, get, acknowledge), us, by number of {GROWTH_TITLES[what]}"
        levels = [f"{point['level']:,.0f}" for point in next(iter(curves.values()))]
        rows = [[name, *(f"{point['cpu_us']:.2f}" for point in curve)] for name, curve in curves.items()]
        tables.append(Table(title, ["broker", *levels], rows))
    return tables


def tables(results: Results) -> list[Table]:
    """All results as tables."""
    made: list[Table] = []
    if "comparison" in results:
        made.append(_comparison(results, "Jobs per second, and the ratio to other brokers (higher is better)", RATES))
        made.append(_comparison(results, "Latency, and the ratio to other brokers (lower is better)", LATENCIES))
        made += _distributions(results)
        made.append(_cpu(results))
    made += encryption_report.tables(results)
    made += options_report.tables(results)
    made.append(_limits(results))
    made += _longest(results)
    made += _growth(results) + cluster_report.tables(results) + persistence_report.tables(results)
    made += capacity_report.tables(results)
    return [table for table in made if table.rows]


def with_earlier(results: Results, earlier: Results) -> Results:
    """The results with the parts of an earlier report that were not measured again, each with the run it is from."""
    head = {"date", "machine", "brokers", "sizes", "elapsed_s", "earlier"}
    kept = {part: found for part, found in earlier.items() if part not in results and part not in head}
    run = f"{earlier['date']}, commit {earlier['machine']['commit']}, {earlier['sizes']['rounds']} rounds"
    former = earlier.get("earlier", {})
    runs = {part: former.get(part, run) for part in kept}
    return {**kept, **results, "earlier": {**results.get("earlier", {}), **runs}}


def facts(results: Results) -> list[str]:
    """The environment of the measurement, one line for each fact."""
    lines = [f"{name}: {value}" for name, value in results["machine"].items() if value]
    settings = f"rounds: {results['sizes']['rounds']}, measured in {results['elapsed_s'] / 60:.1f} minutes"
    noise = [_noise(results)] if "noise" in results else []
    parts: dict[str, list[str]] = {}
    for part, run in results.get("earlier", {}).items():
        parts.setdefault(run, []).append(part)
    earlier = [f"measured earlier ({run}): {', '.join(names)}" for run, names in parts.items()]
    return [f"date: {results['date']}", *lines, *noise, settings, *earlier]


def as_text(results: Results) -> str:
    """The report for a terminal."""
    return "\n\n".join(["\n".join(facts(results)), *(table.as_text() for table in tables(results))])


def as_markdown(results: Results) -> str:
    """The report for the documentation; the plots it shows are drawn by `plot.draw`."""
    parts = ["\n".join(f"- {fact}" for fact in facts(results)), *(table.as_markdown() for table in tables(results))]
    images = [
        "![Ratios to other brokers, with their floors](performance/comparison.svg)",
        "![Cost of a job as the load grows](performance/growth.svg)",
        "![Three nodes beside one node and beside RabbitMQ](performance/cluster.svg)",
        "![The cost of the append-only file, and latency during a rewrite](performance/persistence.svg)",
    ]
    return "\n\n".join([parts[0], *images, *parts[1:]])


def update_document(results: Results) -> None:
    """Put the tables between the markers of docs/performance.md and draw its plots."""
    from plot import draw  # noqa: PLC0415 - matplotlib is needed here only, and is slow to import

    stored = PLOTS / "results.json"
    if stored.exists():
        results = with_earlier(results, json.loads(stored.read_text()))
    renew(DOCUMENT, BEGIN, END, f"\n{as_markdown(results)}\n")
    PLOTS.mkdir(exist_ok=True)
    stored.write_text(json.dumps(results, indent=1) + "\n")
    draw(results, PLOTS)


def main() -> None:
    """`report.py RESULTS.json` rewrites the documentation from a run."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: report.py RESULTS.json")
    update_document(json.loads(Path(sys.argv[1]).read_text()))


if __name__ == "__main__":
    main()
