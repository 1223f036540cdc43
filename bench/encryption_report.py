"""The table of what TLS costs."""

from __future__ import annotations

from statistics import median
from typing import Any

from encryption import PLAIN, TLS
from tables import Table, number

OURS = "disqued"


def tables(results: dict[str, Any]) -> list[Table]:
    """Jobs per second with TLS beside those without, and beside those of the other brokers."""
    found = results.get("encryption", {})
    rows = []
    for name, encrypted in found.get(TLS, {}).items():
        without = found[PLAIN][name]
        rates, plain, ours = (_rates(lines) for lines in (encrypted, without, found[TLS][OURS]))
        cost = f"{_cpu_us(encrypted):.1f} ({_cpu_us(without):.1f})"
        beside = _ratio(ours, rates) if name != OURS else "-"
        rows.append([name, number(median(rates)), f"{_ratio(rates, plain)} ({number(median(plain))})", beside, cost])
    head = ["broker", "jobs/s with TLS", "beside the same without TLS", "disqued beside it, both with TLS"]
    title = "Whole cycle with TLS 1.3, 10 producers, 40 blocked workers"
    return [Table(title, [*head, "CPU of the broker for a job, us (without TLS)"], rows)]


def _rates(lines: list[dict[str, Any]]) -> list[float]:
    return [line["jobs_per_s"] for line in lines]


def _cpu_us(lines: list[dict[str, Any]]) -> float:
    return float(median(line["server_cpu_us_per_job"] for line in lines))


def _ratio(ours: list[float], theirs: list[float]) -> str:
    """The median of the ratios of all rounds, and their range."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    spread = f" [{min(ratios):.2f}-{max(ratios):.2f}]" if len(ratios) > 1 else ""
    return f"x{median(ratios):.2f}{spread}"
