"""ADDJOB in a cluster: which nodes count, and which of several faults is told."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.testing.cluster import Cluster
from membership.stories import flags

ONCE = "ERR With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
LATE = "ERR The specified DELAY is greater than TTL. Job refused since would never be delivered"
FEW = "NOREPL Not enough reachable nodes for the requested replication level"
LONG = "MAXLEN Queue is already longer than the specified MAXLEN count"
PAUSED = "PAUSED Queue paused in input, try later"


def answer(cluster: Cluster, *options: str | int, timeout: str | int = 1) -> str:
    """What the first node says to an ADDJOB at once or soon."""
    client = cluster.members[0].client()
    client.send("ADDJOB", "mail", "body", timeout, *options)
    cluster.until(lambda: not client.silent, within_s=1)
    return str(client.next_reply())


def test_the_first_error_in_the_order_of_checks_is_reported(cluster: Cluster) -> None:
    first = cluster.members[0]
    first.admin.add("mail", "body", "REPLICATE", 1)
    first.admin.call("PAUSE", "mail", "in")
    faults: list[tuple[str | int, ...]] = [
        ("MAXLEN", 1),
        ("REPLICATE", 4),
        ("TTL", 5, "DELAY", 5),
        ("RETRY", 0),
    ]
    assert answer(cluster) == PAUSED
    given: tuple[str | int, ...] = ()
    for options, text in zip(faults, (LONG, FEW, LATE, ONCE), strict=True):
        given += options
        assert answer(cluster, *given) == text
    assert answer(cluster, *given, timeout=-1) == "ERR timeout is negative"
    assert answer(cluster, *given, "TTL", 0, timeout=-1) == "ERR TTL must be a number > 0"


def test_an_at_most_once_job_needs_replicate_1_if_the_default_is_larger(cluster: Cluster) -> None:
    assert answer(cluster, "RETRY", 0) == ONCE
    assert answer(cluster, "RETRY", 0, "REPLICATE", 1).startswith("b'D-")
    assert answer(Cluster(1), "RETRY", 0).startswith("b'D-")


def test_failing_node_counts_for_the_default_copies_but_gets_none(cluster: Cluster) -> None:
    first, _, third = cluster.members
    third.crash()
    cluster.until(lambda: flags(first, third) == "fail", within_s=60)
    assert answer(cluster) == FEW
    assert answer(cluster, "REPLICATE", 2, timeout=1000).startswith("b'D-")


def test_a_node_that_leaves_gets_no_copies(cluster: Cluster) -> None:
    first, second, third = cluster.members
    third.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.until(lambda: first.sees == 1)
    assert answer(cluster, "REPLICATE", 3) == FEW
    client = first.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 2)
    cluster.run(milliseconds=20)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert cluster.copies(job_id) == [first, second]


def test_node_without_an_address_gets_no_copy(cluster: Cluster) -> None:
    view = cluster.members[0].node.state.view
    view.peers[cluster.members[2].id].flags |= kinds.NODE_NOADDR
    view.refresh()
    assert answer(cluster, "REPLICATE", 3) == FEW


def test_asynchronous_adds_are_checked_like_the_others(cluster: Cluster) -> None:
    assert answer(cluster, "ASYNC", "REPLICATE", 4) == FEW
    assert answer(cluster, "ASYNC", "RETRY", 0) == ONCE
    cluster.members[0].admin.call("PAUSE", "mail", "in")
    assert answer(cluster, "ASYNC") == PAUSED
