"""What tests of schedules share."""

from __future__ import annotations

from typing import cast

from disqued.client import Schedule, replies, wire
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient

MINUTE_S = 60
HOUR_MS = 3_600_000
START_MS = 1_800_000_000_000
"""2027-01-15 08:00:00 UTC, a multiple of every interval that divides an hour."""


def shown(client: LocalClient, name: str = "s") -> Schedule:
    return replies.schedule(cast("wire.Reply", client.call("SCHEDULE", name, "SHOW")))


def set_schedule(client: LocalClient, when: str = "every 1 m", *options: str | int, name: str = "s") -> None:
    assert client.call("SCHEDULE", name, "SET", when, "q", "work", *options) == b"OK"


def firing(cluster: Cluster, name: str = "s") -> Member:
    """The member that fires a schedule, which all members agree on."""
    nodes = {shown(member.admin, name).node for member in cluster.members if member.running}
    assert len(nodes) == 1, nodes
    (node_id,) = nodes
    return next(member for member in cluster.members if member.id.decode() == node_id)


def due_times(members: list[Member], queue: str = "q") -> list[int]:
    """The times, in milliseconds after START_MS, of the jobs that are queued on these members, each job counted."""
    found: list[int] = []
    for member in members:
        while True:
            rows = cast("list[list[bytes]]", member.admin.call("GETJOB", "NOHANG", "FROM", queue) or [])
            if not rows:
                break
            for row in rows:
                found.append(cast("int", member.admin.show(row[1])["due-ms"]) - START_MS)
                member.admin.call("ACKJOB", row[1])
    return sorted(found)
