"""Scenarios of asynchronous writes: what waits for the sync, late reports of the disk, and crashes in between."""

from __future__ import annotations

from disqued.raft.entry import Entry
from disqued.raft.message import APPEND, APPEND_REPLY, VOTE, VOTE_REPLY, Message
from disqued.testing.raftcluster import RaftCluster
from raft.scenes import commands, record


def sent_by(messages: list[Message], name: str, kind: int) -> list[Message]:
    return [message for message in messages if message.sender == f"{name}.0".encode() and message.kind == kind]


def test_vote_leaves_when_it_is_synced() -> None:
    cluster = RaftCluster()
    cluster.hold_disk("b")
    cluster.hold_disk("c")
    sent = record(cluster)
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run(20)
    assert sent_by(sent, "b", VOTE_REPLY) == []
    cluster.release_disk("b")
    cluster.run(20)
    assert len(sent_by(sent, "b", VOTE_REPLY)) == 1
    assert cluster["a"].is_leader


def test_candidate_asks_for_votes_when_its_own_vote_is_synced() -> None:
    cluster = RaftCluster()
    cluster.hold_disk("a")
    sent = record(cluster)
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run(20)
    assert sent_by(sent, "a", VOTE) == []
    cluster.release_disk("a")
    cluster.run(20)
    assert cluster["a"].is_leader


def test_leader_commits_with_two_followers_before_its_own_disk_has_synced() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("a")
    sent = record(cluster)
    cluster.propose(b"one")
    assert len(sent_by(sent, "a", APPEND)) == 2, "the appends do not wait for the disk of the leader"
    cluster.run(20)
    assert commands(cluster, "a") == [b"one"]


def test_leader_does_not_count_itself_before_its_disk_has_synced() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("a")
    cluster.partition("c")
    cluster.propose(b"one")
    cluster.run(20)
    assert commands(cluster, "a") == []
    cluster.release_disk("a")
    cluster.run(20)
    assert commands(cluster, "a") == [b"one"]


def test_follower_confirms_when_its_disk_has_synced() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("b")
    cluster.hold_disk("c")
    cluster.propose(b"one")
    cluster.run(20)
    assert commands(cluster, "a") == []
    cluster.crash("b")
    cluster.start("b")
    assert cluster["b"].group.last == 1, "the entry was not synced and is lost"
    cluster["b"].disk_held = False
    cluster.run(300)
    assert commands(cluster, "a") == [b"one"]


def test_confirmations_of_one_sync_are_one_message() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("b")
    sent = record(cluster)
    for number in range(4):
        cluster.propose(b"%d" % number)
    cluster.run(20)
    cluster.release_disk("b")
    cluster.run(2)
    assert [int(message.index) for message in sent_by(sent, "b", APPEND_REPLY)] == [5]


def test_late_report_of_the_disk_does_not_confirm_entries_that_replaced_the_written_ones() -> None:
    """The ABA problem of asynchronous writes: same index, other term, and the old write ends first."""
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.partition("a", "b")
    cluster.hold_disk("b")
    for number in range(3):
        cluster.propose(b"old %d" % number, "a")
    cluster.run(5)
    group = cluster["b"].group
    assert group.last == 4, "b has the entries of term 1, which are not synced"
    ticket = cluster["b"].disk.pending[-1].ticket

    append = Message(APPEND, b"c.0", b"b.0", 2)  # c was elected in term 2 and replaces them.
    append.index, append.log_term, append.commit = 1, 1, 1
    append.entries = [Entry(2, 2, cluster.now_ms, 0, b"new")]
    group.step(append, cluster.now_ms)
    batch = group.take()
    assert batch is not None
    assert [entry.index for entry in batch.entries] == [2]

    group.persisted(ticket)  # The report for the old entries.
    repeated = Message(APPEND, b"c.0", b"b.0", 2)
    repeated.index, repeated.log_term = 2, 2
    group.step(repeated, cluster.now_ms)
    late = group.take()
    assert late is None or late.messages == [], "nothing of term 2 is synced"
    group.persisted(batch.ticket)
    confirmed = group.take()
    assert confirmed is not None
    assert [(message.kind, message.index) for message in confirmed.messages] == [(APPEND_REPLY, 2)]


def test_held_confirmation_is_dropped_when_the_term_rises() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("b")
    cluster.propose(b"one")
    cluster.run(5)
    group = cluster["b"].group
    request = Message(VOTE, b"c.0", b"b.0", 2)
    request.index, request.log_term, request.flag = 9, 1, True
    sent = record(cluster)
    group.step(request, cluster.now_ms)
    cluster.work(cluster["b"])
    cluster.release_disk("b")
    cluster.run(5)
    assert sent_by(sent, "b", APPEND_REPLY) == []
    assert len(sent_by(sent, "b", VOTE_REPLY)) == 1


def test_crash_of_all_loses_nothing_that_was_committed() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    for number in range(10):
        cluster.propose(b"%d" % number)
        cluster.run(2)
    committed = int(cluster["a"].group.committed)
    for name in "abc":
        cluster.crash(name)
    for name in "abc":
        cluster.start(name)
    assert cluster.run_until(lambda: cluster.leader is not None, 2000)
    cluster.run(100)
    leader = cluster.leader
    assert leader is not None
    assert leader.group.committed > committed
    assert commands(cluster, leader.name)[: committed - 1] == [b"%d" % number for number in range(committed - 1)]
