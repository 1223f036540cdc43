"""Renders the report as one self-contained HTML page, without network access or scripts, and printable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final

from pipelines.aggregates import Distribution, Row
from pipelines.charts import distribution_chart, duration, name, number, outcome_chart, ranges, size


@dataclass(frozen=True, slots=True)
class Report:
    """The contents of the page."""

    source: str
    """The files or nodes that the jobs were read from."""
    is_log: bool
    """Whether the source is files."""
    as_of: datetime
    totals: Row
    """Sums over all queues: `queues`, `jobs`, `waiting`, `finished`, `expired`, `retried`."""
    shown: Sequence[Row]
    """The rows of the table."""
    hidden: int
    """The number of queues that are not in the table."""
    drawn: Sequence[Row]
    """The rows of the queues in the charts, with the other queues combined."""
    distributions: Sequence[Distribution]


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    text: str
    empty: str
    columns: Callable[[Sequence[float]], list[str]]


_CHARTS: Final = {
    "age_s": _Chart(
        "Age of waiting jobs",
        "The time since creation, for jobs that are neither finished nor expired.",
        "No jobs are waiting.",
        lambda edges: ranges(edges, duration),
    ),
    "finish_s": _Chart(
        "Time to finish",
        "A lower bound of the time from creation to the end. The log has no times except the creation times of jobs, "
        "which bound the others. On a busy node, the bounds are close to each other. The column “p95 at most” of the "
        "table is the upper bound.",
        "No finished jobs with a known time: live nodes forget finished jobs. Read append-only files instead (--aof).",
        lambda edges: ranges(edges, duration),
    ),
    "tries": _Chart(
        "Retries",
        "The number of times that a worker returned a job (NACK), or that it was requeued because no acknowledgement "
        "arrived within its retry time. {counters}",
        "No jobs.",
        lambda edges: ranges(edges, number, whole=True),
    ),
    "body_size": _Chart(
        "Body size", "The sizes of the bodies of all jobs.", "No jobs.", lambda edges: ranges(edges, size),
    ),
}  # fmt: skip
_COUNTERS: Final = {
    True: "A file has the counters from when the job was written: at its creation, or when the node rewrote the file. "
    "So these are lower bounds. Live nodes have the current counters.",
    False: "The highest count of any node.",
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
"""The columns of the table after the queue."""

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
    """Return the page as HTML."""
    tiles = "".join(f"<li><b>{number(report.totals[key])}</b>{key}</li>" for key in report.totals)
    charts = "".join(_chart(found, is_log=report.is_log) for found in report.distributions)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Jobs</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>\n"
        f"<h1>Jobs of {escape(report.source)}</h1>\n"
        f"<p>As of {report.as_of:%Y-%m-%d %H:%M:%S} UTC"
        f"{', the creation time of the newest job in the log' if report.is_log else ''}.</p>\n"
        f'<ul class="tiles">{tiles}</ul>\n'
        f"<h2>Outcomes</h2>\n{_wide(outcome_chart(report.drawn)) if report.drawn else '<p>No jobs.</p>'}\n"
        f"{charts}<h2>Queues</h2>\n{_table(report)}\n</body></html>\n"
    )


def _wide(inside: str) -> str:
    return f'<div class="wide">{inside}</div>'


def _chart(found: Distribution, *, is_log: bool) -> str:
    chart = _CHARTS[found.name]
    text = chart.text.replace("{counters}", _COUNTERS[is_log])
    body = (
        _wide(distribution_chart(found, chart.columns(found.edges))) if found.total else f"<p>{escape(chart.empty)}</p>"
    )
    return f"<h2>{escape(chart.title)}</h2>\n<p>{escape(text) if found.total else ''}</p>\n{body}\n"


def _table(report: Report) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head, _ in _TABLE)
    rows = "".join(
        f'<tr><td title="{escape(row["queue"])}">{escape(name(row["queue"]))}</td>'
        + "".join(f"<td>{escape(shown(row))}</td>" for _, shown in _TABLE)
        + "</tr>\n"
        for row in report.shown
    )
    more = f"<p>{report.hidden:,} queues with fewer jobs are only in the Parquet output.</p>" if report.hidden else ""
    return _wide(f"<table><thead><tr><th>queue</th>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>") + more
