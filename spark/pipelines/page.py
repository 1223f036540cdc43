"""The report as one HTML page that needs nothing else: no network, no scripts, and it can be printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from pipelines.charts import duration, fates, name, number, ranges, size, spread
from pipelines.figures import Distribution, Row


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page shows."""

    source: str
    """Where the jobs were read,"""
    is_log: bool
    """and whether from files."""
    as_of: datetime
    totals: Row
    """Sums over all queues: `queues`, `jobs`, `waiting`, `finished`, `expired`, `retried`."""
    shown: Sequence[Row]
    """The rows of the table,"""
    hidden: int
    """how many queues have none,"""
    drawn: Sequence[Row]
    """and the rows of the queues that are drawn, with the others put together."""
    distributions: Sequence[Distribution]


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    text: str
    empty: str
    columns: Callable[[Sequence[float]], list[str]]


_CHARTS: Final = {
    "age_s": _Chart(
        "How old waiting jobs are",
        "Since they were created, for jobs that are neither finished nor over their time.",
        "No job waits.",
        lambda edges: ranges(edges, duration),
    ),
    "finish_s": _Chart(
        "How long jobs took until they were finished",
        "From creation to the end, at least: the log has no times of its own, but the creation of the jobs around. On "
        "a busy node that is as good as the time itself; the column “at most” of the table is the other bound.",
        "No finished job whose time is known: live nodes forget finished jobs, files tell of them (--aof).",
        lambda edges: ranges(edges, duration),
    ),
    "tries": _Chart(
        "How often jobs were tried again",
        "Given back by workers (NACK), or queued again because no acknowledgement came within the retry time. "
        "{counters}",
        "No jobs.",
        lambda edges: ranges(edges, number, whole=True),
    ),
    "body_size": _Chart(
        "How long bodies are", "Of all jobs.", "No jobs.", lambda edges: ranges(edges, size),
    ),
}  # fmt: skip
_COUNTERS: Final = {
    True: "A file has the counters as they were when the job was written: at its creation, or when the node wrote the "
    "file anew. So these are lower bounds; live nodes know the counters of now.",
    False: "The highest count that a node has.",
}

_TABLE: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("jobs", lambda row: f"{row['jobs']:,}"),
    ("waiting", lambda row: f"{row['waiting']:,}"),
    ("finished", lambda row: f"{row['finished']:,}"),
    ("expired", lambda row: f"{row['expired']:,}"),
    ("oldest", lambda row: duration(row["age_max_s"])),
    ("age p50", lambda row: duration(row["age_p50_s"])),
    ("took p50", lambda row: duration(row["finish_p50_s"])),
    ("p95", lambda row: duration(row["finish_p95_s"])),
    ("p99", lambda row: duration(row["finish_p99_s"])),
    ("p95 at most", lambda row: duration(row["finish_most_p95_s"])),
    ("retried", lambda row: f"{row['retried']:,}"),
    ("most tries", lambda row: f"{row['tries_max'] or 0:,}"),
    ("body p50", lambda row: size(row["body_p50"])),
    ("body max", lambda row: size(row["body_max"])),
)
"""The columns of the table, behind the queue."""

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #fff; max-width: 68rem; margin: 2rem auto;
  padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .25rem; }
p { margin: .25rem 0 .75rem; color: #52606d; max-width: 48rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.tiles li { border: 1px solid #d9e2ec; border-radius: .5rem; padding: .5rem 1rem; min-width: 6rem; }
.tiles b { display: block; font-size: 1.4rem; font-weight: 600; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #e4e7eb; }
th:first-child, td:first-child { text-align: left; font-family: ui-monospace, monospace; }
th { color: #52606d; font-weight: 600; } .old { color: #b44420; font-weight: 600; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } svg { break-inside: avoid; } }
"""


def render(report: Report) -> str:
    """The page."""
    tiles = "".join(f"<li><b>{number(report.totals[key])}</b>{key}</li>" for key in report.totals)
    charts = "".join(_chart(found, is_log=report.is_log) for found in report.distributions)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Jobs</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>\n"
        f"<h1>Jobs of {escape(report.source)}</h1>\n"
        f"<p>As of {report.as_of:%Y-%m-%d %H:%M:%S} UTC"
        f"{', when the youngest job of the log was created' if report.is_log else ''}.</p>\n"
        f'<ul class="tiles">{tiles}</ul>\n'
        f"<h2>What became of them</h2>\n{_wide(fates(report.drawn)) if report.drawn else '<p>No jobs.</p>'}\n"
        f"{charts}<h2>Queues</h2>\n{_table(report)}\n</body></html>\n"
    )


def _wide(inside: str) -> str:
    return f'<div class="wide">{inside}</div>'


def _chart(found: Distribution, *, is_log: bool) -> str:
    chart = _CHARTS[found.name]
    text = chart.text.replace("{counters}", _COUNTERS[is_log])
    body = _wide(spread(found, chart.columns(found.edges))) if found.total else f"<p>{escape(chart.empty)}</p>"
    return f"<h2>{escape(chart.title)}</h2>\n<p>{escape(text) if found.total else ''}</p>\n{body}\n"


def _table(report: Report) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head, _ in _TABLE)
    rows = "".join(
        f'<tr><td title="{escape(row["queue"])}">{escape(name(row["queue"]))}</td>'
        + "".join(f"<td>{escape(shown(row))}</td>" for _, shown in _TABLE)
        + "</tr>\n"
        for row in report.shown
    )
    more = f"<p>{report.hidden:,} queues with fewer jobs are in the Parquet only.</p>" if report.hidden else ""
    return _wide(f"<table><thead><tr><th>queue</th>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>") + more
