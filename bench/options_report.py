"""The table of what options of ADDJOB cost."""

from __future__ import annotations

from statistics import median
from typing import Any

from options import WITHOUT
from tables import Table, number

_WORKLOADS = ("add16", "get32", "cycle")


def tables(results: dict[str, Any]) -> list[Table]:
    """Jobs per second with each option, and the ratio to the same round without it."""
    found = results.get("options", {})
    rows = []
    for name, measured in found.items():
        cells = [_cell(measured[workload], found[WITHOUT][workload]) for workload in _WORKLOADS]
        bytes_per_job = median(line["bytes_per_job"] for line in measured["add16"])
        rows.append([name, *cells, f"{bytes_per_job:.0f}"])
    head = ["option", "add by 16, jobs/s", "get + acknowledge by 32, jobs/s", "whole cycle, jobs/s"]
    return [Table("Options of ADDJOB, beside none in the same round", [*head, "bytes for a waiting job"], rows)]


def _cell(lines: list[dict[str, Any]], without: list[dict[str, Any]]) -> str:
    rates = [line["jobs_per_s"] for line in lines]
    ratio = median(rate / plain["jobs_per_s"] for rate, plain in zip(rates, without, strict=True))
    return f"{number(median(rates))} (x{ratio:.2f})"
