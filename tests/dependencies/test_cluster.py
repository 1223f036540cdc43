"""ADDJOB AFTER in a cluster: every holder of a held job watches its parents, and only good news frees it."""

from __future__ import annotations

import pytest

from dependencies.helping import ABSENT, add, call, held_at, job_at, length, queued_at, reply_of
from disqued.bus import kinds
from disqued.dependencies.parents import NEWS_KEPT_MS
from disqued.testing.cluster import Cluster
from support.fixtures import settled

RETRY_S = 10
LONG = ("REPLICATE", 3, "RETRY", 300)


def test_a_parent_at_another_node_frees_the_job_where_it_was_added(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2)
    child = add(cluster, first, "load", "AFTER", parent, *LONG)
    assert held_at(cluster, child) == cluster.members
    call(cluster, third, "ACKJOB", parent)
    cluster.run(milliseconds=200)
    assert queued_at(cluster, child) == [first]
    cluster.run(seconds=2)
    assert held_at(cluster, child) == []
    assert queued_at(cluster, child) == [first]


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_another_holder_queues_the_job_after_its_retry_time_if_its_node_is_gone(cluster: Cluster, copies: int) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", copies, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 3, "RETRY", RETRY_S)
    first.crash()
    cluster.run(seconds=20)
    call(cluster, second, "ACKJOB", parent)
    cluster.run(seconds=RETRY_S - 1)
    assert queued_at(cluster, child) == []
    cluster.run(seconds=3)
    assert len(queued_at(cluster, child)) == 1
    assert third in cluster.members


def test_a_side_without_news_never_delivers_the_job(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, third, "extract", "REPLICATE", 3, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 3, "RETRY", RETRY_S)
    cluster.partition([first, second], [third])
    cluster.run(seconds=20)
    third.admin.call("ACKJOB", parent)
    cluster.run(seconds=300)
    assert set(queued_at(cluster, child)) <= {third}
    assert set(held_at(cluster, child)) == {first, second}
    cluster.heal()
    cluster.run(seconds=40)
    assert held_at(cluster, child) == []
    assert len(queued_at(cluster, child)) == 1


def test_an_unknown_parent_is_not_done(cluster: Cluster) -> None:
    """All nodes that knew the parent have lost it: its children wait, and ELSE decides when its life must be over."""
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 1, "TTL", 600, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 1, "RETRY", RETRY_S)
    second.restart()
    cluster.run(seconds=500)
    assert held_at(cluster, child) == [first]
    cluster.run(seconds=250)
    assert queued_at(cluster, child) == []
    assert length(cluster, "load.dead") == 1
    assert third.admin.call("SHOW", parent) is None


def test_the_news_outlives_the_node_that_had_it(cluster: Cluster) -> None:
    """A holder that knows that a parent is done tells the others, although it never had the parent."""
    first, second, third = cluster.members
    done = add(cluster, third, "extract", "REPLICATE", 1, "RETRY", 300)
    other = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", done, "AFTER", other, "REPLICATE", 2, "RETRY", RETRY_S)
    (copy,) = [member for member in cluster.copies(child) if member is not first]
    cluster.cut(third, first)
    cluster.cut(first, third)
    call(cluster, third, "ACKJOB", done)
    if copy is third:
        return  # the other holder of the job is the one that had the parent
    cluster.run(seconds=1)
    third.restart()
    cluster.heal()
    cluster.run(seconds=40)
    call(cluster, second, "ACKJOB", other)
    cluster.run(seconds=NEWS_KEPT_MS // 1000 // 10)
    assert len(queued_at(cluster, child)) == 1


def test_a_job_whose_parent_is_known_to_too_few_nodes_is_refused(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, first, "extract", "REPLICATE", 3)
    cluster.partition([first], [second, third])
    cluster.run(seconds=20)
    client = first.client()
    client.send("ADDJOB", "load", "body", 2000, "REPLICATE", 1, "AFTER", parent)
    reply = str(reply_of(cluster, client, within_s=3))
    assert reply.startswith(f"NOPARENT {parent.decode()} is known to 1 reachable node, and at least 2 of the 3")
    cluster.heal()
    cluster.run(seconds=20)
    assert add(cluster, first, "load", "REPLICATE", 1, "AFTER", parent)


def test_the_copies_of_a_job_that_is_refused_are_deleted(cluster: Cluster) -> None:
    """RQ #1404: an unknown parent was ignored."""
    first = cluster.members[0]
    client = first.client()
    client.send("ADDJOB", "load", "body", 500, "REPLICATE", 3, "AFTER", ABSENT)
    assert str(reply_of(cluster, client, within_s=3)).startswith("NOPARENT")
    cluster.run(seconds=1)
    assert [int(member.node.state.lifecycle.table.count) for member in cluster.members] == [0, 0, 0]


@pytest.mark.parametrize("options", [("REPLICATE", 3, "ASYNC"), ("REPLICATE", 3, "SYNC", 1), ("REPLICATE", 1)])
def test_a_client_that_waits_for_no_copies_still_waits_until_the_parent_is_known(
    cluster: Cluster, options: tuple[str | int, ...]
) -> None:
    first, second, _ = cluster.members
    client = first.client()
    client.send("ADDJOB", "load", "body", 500, *options, "AFTER", ABSENT)
    assert str(reply_of(cluster, client, within_s=3)).startswith("NOPARENT")
    parent = add(cluster, second, "extract", "REPLICATE", 2)
    child = add(cluster, first, "load", *options, "AFTER", parent)
    cluster.run(seconds=2)
    assert len(held_at(cluster, child)) == options[1]


def test_a_leaving_node_hands_held_jobs_over(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 1, "RETRY", 300)
    first.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(seconds=5)
    (holder,) = held_at(cluster, child)
    assert holder in (second, third)
    call(cluster, second, "ACKJOB", parent)
    cluster.run(seconds=2)
    assert queued_at(cluster, child) == [holder]


def test_a_leaving_node_adds_held_jobs_at_other_nodes(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 1, "RETRY", 300)
    first.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.run(seconds=1)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 2, "RETRY", 300)
    cluster.run(seconds=1)
    assert first not in held_at(cluster, child)
    assert len(held_at(cluster, child)) == 2
    call(cluster, second, "ACKJOB", parent)
    cluster.run(seconds=2)
    assert len(queued_at(cluster, child)) == 1


def test_a_moved_job_still_waits(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 2, "RETRY", 300)
    assert call(cluster, first, "MOVEJOB", child, "TO", "other") == 1
    cluster.run(seconds=30)
    assert length(cluster, "other") == 0
    call(cluster, second, "ACKJOB", parent)
    cluster.run(seconds=2)
    assert length(cluster, "other") == 1
    assert held_at(cluster, child) == []


def test_a_dead_letter_waits_no_longer(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "TTL", 60)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 2, "RETRY", 300)
    cluster.run(seconds=75)
    assert length(cluster, "load.dead") == 1
    cluster.run(seconds=10)
    assert cluster.copies(child) == []


@pytest.mark.parametrize("action", ["dead", "drop"])
def test_the_next_holder_decides_if_the_first_one_is_gone(cluster: Cluster, action: str) -> None:
    parent = add(cluster, cluster.members[0], "extract", "REPLICATE", 3, "TTL", 60)
    child = add(cluster, cluster.members[0], "load", "AFTER", parent, "ELSE", action, *LONG)
    cluster.members[2].crash()
    cluster.run(seconds=90)
    assert held_at(cluster, child) == []
    dead = length(cluster, "load.dead")
    assert dead == (action == "dead")


def test_a_parent_that_lives_at_one_reachable_node_can_still_be_done(cluster: Cluster) -> None:
    """DELJOB at one of its holders does not delete the parent."""
    first, second, _ = cluster.members
    parent = add(cluster, first, "extract", "REPLICATE", 3, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, *LONG)
    call(cluster, second, "DELJOB", parent)
    cluster.run(seconds=100)
    assert held_at(cluster, child) == cluster.members
    call(cluster, first, "ACKJOB", parent)
    cluster.run(seconds=1)
    assert len(queued_at(cluster, child)) == 1


def test_federation_takes_the_job_only_when_it_is_free(cluster: Cluster) -> None:
    first, second, third = cluster.members
    parent = add(cluster, second, "extract", "REPLICATE", 2, "RETRY", 300)
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 2, "RETRY", 300)
    worker = third.client()
    worker.send("GETJOB", "FROM", "load")
    cluster.run(seconds=40)
    assert worker.silent
    call(cluster, second, "ACKJOB", parent)
    assert reply_of(cluster, worker) == [[b"load", child, b"body"]]


# --- nodes that do not know that jobs wait ----------------------------------------------------------------------------


def forget_after(cluster: Cluster, *members: int) -> None:
    """Have all nodes believe that these members do not know the attribute."""
    for member in cluster.members:
        member.node.state.features &= ~(kinds.FEATURE_AFTER if member.number in members else 0)
    for member in cluster.members:
        for other in cluster.members:
            peer = member.node.state.view.peers.get(other.id)
            if peer is not None and other.number in members:
                peer.features &= ~kinds.FEATURE_AFTER


def announcing_without(count: int, *unknowing: int) -> Cluster:
    """A cluster of which some members are of an earlier release."""
    cluster = settled(count)
    for member in cluster.members:
        if member.number in unknowing:
            state = member.node.state
            state.features &= ~kinds.FEATURE_AFTER
            state.config.cluster_node_timeout = state.config.cluster_node_timeout
            state.events.config_changed("cluster_announce_ip")
    cluster.run(seconds=5)
    forget_after(cluster, *unknowing)
    return cluster


def test_held_jobs_are_never_sent_to_nodes_that_would_deliver_them() -> None:
    cluster = announcing_without(4, 3, 4)
    first, second, third, fourth = cluster.members
    parent = add(cluster, first, "extract", "REPLICATE", 2, "RETRY", 300)
    cluster.forget_sent()
    child = add(cluster, first, "load", "AFTER", parent, "REPLICATE", 2, "RETRY", RETRY_S)
    assert set(cluster.copies(child)) == {first, second}
    call(cluster, first, "ACKJOB", parent)
    cluster.run(seconds=1)
    assert queued_at(cluster, child) == [first]
    assert set(cluster.copies(child)) == {first, second}
    worker = fourth.client()
    worker.send("GETJOB", "FROM", "load")
    assert reply_of(cluster, worker) == [[b"load", child, b"body"]], "a free job is like any other"
    assert not job_at(first, child).is_held
    assert third.node.state.lifecycle.table.get(child) is None


def test_too_few_nodes_that_know_the_attribute_are_named() -> None:
    cluster = announcing_without(3, 2, 3)
    first = cluster.members[0]
    parent = add(cluster, first, "extract", "REPLICATE", 1)
    client = first.client()
    client.send("ADDJOB", "load", "body", 500, "REPLICATE", 3, "AFTER", parent)
    assert str(reply_of(cluster, client)) == "NOREPL Not enough reachable nodes know AFTER: 1 of 3"
