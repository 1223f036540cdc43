"""A pipeline of tasks from end to end: claims, results and dependencies of a diamond, on both sides of a partition."""

from __future__ import annotations

from typing import Any

from dependencies.helping import add, call, held_at, queued_at
from disqued.testing.cluster import Cluster, Member

RETRY_S = 10


def claim(cluster: Cluster, member: Member, queue: str) -> tuple[bytes, int]:
    """Take the next job of a queue: its ID and the claim."""
    rows: Any = call(cluster, member, "GETJOB", "NOHANG", "WITHCLAIM", "FROM", queue)
    (_, job_id, _, *pairs) = rows[0]
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return job_id, int(fields[b"claim"])


def test_a_diamond_ends_with_the_results_of_the_last_workers_although_one_is_cut_off(cluster: Cluster) -> None:
    """The worker of a branch is cut off with its claim, another one does its task, and the first returns too late."""
    first, second, third = cluster.members
    options = ("REPLICATE", 3, "RETRY", RETRY_S, "RETAIN", 600)
    top = add(cluster, first, "extract", *options)
    left = add(cluster, second, "left", "AFTER", top, *options)
    right = add(cluster, third, "right", "AFTER", top, *options)
    bottom = add(cluster, first, "load", "AFTER", left, "AFTER", right, *options)
    job, token = claim(cluster, first, "extract")
    call(cluster, first, "ACKJOB", job, "CLAIM", token, "RESULT", "3 5 7")
    cluster.run(seconds=1)
    assert queued_at(cluster, left) == [second]
    assert queued_at(cluster, right) == [third]

    job, stale = claim(cluster, third, "right")
    cluster.partition([first, second], [third])
    cluster.run(seconds=RETRY_S + 5)
    (holder,) = [member for member in queued_at(cluster, right) if member is not third]
    _, newer = claim(cluster, holder, "right")
    assert newer > stale
    call(cluster, holder, "ACKJOB", right, "CLAIM", newer, "RESULT", "new")
    job, token = claim(cluster, second, "left")
    call(cluster, second, "ACKJOB", job, "CLAIM", token, "RESULT", "15")
    call(cluster, third, "ACKJOB", right, "CLAIM", stale, "RESULT", "old")
    cluster.run(seconds=1)
    assert held_at(cluster, bottom) == [third]
    cluster.heal()
    cluster.run(seconds=40)
    assert held_at(cluster, bottom) == []
    job, token = claim(cluster, queued_at(cluster, bottom)[0], "load")
    assert job == bottom
    for member in cluster.members:
        ends = call(cluster, member, "WAITJOB", top, left, right, "WITHRESULT", "TIMEOUT", 2000)
        assert ends == [[top, b"done", b"3 5 7"], [left, b"done", b"15"], [right, b"done", b"new"]]
