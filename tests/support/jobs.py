"""What a real cluster has in a queue, as JSCAN tells it."""

from __future__ import annotations

from typing import Any

from support.cluster import RealCluster


def jobs(cluster: RealCluster, queue: str) -> dict[bytes, dict[bytes, Any]]:
    """The jobs of a queue that are not finished, by ID, as one of their nodes shows them."""
    found: dict[bytes, dict[bytes, Any]] = {}
    for node in cluster.running:
        cursor = b"0"
        while True:
            cursor, page = node.call("JSCAN", cursor, "COUNT", 1000, "QUEUE", queue, "REPLY", "all")
            shown = [dict(zip(job[::2], job[1::2], strict=True)) for job in page]
            found.update((job[b"id"], job) for job in shown if job[b"state"] != b"acked")
            if cursor == b"0":
                break
    return found


def bodies(cluster: RealCluster, queue: str) -> list[bytes]:
    """The bodies of those jobs in order; one that is there twice counts twice."""
    return sorted(job[b"body"] for job in jobs(cluster, queue).values())
