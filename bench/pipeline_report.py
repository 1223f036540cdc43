"""Converts the results of `pipeline.py` to tables, and to docs/spark/performance.md with its plot.

`python bench/pipeline_report.py` updates the page from the results in docs/spark/performance.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from matplotlib import pyplot as plt
from matplotlib.ticker import EngFormatter

from floors import SPARK_CONSUME, SPARK_STREAM
from machine import ROOT
from tables import Table, number, verdict

PAGE: Final = ROOT / "docs" / "spark" / "performance.md"
FIGURES: Final = PAGE.with_suffix(".json")
PLOT: Final = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"
BY_HAND: Final = "foreachPartition, redis-py"
DIRECTIONS: Final = {"into": "Rows per second into a queue", "out of": "Jobs per second out of a queue, acknowledged"}
STEADY: Final = "The same without the start and the end of the query, or of the Spark job"
FLOORS: Final = {"connector, stream": SPARK_STREAM, "connector, consuming batch": SPARK_CONSUME}
COLOURS: Final = ("#1f6f8b", "#8fb8c9", "#c0392b", "#6c7a3a")
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "disqued", "font.size": 9, "font.family": "sans-serif"}


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Yield a table for each direction, one without the start, and one for memory."""
    for direction, title in DIRECTIONS.items():
        yield _rates(results, direction, title, results["jobs"][direction])
    yield _rates(results, "steady", STEADY, results["jobs"]["out of"])
    rows = [
        [f"{int(jobs):,}", f"{peak['write'] / 1024:.0f} MB", f"{peak['read'] / 1024:.0f} MB"]
        for jobs, peak in results["memory"].items()
    ]
    yield Table(
        "Peak memory of a task's Python worker, bodies of 10 kB in one partition",
        ["jobs", "writing", "consuming"],
        rows,
    )


def _rates(results: dict[str, Any], direction: str, title: str, jobs: int) -> Table:
    """Return the medians, each with the median and the range of its ratio to the code by hand in the same round."""
    table = Table(title, ["", *(f"{count} task{'s' * (count != '1')}" for count in results["executors"])], [])
    names = next(iter(results["executors"].values()))[direction]
    for name in names:
        cells = []
        for measured in results["executors"].values():
            spent, by_hand = measured[direction][name], measured[direction][BY_HAND]
            ratios = [theirs / ours for ours, theirs in zip(spent, by_hand, strict=True)]
            beside = f" x{median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]"
            beside += verdict(median(ratios), FLOORS.get(name))
            rate = number(jobs / median(spent))
            cells.append(rate if name == BY_HAND else f"{rate}{beside}")
        table.rows.append([name, *cells])
    return table


def _plot(results: dict[str, Any]) -> None:
    """Plot rows per second by the number of concurrent tasks."""
    with plt.rc_context(STYLE):
        figure, both = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
        counts = [int(count) for count in results["executors"]]
        for axes, (direction, title) in zip(both, DIRECTIONS.items(), strict=True):
            names = next(iter(results["executors"].values()))[direction]
            for name, colour in zip(names, COLOURS, strict=True):
                spent = [median(measured[direction][name]) for measured in results["executors"].values()]
                axes.plot(
                    counts, [results["jobs"][direction] / value for value in spent], "o-", color=colour, label=name
                )
            axes.set_title(title, fontsize=9)
            axes.set_xlabel("concurrent tasks")
            axes.set_xticks(counts)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(EngFormatter())
            axes.grid(color="#dddddd")
            axes.set_axisbelow(True)
            axes.legend(frameon=False, fontsize=7)
        figure.savefig(PLOT, metadata={"Date": None})
        plt.close(figure)


def document(results: dict[str, Any]) -> None:
    """Write the results, the plot and the part of the page between its markers."""
    FIGURES.write_text(json.dumps(results, indent=1) + "\n")
    _plot(results)
    facts = "\n".join(f"- {name}: {value}" for name, value in results["machine"].items() if value)
    parts = [facts, f"![rows per second]({PLOT.name})", *(table.as_markdown() for table in tables(results))]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}{after}")


if __name__ == "__main__":
    document(json.loads(FIGURES.read_text()))
