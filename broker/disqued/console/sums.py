"""Adds up what the members of the cluster tell the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from disqued.console.feed import ANSWERS, Feed
from disqued.console.selection import QueueSelection

TOTALS: Final = (
    "queued_jobs",
    "registered_jobs",
    "connected_clients",
    "blocked_clients",
    "used_memory",
    "maxmemory",
    "jobs_waiting_for_copies",
    "leaving_jobs_left",
)
"""Figures whose sums over all members are shown."""
_SUMMED: Final = ("len", "blocked", "imports", "jobs_in", "jobs_out", "dead", "leased", "delayed", "held")
DIFFERENT: Final = "different"
"""The pause of a queue that not all members pause in the same way."""


def totals(feeds: Iterable[Feed]) -> dict[str, Any]:
    """The sums of the figures of all members that answer."""
    answering = [feed for feed in feeds if feed.state == ANSWERS]
    sums: dict[str, Any] = {name: sum(feed.figures.get(name, 0) for feed in answering) for name in TOTALS}
    rates = [feed.request_rate for feed in answering]
    known = [rate for rate in rates if rate is not None]
    return sums | {
        "answering": len(answering),
        "requests_per_s": sum(known) if known else None,
        "registered_queues": max((feed.figures.get("registered_queues", 0) for feed in answering), default=0),
    }


def longest(feeds: Iterable[Feed], selection: QueueSelection) -> list[bytes]:
    """The names of the selected queues of all members together, as many as a page shows."""
    lengths: dict[bytes, int] = {}
    for feed in feeds:
        for name, length in feed.selection.lengths.items():
            lengths[name] = lengths.get(name, 0) + length
    return sorted(lengths, key=lambda name: selection.rank(name, lengths[name]))[: selection.most]


def queue_sums(feeds: Mapping[str, Feed], name: bytes) -> dict[str, Any] | None:
    """The figures of a queue, added up over all members by their IDs; None if no member has it."""
    found = {node: feed.queues[name] for node, feed in feeds.items() if name in feed.queues}
    if not found:
        return None
    rows = list(found.values())
    if rows[0]["ordered"]:  # every member tells the figures of its leader
        found = dict([next(iter(found.items()))])
        rows = rows[:1]
    pauses = {row["pause"] for row in rows}
    limits = sorted(row["limited"] for row in rows if row["limited"] != "no")
    rates = [rate for node in found if (rate := feeds[node].rate(name)) is not None]
    return {
        "queue": rows[0]["queue"],
        "shown": rows[0]["shown"],
        **{key: sum(row[key] for row in rows) for key in _SUMMED},
        "age_s": max(row["age_s"] for row in rows),
        "idle_s": min(row["idle_s"] for row in rows),
        "in_per_s": sum(rate[0] for rate in rates) if rates else None,
        "out_per_s": sum(rate[1] for rate in rates) if rates else None,
        "pause": pauses.pop() if len(pauses) == 1 else DIFFERENT,
        "limited": limits[0] if limits else "no",
        "members": len(rows),
    }


def queue_rows(feeds: Mapping[str, Feed], name: bytes) -> list[dict[str, Any]]:
    """The figures of a queue at each member that has it."""
    rows = []
    for node, feed in feeds.items():
        if name in feed.queues:
            rate = feed.rate(name)
            row = {key: feed.queues[name][key] for key in ("len", "blocked", "imports", "idle_s", "pause", "limited")}
            into, out = (None, None) if rate is None else rate
            rows.append({"id": node, **row, "in_per_s": into, "out_per_s": out})
    return rows
