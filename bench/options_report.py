"""The tables of what options, settings and moves cost."""

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
    costs = Table("Options and settings, beside none in the same round", [*head, "bytes for a waiting job"], rows)
    return [costs, *_moves(results.get("moves", {}))]


def _moves(found: dict[str, list[dict[str, float]]]) -> list[Table]:
    """Moves per second, and the ratio to jobs that are added and acknowledged."""
    rows = []
    for name, rounds in found.items():
        ratio = median(line["moves_per_s"] / line["adds_and_acks_per_s"] for line in rounds)
        rates = [number(median(line[rate] for line in rounds)) for rate in ("adds_and_acks_per_s", "moves_per_s")]
        rows.append([name, rates[0], f"{rates[1]} (x{ratio:.2f})"])
    head = ["nodes", "added by 16 and acknowledged, jobs/s", "moved with MOVEJOB, jobs/s"]
    return [Table("Moves, beside jobs that are added and acknowledged", head, rows)] if rows else []


def _cell(lines: list[dict[str, Any]], without: list[dict[str, Any]]) -> str:
    rates = [line["jobs_per_s"] for line in lines]
    ratio = median(rate / plain["jobs_per_s"] for rate, plain in zip(rates, without, strict=True))
    return f"{number(median(rates))} (x{ratio:.2f})"
