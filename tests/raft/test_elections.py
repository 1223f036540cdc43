"""Scenarios of elections: campaign, pre-vote, check-quorum, stickiness, split and lost votes."""

from __future__ import annotations

from disqued.raft.message import PREVOTE, VOTE, VOTE_REPLY, Message
from disqued.raft.role import CANDIDATE, FOLLOWER, PRE_CANDIDATE
from disqued.testing.raftcluster import SILENT_MS, Member, RaftCluster
from raft.scenes import commands, forget_leader, kinds, record, terms


def test_replica_that_campaigns_asks_for_pre_votes_then_for_votes_and_appends_an_empty_entry() -> None:
    cluster = RaftCluster()
    sent = record(cluster)
    cluster.elect("a")
    assert kinds(sent)[:10] == [
        "PREVOTE a->b", "PREVOTE a->c", "PREVOTE_REPLY b->a", "PREVOTE_REPLY c->a", "VOTE a->b", "VOTE a->c",
        "VOTE_REPLY b->a", "VOTE_REPLY c->a", "APPEND a->b", "APPEND a->c",
    ]  # fmt: skip
    cluster.run(50)
    assert [terms(cluster, name) for name in "abc"] == [[1], [1], [1]]


def test_new_group_elects_a_leader_by_itself() -> None:
    cluster = RaftCluster()
    assert cluster.run_until(lambda: cluster.leader is not None, 3 * SILENT_MS)


def test_group_of_one_replica_elects_itself_and_commits_alone() -> None:
    cluster = RaftCluster("a")
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(5)
    assert commands(cluster, "a") == [b"one"]


def test_idle_group_sends_nothing_and_has_no_deadline() -> None:
    cluster = RaftCluster("abcde")
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(1000)
    sent = record(cluster)
    cluster.run(10_000)
    assert sent == []
    assert [cluster[name].group.deadline_ms() for name in "abcde"] == [0] * 5
    assert cluster.checks.elections == 1


def test_followers_elect_a_leader_when_the_node_of_the_old_one_is_silent() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(20)
    cluster.crash("a")
    assert cluster.run_until(lambda: cluster.leader is not None, 4 * SILENT_MS)
    cluster.propose(b"two")
    cluster.run(50)
    assert [commands(cluster, name) for name in "bc"] == [[b"one", b"two"]] * 2


def test_followers_elect_a_leader_when_the_node_of_the_old_one_says_that_it_leads_no_more() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(100)
    cluster.crash("a")
    cluster.start("a")  # The node is never silent, but its group has no leader role any more.
    began_ms = cluster.now_ms
    assert cluster.run_until(lambda: cluster.leader is not None, 3 * SILENT_MS)
    assert cluster.now_ms - began_ms <= 2 * SILENT_MS
    assert cluster.leader is not None
    assert cluster.leader.group.term == 2


def test_partitioned_replica_raises_no_term_and_disturbs_nobody_when_it_returns() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.partition("c")
    cluster.run(5 * SILENT_MS)
    assert cluster["c"].group.role == PRE_CANDIDATE
    cluster.propose(b"one")
    cluster.heal()
    cluster.run(3 * SILENT_MS)
    assert cluster["c"].group.leader == b"a.0"
    assert [cluster[name].group.term for name in "abc"] == [1, 1, 1]
    assert commands(cluster, "c") == [b"one"]


def test_leader_that_hears_no_quorum_steps_down() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.partition("a")
    cluster.run(2 * SILENT_MS)
    assert not cluster["a"].is_leader
    assert cluster.propose(b"lost", "a") == 0
    assert cluster.leader is not None
    assert cluster.leader.name in "bc"


def test_leader_stays_while_it_hears_a_quorum() -> None:
    cluster = RaftCluster("abcde")
    cluster.elect("a")
    cluster.partition("d", "e")
    cluster.run(5 * SILENT_MS)
    assert cluster["a"].is_leader
    assert cluster.checks.elections == 1


def test_votes_are_refused_while_the_leader_is_heard() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    sent = record(cluster)
    cluster["b"].group.campaign(cluster.now_ms)
    cluster.work(cluster["b"])
    cluster.run(50)
    assert kinds(sent)[:4] == ["PREVOTE b->a", "PREVOTE b->c", "PREVOTE_REPLY a->b refused", "APPEND a->b"]
    assert cluster["b"].group.leader == b"a.0"
    assert cluster["b"].group.term == 1


def test_replica_that_restarts_in_an_idle_group_learns_its_leader_and_the_commit_index() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(100)
    cluster.crash("c")
    cluster.start("c")
    assert cluster["c"].group.committed == 0
    cluster.run(2 * SILENT_MS)
    assert cluster["c"].group.leader == b"a.0"
    assert commands(cluster, "c") == [b"one"]
    assert cluster.checks.elections == 1


def test_lost_votes_are_asked_for_again() -> None:
    cluster = RaftCluster()
    cluster.drop = lambda message: message.kind in {VOTE, VOTE_REPLY}
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run(30)
    assert cluster["a"].group.role == CANDIDATE
    cluster.drop = None
    assert cluster.run_until(lambda: cluster.leader is not None, 3 * SILENT_MS)


def test_split_vote_is_resolved_by_another_election() -> None:
    cluster = RaftCluster("ab")
    for name in "ab":
        cluster[name].group.campaign(cluster.now_ms)
        cluster.work(cluster[name])
    cluster.run(20)
    assert [cluster[name].group.role for name in "ab"] == [FOLLOWER, FOLLOWER]  # Both voted for themselves.
    assert [cluster[name].group.term for name in "ab"] == [1, 1]
    assert cluster.run_until(lambda: cluster.leader is not None, 4 * SILENT_MS)
    assert cluster.leader is not None
    assert cluster.leader.group.term == 2


def test_candidate_without_a_committed_entry_gets_no_vote() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.partition("c")
    cluster.propose(b"one")
    cluster.run(50)
    cluster.crash("a")
    cluster.heal()
    cluster["c"].group.campaign(cluster.now_ms)
    cluster.work(cluster["c"])
    cluster.run_until(lambda: cluster.leader is not None, 5 * SILENT_MS)
    assert cluster.leader is cluster["b"]


def test_vote_and_term_survive_a_restart() -> None:
    cluster = RaftCluster()
    cluster.drop = lambda message: message.kind == VOTE_REPLY
    cluster["a"].group.campaign(cluster.now_ms)
    cluster.work(cluster["a"])
    cluster.run(20)
    cluster.crash("b")
    assert (cluster["b"].disk.hard.term, cluster["b"].disk.hard.vote) == (1, b"a.0")
    cluster.start("b")
    sent = record(cluster)
    cluster.drop = lambda message: message.kind == PREVOTE or message.to == b"a.0"
    request = Message(VOTE, b"c.0", b"b.0", 1)
    request.index, request.log_term = 5, 1
    cluster.arrive(cluster["c"], cluster["b"], request)
    cluster.run(20)
    assert "VOTE_REPLY b->c refused" in kinds(sent)


def test_candidate_that_is_higher_in_term_is_found_by_an_idle_leader_and_joins_again() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(100)
    cluster.drop = lambda message: message.kind == VOTE or message.to == b"a.0"
    forget_leader(cluster)
    cluster["c"].group.campaign(cluster.now_ms)
    cluster.work(cluster["c"])
    cluster.run(30)
    assert (cluster["c"].group.role, cluster["c"].group.term) == (CANDIDATE, 2)
    cluster.drop = None
    cluster.run(6 * SILENT_MS)
    assert len({cluster[name].group.leader for name in "abc"}) == 1
    assert cluster.leader is not None
    assert cluster.leader.group.term >= 2


class WithoutDenials(RaftCluster):
    """A group whose nodes do not tell each other that they lead no more."""

    def _compare(self, member: Member, other: Member) -> bool:  # noqa: ARG002 - an override
        """Compare nothing."""
        return False


def step_down(cluster: RaftCluster, name: str) -> None:
    """Have a leader hear no quorum for a moment, which its followers do not notice."""
    member = cluster[name]
    member.liveness.expire(cluster.now_ms + SILENT_MS)
    member.group.tick(cluster.now_ms)
    cluster.work(member)
    assert not member.is_leader


def test_leader_that_stepped_down_unnoticed_is_elected_again_without_a_denial() -> None:
    """Its followers granted pre-votes, but no votes, as long as they heard its node."""
    cluster = WithoutDenials()
    cluster.elect("a")
    cluster.run(100)
    step_down(cluster, "a")
    assert cluster.run_until(lambda: cluster.leader is not None, 4 * SILENT_MS)
    cluster.propose(b"one")
    cluster.run(100)
    assert [commands(cluster, name) for name in "abc"] == [[b"one"]] * 3


def test_followers_elect_another_when_the_leader_that_stepped_down_cannot_win() -> None:
    cluster = WithoutDenials()
    cluster.elect("a")
    cluster.partition("a")
    cluster.run(4 * SILENT_MS)
    assert cluster.leader is not None
    second = cluster.leader.name
    cluster.propose(b"two")
    cluster.run(20)
    cluster.heal()
    step_down(cluster, second)
    assert cluster.run_until(lambda: cluster.leader is not None and cluster.leader.is_leader, 6 * SILENT_MS)
    cluster.run(100)
    assert [commands(cluster, name) for name in "abc"] == [[b"two"]] * 3
