"""Plots of a benchmark run: ratios to other brokers with their floors, growth curves, three nodes, and the log.

SVG with text elements and without a date, so that the same results give the same file.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt
from matplotlib.ticker import EngFormatter, FormatStrFormatter, LogLocator, NullFormatter

from cluster import ONE_NODE, RABBITMQ, THREE_NODES
from cluster_report import ROWS as CLUSTER_ROWS
from cluster_report import rates
from floors import BEANSTALKD, LISTS, RATES, STREAMS
from persistence import NONE, POLICIES, WINDOW_MS
from persistence_report import ratios as log_ratios
from report import GROWTH_TITLES, OURS, ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {OURS: "#1f6f8b", STREAMS: "#c0392b", LISTS: "#e59866", BEANSTALKD: "#6c7a3a"}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "disqued", "font.size": 9, "font.family": "sans-serif"}
LOG_LABELS = {"add1": "add", "add16": "add by 16", "get1": "get + ack", "get32": "get + ack by 32"}
ROW_STEP = 0.2  # between the brokers of one workload


def _ratio_chart(results: dict[str, Any]) -> Figure:
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    peers = [name for name in results["brokers"] if name != OURS]
    for position, row in enumerate(RATES):
        measured = results["comparison"].get(row.workload, {})
        for offset, peer in enumerate(peers):
            if peer not in measured:
                continue
            found = ratios(row, measured, peer)
            height = position + (offset - (len(peers) - 1) / 2) * ROW_STEP
            label = peer if position == 0 else None
            axes.plot([min(found), max(found)], [height, height], color=COLOURS[peer], linewidth=2, alpha=0.5)
            axes.plot(median(found), height, "o", color=COLOURS[peer], markersize=5, label=label)
            if peer in row.targets:
                axes.plot(row.targets[peer].floor, height, "|", color="black", markersize=9, markeredgewidth=1.5)
    axes.plot([], [], "|", color="black", markersize=9, markeredgewidth=1.5, label="floor")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [0.2, 0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"x{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(RATES)), [row.title.replace(", ", ",\n", 1) for row in RATES])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel("jobs per second, disqued divided by the other broker: median and range of the rounds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=4, frameon=False)
    return figure


def _curve(axes: Axes, what: str, curves: dict[str, Any]) -> None:
    for name, curve in curves.items():
        levels, costs = [point["level"] for point in curve], [point["cpu_us"] for point in curve]
        axes.plot(levels, costs, "o-", color=COLOURS[name], markersize=4, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.minorticks_off()
    axes.set_ylim(0, 1.15 * max(point["cpu_us"] for curve in curves.values() for point in curve))
    axes.set_xlabel(GROWTH_TITLES[what])
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", frameon=False)


def _growth_chart(results: dict[str, Any]) -> Figure:
    growth = results["growth"]
    figure, grid = plt.subplots(1, len(growth), figsize=(8, 2.8), layout="constrained", squeeze=False)
    for axes, (what, curves) in zip(grid[0], growth.items(), strict=True):
        _curve(axes, what, curves)
    grid[0][0].set_ylabel("CPU for the life of a job, us")
    return figure


def _cluster_chart(results: dict[str, Any]) -> Figure:
    """Jobs per second of three nodes and of their comparisons, from the slowest workload to the fastest."""
    measured = results["cluster"]
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    sides = ((THREE_NODES, "", "#1f6f8b"), (ONE_NODE, " on that core", "#8fb8c9"), (RABBITMQ, "", "#e67e22"))
    for side, words, colour in sides:
        places, values = [], []
        for place, row in enumerate(CLUSTER_ROWS):
            found = rates(measured, side, row.one_node if side == ONE_NODE else row.workload)
            if found:
                places.append(place)
                values.append(median(found))
        axes.plot(values, places, "o", color=colour, markersize=6, label=side + words)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_yticks(range(len(CLUSTER_ROWS)), [row.title for row in CLUSTER_ROWS])
    axes.invert_yaxis()
    axes.grid(axis="x", linewidth=0.4)
    axes.set_xlabel("jobs per second")
    axes.legend(loc="best", frameon=False)
    return figure


def _policy_axes(axes: Axes, measured: dict[str, Any]) -> None:
    """The throughput of each policy relative to that without a file."""
    rows = [(workload, policy) for workload in LOG_LABELS for policy in POLICIES if policy != NONE]
    for offset, broker in ((-ROW_STEP / 2, OURS), (ROW_STEP / 2, STREAMS)):
        for place, (workload, policy) in enumerate(rows):
            lines, without = (measured[workload][which].get(broker, []) for which in (policy, NONE))
            found = log_ratios(lines, without)
            if found:
                height, colour = place + offset, COLOURS[broker]
                axes.plot([min(found), max(found)], [height, height], color=colour, linewidth=2, alpha=0.5)
                label = broker if place == 0 else None
                axes.plot(median(found), height, "o", color=colour, markersize=4, label=label)
    axes.set_yticks(range(len(rows)), [f"{LOG_LABELS[workload]}, {policy}" for workload, policy in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.3)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel("jobs per second beside none")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=2, frameon=False)


def _rewrite_axes(axes: Axes, measured: dict[str, Any]) -> None:
    """The longest reply to an add in each tenth of a second around a rewrite."""
    for broker, rounds in measured.items():
        found, colour = rounds[-1], COLOURS[broker]
        longest = [(number * WINDOW_MS / 1000, window[3] / 1000) for number, window in enumerate(found["windows"])]
        axes.plot([at for at, _ in longest], [ms for _, ms in longest], color=colour, linewidth=1, label=broker)
        begin = found["began_s"]
        axes.axvspan(begin, begin + found["seconds"], color=colour, alpha=0.12, linewidth=0)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds; shaded: the rewrite")
    axes.set_ylabel("longest reply to an add, ms")
    axes.grid(color="#dddddd")
    axes.set_axisbelow(True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=2, frameon=False)


def _persistence_chart(results: dict[str, Any]) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    _policy_axes(left, results["policies"])
    _rewrite_axes(right, results["rewrites"])
    return figure


def draw(results: dict[str, Any], directory: Path, suffix: str = "svg") -> None:
    """Write the plots of the results into the directory."""
    charts = (
        ("comparison", "comparison", _ratio_chart),
        ("growth", "growth", _growth_chart),
        ("cluster", "cluster", _cluster_chart),
        ("persistence", "rewrites", _persistence_chart),
    )
    with plt.style.context(STYLE):
        for name, part, chart in charts:
            if part not in results:
                continue
            figure = chart(results)
            metadata = {"Date": None} if suffix == "svg" else None
            figure.savefig(directory / f"{name}.{suffix}", metadata=metadata)
            plt.close(figure)
