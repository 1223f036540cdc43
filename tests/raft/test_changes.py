"""Scenarios of changes: members, learners, removal of the leader, transfer of the leadership, reads."""

from __future__ import annotations

import pytest

from disqued.raft.members import Members
from disqued.raft.message import APPEND, APPEND_REPLY, ROUND, ROUND_REPLY, TIMEOUT_NOW, Message
from disqued.testing.raftcluster import SILENT_MS, RaftCluster
from raft.scenes import commands, kinds, record

A, B, C, D = b"a.0", b"b.0", b"c.0", b"d.0"


def cluster_of_three() -> RaftCluster:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(50)
    return cluster


def test_learner_receives_the_log_and_becomes_a_voter() -> None:
    cluster = cluster_of_three()
    cluster.add("d")
    members = cluster["a"].group.members.with_learner(D)
    assert cluster.change("a", members) == ""
    cluster.run(100)
    assert commands(cluster, "d")[0] == b"one"
    assert cluster["d"].group.members == members
    assert cluster.change("a", members.with_voter(D)) == ""
    cluster.run(100)
    assert cluster["d"].group.members == Members((A, B, C, D))
    assert cluster["a"].group.members.quorum == 3


def test_learner_does_not_count_for_the_commit() -> None:
    cluster = cluster_of_three()
    cluster.add("d")
    cluster.change("a", Members((A, B, C), (D,)))
    cluster.run(100)
    cluster.drop = lambda message: message.sender in {B, C}
    index = cluster.propose(b"two")
    cluster.run(50)
    assert cluster["d"].group.last == index
    assert cluster["a"].group.committed < index


def test_learner_does_not_campaign_and_a_promoted_one_may_win() -> None:
    cluster = cluster_of_three()
    cluster.add("d")
    cluster.change("a", Members((A, B, C), (D,)))
    cluster.run(100)
    cluster["d"].group.campaign(cluster.now_ms)
    assert cluster["d"].group.deadline_ms() == 0
    cluster.change("a", Members((A, B, C, D)))
    cluster.run(100)
    assert cluster.transfer("a", "d") == ""
    cluster.run(50)
    assert cluster["d"].is_leader


def test_second_change_is_refused_until_the_first_is_committed() -> None:
    cluster = cluster_of_three()
    cluster.drop = lambda message: message.kind == APPEND
    assert cluster.change("a", Members((A, B))) == ""
    assert cluster.change("a", Members((A,))) == "the last change of the members is not committed"
    cluster.drop = None
    cluster.run(300)
    assert cluster.change("a", Members((A,))) == ""


def test_change_is_refused_before_an_entry_of_the_term_is_committed() -> None:
    cluster = RaftCluster()
    cluster.drop = lambda message: message.kind == APPEND
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run_until(lambda: cluster["a"].is_leader, 100)
    assert cluster.change("a", Members((A, B))) == "no entry of this term is committed"
    assert not cluster["a"].group.is_confirmed


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (Members((A,)), "more than one voter changes"),
        (Members((A, B, D)), "more than one voter changes"),
        (Members((), (A,)), "a group needs a voter"),
    ],
)
def test_change_that_is_too_large_is_refused(members: Members, reason: str) -> None:
    assert cluster_of_three().change("a", members) == reason


def test_change_is_refused_by_followers() -> None:
    assert cluster_of_three().change("b", Members((A, B))) == "not the leader"


def test_members_are_reverted_when_their_entry_is_replaced() -> None:
    cluster = cluster_of_three()
    cluster.partition("a")
    assert cluster.change("a", Members((A, B))) == ""
    assert cluster["a"].group.members == Members((A, B))
    cluster.run_until(lambda: cluster.leader is not None and cluster.leader.name != "a", 4 * SILENT_MS)
    cluster.run(50)
    cluster.heal()
    cluster.run(300)
    assert cluster["a"].group.members == Members((A, B, C))


def test_leader_that_is_removed_commits_its_removal_and_hands_over() -> None:
    cluster = cluster_of_three()
    sent = record(cluster)
    assert cluster.change("a", Members((B, C))) == ""
    cluster.run(30)
    assert not cluster["a"].is_leader
    assert [message.kind for message in sent].count(TIMEOUT_NOW) == 1
    assert cluster.leader is not None
    assert cluster.leader.name in "bc"
    assert cluster["a"].group.members == Members((B, C))


def test_leader_that_becomes_a_learner_hands_over() -> None:
    cluster = cluster_of_three()
    assert cluster.change("a", Members((B, C), (A,))) == ""
    cluster.run(50)
    assert cluster.leader is not None
    assert cluster.leader.name in "bc"
    cluster.propose(b"two")
    cluster.run(50)
    assert commands(cluster, "a") == [b"one", b"two"]


def test_leader_that_is_removed_does_not_count_itself() -> None:
    cluster = cluster_of_three()
    cluster.drop = lambda message: message.sender == C
    cluster.change("a", Members((B, C)))
    cluster.run(50)
    assert cluster["a"].is_leader, "b alone is no quorum of b and c"
    cluster.drop = None
    cluster.run(300)
    assert not cluster["a"].is_leader


def test_removed_replica_does_not_disturb_the_others() -> None:
    cluster = cluster_of_three()
    cluster.partition("c")
    cluster.change("a", Members((A, B)))
    cluster.run(4 * SILENT_MS)
    cluster.heal()
    cluster.run(4 * SILENT_MS)
    assert cluster.checks.elections == 1
    assert cluster["a"].is_leader
    assert cluster["c"].group.leader == A, "it learns that there is a leader, and asks no more"
    sent = record(cluster)
    cluster.run(5 * SILENT_MS)
    assert sent == []


def test_removed_replica_of_a_higher_term_does_not_depose_the_leader() -> None:
    cluster = cluster_of_three()
    cluster.change("a", Members((A, B)))
    cluster.run(50)
    reply = Message(APPEND_REPLY, C, A, 9)
    reply.flag = True
    cluster.arrive(cluster["c"], cluster["a"], reply)
    assert cluster["a"].is_leader
    assert cluster["a"].group.term == 1


def test_emptied_replica_is_not_a_member_and_is_replaced_by_a_learner() -> None:
    cluster = cluster_of_three()
    cluster.crash("c")
    cluster.empty("c")
    cluster.start("c")
    cluster.run(2 * SILENT_MS)
    assert cluster["c"].group.last == 0
    assert cluster.change("a", Members((A, B), (b"c.1",))) == ""
    cluster.run(300)
    assert commands(cluster, "c")[0] == b"one"


# --- transfer ---------------------------------------------------------------------------------------------------------


def test_leadership_is_transferred_to_an_up_to_date_replica_within_a_round() -> None:
    cluster = cluster_of_three()
    began_ms = cluster.now_ms
    assert cluster.transfer("a", "b") == ""
    assert cluster.run_until(lambda: cluster["b"].is_leader, 100)
    assert cluster.now_ms - began_ms < 20
    cluster.run(50)
    assert [cluster[name].group.leader for name in "abc"] == [B, B, B]


def test_leadership_is_transferred_to_a_lagging_replica_when_it_has_caught_up() -> None:
    cluster = cluster_of_three()
    cluster.hold_disk("b")
    cluster.propose(b"two")
    cluster.run(10)
    sent = record(cluster)
    assert cluster.transfer("a", "b") == ""
    assert cluster.propose(b"refused", "a") == 0
    assert cluster["a"].group.transferring == B
    cluster.run(20)
    assert cluster["a"].is_leader
    cluster.release_disk("b")
    cluster.run(50)
    assert cluster["b"].is_leader
    assert "TIMEOUT_NOW a->b" in kinds(sent)


def test_transfer_that_takes_too_long_is_given_up() -> None:
    cluster = cluster_of_three()
    cluster.drop = lambda message: message.kind == TIMEOUT_NOW
    cluster.transfer("a", "b")
    assert cluster.propose(b"refused") == 0
    assert cluster.transfer("a", "c") == "the leadership is being transferred"
    assert cluster.change("a", Members((A, B))) == "the leadership is being transferred"
    cluster.run(2 * SILENT_MS)
    assert cluster["a"].is_leader
    assert cluster.propose(b"two") > 0


def test_transfer_to_one_that_cannot_lead_is_refused() -> None:
    cluster = cluster_of_three()
    cluster.add("d")
    cluster.change("a", Members((A, B, C), (D,)))
    cluster.run(100)
    assert cluster.transfer("a", "d") == "the successor is not another voter"
    assert cluster.transfer("a", "a") == "the successor is not another voter"
    assert cluster.transfer("b", "c") == "not the leader"
    cluster.crash("c")
    cluster.run(2 * SILENT_MS)
    assert cluster.transfer("a", "c") == "the successor does not follow"


# --- reads ------------------------------------------------------------------------------------------------------------


def test_read_is_confirmed_by_a_quorum_and_contains_what_was_committed() -> None:
    cluster = cluster_of_three()
    sent = record(cluster)
    token = cluster.read("a")
    assert cluster.reads == {}
    cluster.run(10)
    assert cluster.reads == {token: cluster["a"].group.committed}
    assert kinds(sent)[:2] == ["ROUND a->b", "ROUND a->c"]
    assert cluster["a"].group.deadline_ms() == 0


def test_reads_of_a_turn_share_a_round() -> None:
    cluster = cluster_of_three()
    sent = record(cluster)
    leader = cluster["a"]
    for token in (11, 12, 13):
        cluster.checks.reads(token)
        assert leader.group.read(token, cluster.now_ms)
    cluster.work(leader)
    cluster.run(10)
    assert sorted(cluster.reads) == [11, 12, 13]
    assert [message.kind for message in sent].count(ROUND) == 2


def test_read_of_a_deposed_leader_is_refused() -> None:
    cluster = cluster_of_three()
    cluster.partition("a")
    token = cluster.read("a")
    assert token
    cluster.run(3 * SILENT_MS)
    assert cluster.reads == {token: 0}
    assert cluster.read("a") == 0


def test_read_waits_for_an_entry_of_the_term() -> None:
    cluster = RaftCluster()
    cluster.drop = lambda message: message.kind == APPEND
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run_until(lambda: cluster["a"].is_leader, 100)
    token = cluster.read("a")
    cluster.run(50)
    assert cluster.reads == {}
    cluster.drop = None
    cluster.run(300)
    assert cluster.reads[token] >= 1


def test_lost_round_is_repeated() -> None:
    cluster = cluster_of_three()
    cluster.drop = lambda message: message.kind == ROUND_REPLY
    token = cluster.read("a")
    cluster.run(20)
    cluster.drop = None
    cluster.run(2 * int(cluster.tuning.repeat_ms))
    assert cluster.reads[token] > 0


def test_read_is_confirmed_when_the_voters_that_have_not_answered_are_removed() -> None:
    """Found by the simulator: nobody was left to ask, so nobody's answer counted the round again."""
    cluster = RaftCluster("abcd")
    cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == ROUND_REPLY and message.sender in {C, D}
    token = cluster.read("a")
    cluster.run(20)
    assert cluster.reads == {}
    assert cluster.change("a", Members((A, B, C))) == ""
    cluster.run(3 * int(cluster.tuning.repeat_ms))
    assert cluster.reads[token] > 0
