"""Quarantine: a node whose clock is too far ahead of the others accepts no new jobs, and does everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.client.errors import ClockError, ResponseError
from disqued.config import Config
from disqued.server.health import why_not_ready
from disqued.testing.cluster import Cluster, Member
from membership.stories import ScriptedNode, config, figures, logged
from support.asking import ask

LIMIT_MS = 1000
AHEAD_MS = 5000
LONG_ENOUGH_S = 30


def limited() -> Config:
    return config(cluster_max_clock_skew=LIMIT_MS)


def quarantined(cluster: Cluster) -> list[int]:
    """The numbers of the nodes in quarantine."""
    return [member.number for member in cluster.members if figures(member)["cluster_clock_quarantine"] == "1"]


def refusal(member: Member, *words: bytes | str | int) -> str:
    reply = member.admin.call(*words)
    assert isinstance(reply, ClockError), reply
    return str(reply)


def accepts_jobs(member: Member) -> bool:
    return isinstance(member.admin.call("ADDJOB", "q", "body", 0, "REPLICATE", 1), bytes)


def a_cluster_with_fast_nodes(count: int, *fast: int, of: Callable[[], Config] = limited) -> Cluster:
    cluster = Cluster(count, config=of)
    for number in fast:
        cluster.members[number].skew_ms = AHEAD_MS
    cluster.run(seconds=LONG_ENOUGH_S)
    return cluster


def test_node_ahead_of_the_others_refuses_new_jobs_and_is_not_ready() -> None:
    cluster = a_cluster_with_fast_nodes(5, 2)
    fast = cluster.members[2]
    assert quarantined(cluster) == [fast.number]
    for words in (("ADDJOB", "q", "body", 0), ("ADDTO", "2", "q", "r", "body", 0)):
        text = refusal(fast, *words)
        assert text.startswith("CLOCK The clock of this node is ")
        assert f"at most {LIMIT_MS} ms" in text
    ahead_ms = int(refusal(fast, "ADDJOB", "q", "body", 0).split(" is ")[1].split(" ms")[0])
    assert abs(ahead_ms - AHEAD_MS) <= 2
    assert abs(int(figures(fast)["cluster_clock_ahead_ms"]) - AHEAD_MS) <= 2
    assert why_not_ready(fast.node).startswith("CLOCK ")
    assert len(logged(fast, "Clock quarantine begins")) == 1
    assert accepts_jobs(cluster.members[0])
    assert why_not_ready(cluster.members[0].node) == ""


def test_node_in_quarantine_holds_delivers_acknowledges_and_requeues() -> None:
    cluster = a_cluster_with_fast_nodes(5, 2)
    fast, other = cluster.members[2], cluster.members[0]
    other.admin.send("ADDJOB", "q", "body", 0, "REPLICATE", 5, "RETRY", 10)
    cluster.run(seconds=1)
    copied = other.admin.next_reply()
    assert isinstance(copied, bytes)
    assert fast.admin.show(copied)
    assert other.admin.take("q") == [copied]
    fast.admin.send("GETJOB", "FROM", "q")
    cluster.run(seconds=15)
    again = fast.admin.next_reply()
    assert again == [[b"q", copied, b"body"]]
    assert fast.admin.call("NACK", copied) == 1
    assert fast.admin.take("q") == [copied]
    assert ask(fast.admin, "WORKING", copied) > 0
    assert fast.admin.call("ACKJOB", copied) == 1
    cluster.run(seconds=10)
    assert all(not member.admin.show(copied) for member in cluster.members)


def test_node_in_quarantine_gives_no_claims() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast, other = cluster.members[1], cluster.members[0]
    other.admin.send("ADDJOB", "q", "body", 0, "REPLICATE", 3)
    cluster.run(seconds=1)
    assert refusal(fast, "GETJOB", "NOHANG", "WITHCLAIM", "FROM", "q").startswith("CLOCK ")
    assert ask(other.admin, "GETJOB", "NOHANG", "WITHCLAIM", "FROM", "q")


def test_copies_of_a_queue_are_refused_with_the_job_itself() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast = cluster.members[1]
    assert fast.admin.call("QCONF", "q", "SET", "copy-to", "copies") == b"OK"
    assert refusal(fast, "ADDJOB", "q", "body", 0).startswith("CLOCK ")
    assert fast.admin.call("QLEN", "copies") == 0


def test_of_two_fast_nodes_of_five_both_are_in_quarantine() -> None:
    assert quarantined(a_cluster_with_fast_nodes(5, 0, 3)) == [1, 4]


@pytest.mark.parametrize(("count", "fast"), [(3, (0, 1)), (5, (0, 1, 2)), (4, (0, 1, 2))])
def test_a_majority_with_the_same_wrong_time_stays_in_service(count: int, fast: tuple[int, ...]) -> None:
    assert quarantined(a_cluster_with_fast_nodes(count, *fast)) == []


def test_node_that_is_behind_stays_in_service() -> None:
    cluster = Cluster(3, config=limited)
    cluster.members[0].skew_ms = -AHEAD_MS
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == []


def test_two_nodes_cannot_know_which_clock_is_wrong() -> None:
    assert quarantined(a_cluster_with_fast_nodes(2, 0)) == []


def test_without_the_directive_no_node_is_in_quarantine() -> None:
    cluster = a_cluster_with_fast_nodes(3, 0, of=Config)
    assert quarantined(cluster) == []
    assert abs(int(figures(cluster.members[0])["cluster_clock_ahead_ms"]) - AHEAD_MS) <= 2


def test_quarantine_ends_by_itself_when_the_clock_agrees_again() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast = cluster.members[1]
    assert quarantined(cluster) == [fast.number]
    for other in cluster.members:
        if other is not fast:
            other.skew_ms = AHEAD_MS  # the others follow
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == []
    assert len(logged(fast, "Clock quarantine ends")) == 1
    assert accepts_jobs(fast)
    assert why_not_ready(fast.node) == ""


def test_quarantine_ends_when_the_clock_jumps_back() -> None:
    cluster = a_cluster_with_fast_nodes(5, 1)
    cluster.members[1].skew_ms = 0
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == []
    assert accepts_jobs(cluster.members[1])


def test_restart_with_the_right_time_ends_the_quarantine() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast = cluster.members[1]
    fast.skew_ms = 0
    fast.restart()
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == []
    assert accepts_jobs(fast)


def test_quarantine_lasts_while_the_node_is_alone() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast = cluster.members[1]
    for other in cluster.members:
        if other is not fast:
            other.crash()
    cluster.run(seconds=LONG_ENOUGH_S)
    assert figures(fast)["cluster_clock_quarantine"] == "1"


def test_quarantine_ends_when_too_few_nodes_are_left_to_compare_with() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast, gone = cluster.members[1], cluster.members[2]
    gone.crash()
    assert fast.admin.call("CLUSTER", "FORGET", gone.id) == b"OK"
    cluster.run(seconds=3)
    assert figures(fast)["cluster_clock_quarantine"] == "0"


def test_config_set_changes_the_limit_of_a_running_node() -> None:
    cluster = a_cluster_with_fast_nodes(3, 1)
    fast = cluster.members[1]
    assert fast.admin.call("CONFIG", "SET", "cluster-max-clock-skew", 0) == b"OK"
    assert accepts_jobs(fast)
    assert fast.admin.call("CONFIG", "SET", "cluster-max-clock-skew", LIMIT_MS) == b"OK"
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == [fast.number]
    assert fast.admin.call("CONFIG", "SET", "cluster-max-clock-skew", 2 * AHEAD_MS) == b"OK"
    cluster.run(seconds=LONG_ENOUGH_S)
    assert quarantined(cluster) == []
    assert isinstance(fast.admin.call("CONFIG", "SET", "cluster-max-clock-skew", -1), ResponseError)


def test_one_wrong_measurement_changes_nothing() -> None:
    cluster = Cluster(3, config=limited)
    cluster.run(seconds=LONG_ENOUGH_S)
    one = cluster.members[0]
    for peer in one.node.state.view.peers.values():
        peer.skew_ms, peer.skew_is_new = -AHEAD_MS, True
    cluster.run(seconds=LONG_ENOUGH_S)
    assert logged(one, "Clock quarantine") == []


def test_nodes_of_the_original_do_not_count() -> None:
    cluster = a_cluster_with_fast_nodes(2, 0)
    fast = cluster.members[0]
    for number in (101, 102, 103):
        original = ScriptedNode(fast, b"10.0.0.%d" % number)
        original.join()
    cluster.run(seconds=3)
    assert figures(fast)["cluster_clock_quarantine"] == "0"
