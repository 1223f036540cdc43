"""Reads the jobs of a queue from all nodes of a real cluster, with JSCAN."""

from __future__ import annotations

from typing import Any

from support.cluster import RealCluster


def jobs(cluster: RealCluster, queue: str) -> dict[bytes, dict[bytes, Any]]:
    """Return the unacknowledged jobs of a queue by ID, each as one of its nodes shows it."""
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
    """Return the sorted bodies of the unacknowledged jobs of a queue, including duplicates."""
    return sorted(job[b"body"] for job in jobs(cluster, queue).values())
