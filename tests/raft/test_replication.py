"""Scenarios of replication: probe, pipeline, slow followers, conflicts, figure 8, commit news, repetition."""

from __future__ import annotations

import pytest

from disqued.raft.entry import NORMAL, Entry
from disqued.raft.message import APPEND, APPEND_REPLY, Message
from disqued.raft.progress import PROBE, REPLICATE, SNAPSHOT
from disqued.testing.raftcluster import BEAT_MS, SILENT_MS, RaftCluster, short_times
from raft.scenes import commands, kinds, record, terms, win


def test_all_proposals_of_a_turn_are_one_append_per_follower() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.run(50)
    sent = record(cluster)
    for number in range(5):
        leader.group.propose(b"%d" % number, cluster.now_ms)
    cluster.work(leader)
    assert kinds(sent) == ["APPEND a->b", "APPEND a->c"]
    assert [len(message.entries) for message in sent] == [5, 5]


def test_leader_sends_the_next_append_before_the_last_one_is_confirmed() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == APPEND_REPLY
    sent = record(cluster)
    for number in range(10):
        cluster.propose(b"%d" % number)
    to_b = [message for message in sent if message.to == b"b.0"]
    assert len(to_b) == cluster.tuning.window_messages
    cluster.drop = None
    cluster.run(300)
    assert commands(cluster, "b") == [b"%d" % number for number in range(10)]
    follower = leader.group.progress_of(b"b.0")
    assert follower is not None
    assert follower.state == REPLICATE


def gathering() -> RaftCluster:
    """A cluster whose leader gathers three entries while an append is not confirmed."""
    tuning = short_times()
    tuning.gather_entries = 3
    return RaftCluster(tuning=tuning)


def test_entries_that_come_one_by_one_share_an_append_while_another_is_not_confirmed() -> None:
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == APPEND_REPLY
    sent = record(cluster)
    for number in range(6):
        leader.group.propose(b"%d" % number, cluster.now_ms)
        cluster.work(leader)
    assert [len(message.entries) for message in sent if message.to == b"b.0"] == [1, 3]
    cluster.drop = None
    cluster.run(3 * cluster.tuning.repeat_ms)
    assert commands(cluster, "b") == [b"%d" % number for number in range(6)]


def test_confirmation_lets_the_gathered_entries_go() -> None:
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    sent = record(cluster)
    for number in range(3):
        leader.group.propose(b"%d" % number, cluster.now_ms)
        cluster.work(leader)
    cluster.run(50)
    assert [len(message.entries) for message in sent if message.to == b"b.0" and message.entries] == [1, 2]
    assert commands(cluster, "b") == [b"0", b"1", b"2"]


def test_new_leader_probes_with_one_append_until_it_is_answered() -> None:
    cluster = RaftCluster()
    cluster.partition("c")
    leader = cluster.elect("a")
    for number in range(4):
        cluster.propose(b"%d" % number)
    follower = leader.group.progress_of(b"c.0")
    assert follower is not None
    assert (follower.state, follower.waiting) == (PROBE, True)
    cluster.heal()
    cluster.run(300)
    assert follower.state == REPLICATE
    assert commands(cluster, "c") == [b"0", b"1", b"2", b"3"]


def test_lost_append_is_repeated_and_then_the_group_is_idle() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == APPEND
    cluster.propose(b"one")
    cluster.run(10)
    assert leader.group.deadline_ms() > 0
    cluster.drop = None
    cluster.run(2 * cluster.tuning.repeat_ms)
    assert commands(cluster, "c") == [b"one"]
    assert leader.group.deadline_ms() == 0


def test_lost_confirmation_is_repeated_without_the_entries() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == APPEND_REPLY
    cluster.propose(b"one")
    cluster.run(10)
    cluster.drop = None
    sent = record(cluster)
    cluster.run(2 * cluster.tuning.repeat_ms)
    assert commands(cluster, "c") == [b"one"]
    assert all(not message.entries for message in sent)


def test_followers_learn_the_commit_after_a_short_delay() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.propose(b"one")
    cluster.run(6)
    assert commands(cluster, "a") == [b"one"]
    assert commands(cluster, "b") == []
    cluster.run(int(cluster.tuning.commit_delay_ms))
    assert commands(cluster, "b") == [b"one"]


def test_followers_learn_the_commit_at_once_if_it_is_eager() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    leader.group.eager_commit = True
    cluster.run(50)
    cluster.propose(b"one")
    cluster.run(6)
    assert commands(cluster, "b") == [b"one"]


def test_commit_travels_with_the_next_append_without_messages_of_its_own() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.propose(b"one")
    cluster.run(5)
    sent = record(cluster)
    cluster.propose(b"two")
    cluster.run(3)
    assert commands(cluster, "b") == [b"one"]
    assert [len(message.entries) for message in sent if message.kind == APPEND][:2] == [1, 1]


def test_silent_follower_gets_no_repetitions_and_catches_up_when_it_is_heard() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.partition("c")
    cluster.run(2 * SILENT_MS)
    cluster.propose(b"one")
    cluster.run(500)
    assert leader.group.deadline_ms() == 0
    sent = record(cluster)
    cluster.run(2000)
    assert [message for message in sent if message.sender == b"a.0"] == []
    cluster.heal()
    cluster.run(300)
    assert commands(cluster, "c") == [b"one"]


def test_conflicting_entries_of_a_deposed_leader_are_overwritten() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.partition("a")
    for number in range(3):
        cluster.propose(b"lost %d" % number, "a")
    cluster.run(20)
    assert terms(cluster, "a") == [1, 1, 1, 1]
    assert cluster.run_until(lambda: cluster.leader is not None and cluster.leader.name != "a", 4 * SILENT_MS)
    cluster.propose(b"kept")
    cluster.run(50)
    cluster.heal()
    cluster.run(300)
    assert terms(cluster, "a") == [1, 2, 2]
    assert commands(cluster, "a") == [b"kept"]


def test_one_round_trip_skips_all_conflicting_entries_of_a_term() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.partition("a")
    for number in range(7):
        cluster.propose(b"lost %d" % number, "a")
    cluster.run_until(lambda: cluster.leader is not None and cluster.leader.name != "a", 4 * SILENT_MS)
    for number in range(7):
        cluster.propose(b"kept %d" % number)
    cluster.run(100)
    first = cluster.leader
    assert first is not None
    second = "c" if first.name == "b" else "b"
    assert cluster.transfer(first.name, second) == ""
    cluster.run(100)
    assert cluster[second].is_leader  # It expects that all logs are like its own.
    cluster.run(100)
    sent = record(cluster)
    cluster.heal()
    cluster.run(300)
    assert kinds(sent).count(f"APPEND_REPLY a->{second} refused") == 1
    assert terms(cluster, "a") == [1] + [2] * 8 + [3]


def test_entry_of_an_earlier_term_is_not_committed_by_counting() -> None:
    """Figure 8 of the paper: a quorum has the entry, and another leader still replaces it."""
    cluster = RaftCluster("abcde")
    cluster.tuning.message_bytes = 1  # One entry per append.
    cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.to != b"b.0"
    cluster.propose(b"doomed", "a")  # (a) It reaches b only.
    cluster.run(10)
    assert terms(cluster, "b") == [1, 1]

    cluster.crash("a")
    cluster.drop = lambda message: message.kind == APPEND or b"b.0" in {message.sender, message.to}
    win(cluster, "e")  # (b) It leads with c and d, and its entry reaches nobody.
    cluster.run(5)
    assert terms(cluster, "e") == [1, 2]
    cluster.crash("e")

    cluster.start("a")
    cluster.drop = lambda message: any(entry.term == 3 for entry in message.entries)
    win(cluster, "a")  # (c) Its old entry reaches a quorum, its new one does not.
    cluster.run(250)
    assert [terms(cluster, name) for name in "abcd"] == [[1, 1, 3], [1, 1], [1, 1], [1, 1]]
    assert cluster["a"].group.committed == 0  # It has restarted, and has committed nothing of its term.

    cluster.crash("a")
    cluster.start("e")
    cluster.drop = None
    win(cluster, "e")  # (d) It replaces the entry everywhere.
    cluster.start("a")
    cluster.run(500)
    assert [terms(cluster, name) for name in "abcde"] == [[1, 2, 4]] * 5
    assert [commands(cluster, name) for name in "abcde"] == [[]] * 5


def test_learner_that_restarted_is_probed_until_it_answers() -> None:
    """Found by the simulator: the probe was lost, and what the learner had confirmed before its restart was enough."""
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.add("d")
    assert cluster.change("a", cluster["a"].group.members.with_learner(b"d.0")) == ""
    cluster.propose(b"one")
    cluster.run(300)
    cluster.drop = lambda message: message.to == b"d.0"
    cluster.crash("d")
    cluster.start("d")
    cluster.run(BEAT_MS)
    cluster.drop = None
    cluster.run(2 * int(cluster.tuning.repeat_ms))
    assert commands(cluster, "d") == [b"one"]
    assert cluster["d"].group.leader == b"a.0"
    assert cluster["a"].group.deadline_ms() == 0


def test_old_entries_come_from_the_store_when_they_are_not_in_memory() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.partition("c")
    for number in range(60):
        cluster.propose(b"command %3d " % number + b"x" * 100)
        cluster.run(3)
    cluster.run(300)
    assert leader.group.entries(1, 5) is None
    assert leader.group.entries(leader.group.last, leader.group.last) is not None
    cluster.heal()
    cluster.run(500)
    assert commands(cluster, "c") == commands(cluster, "a")
    assert len(commands(cluster, "c")) == 60


@pytest.mark.parametrize(
    "found",
    [
        pytest.param([], id="none"),
        pytest.param([3, 4], id="not the first one, which a snapshot has replaced"),
        pytest.param([2, 4], id="one in the middle is missing"),
    ],
)
def test_entries_that_the_store_does_not_find_are_asked_for_again_later(found: list[int]) -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.partition("c")
    for number in range(60):
        cluster.propose(b"command %3d " % number + b"x" * 100)
        cluster.run(3)
    cluster.run(300)
    cluster.partition("a", "b")  # The driver of this test reads nothing.
    leader.group.node_returned(b"c.0", cluster.now_ms)
    follower = leader.group.progress_of(b"c.0")
    assert follower is not None
    refusal = Message(APPEND_REPLY, b"c.0", b"a.0", 1)
    refusal.flag, refusal.index, refusal.hint, refusal.log_term = True, follower.next - 1, 1, 1
    assert leader.group.take() is not None
    leader.group.step(refusal, cluster.now_ms)
    batch = leader.group.take()
    assert batch is not None
    assert [low for low, _ in batch.fetches] == [2]
    leader.group.fetched(2, [Entry(1, index, 0, NORMAL, b"from the store") for index in found])
    after = leader.group.take()
    sent = [entry.index for message in (after.messages if after else []) for entry in message.entries]
    assert sent == ([2] if found[:1] == [2] else [])
    assert after is None or after.fetches == []
    assert leader.group.take() is None
    assert 0 < leader.group.deadline_ms() <= cluster.now_ms + cluster.tuning.repeat_ms
    cluster.heal()
    cluster.run(1000)
    assert commands(cluster, "c") == commands(cluster, "a")


def test_slow_follower_gets_a_snapshot_when_the_entries_are_gone() -> None:
    cluster = RaftCluster()
    leader = cluster.elect("a")
    cluster.partition("c")
    for number in range(20):
        cluster.propose(b"%d" % number)
    cluster.run(300)
    cluster.compact("a")
    cluster.run(10)
    assert leader.group.snapshot.index == 21
    cluster.heal()
    cluster.run(500)
    assert cluster["c"].group.snapshot.index == 21
    cluster.propose(b"after")
    cluster.run(100)
    assert commands(cluster, "c") == [b"after"]
    assert cluster["c"].digest == leader.digest


def test_snapshot_that_cannot_be_sent_is_tried_again() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.partition("c")
    for number in range(20):
        cluster.propose(b"%d" % number)
    cluster.run(300)
    cluster.compact("a")
    cluster.run(10)
    cluster.heal()
    follower = cluster["a"].group.progress_of(b"c.0")
    assert follower is not None
    assert cluster.run_until(lambda: follower.state == SNAPSHOT, 200)
    cluster.crash("c")
    cluster.run(30)
    cluster.start("c")
    cluster.run(500)
    assert cluster["c"].group.snapshot.index == 21


def test_follower_whose_log_has_the_snapshot_keeps_its_entries() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.propose(b"one")
    cluster.run(50)
    cluster.compact("b")
    cluster.run(10)
    assert cluster["b"].group.snapshot.index == 2
    cluster.crash("b")
    cluster.start("b")
    assert cluster["b"].group.committed == 2
    cluster.propose(b"two")
    cluster.run(100)
    assert commands(cluster, "b") == [b"two"]
    assert cluster["b"].digest == cluster["a"].digest


def test_time_of_entries_does_not_fall_when_the_next_leader_has_an_earlier_clock() -> None:
    cluster = RaftCluster("a")
    leader = cluster.elect("a")
    first = leader.group.propose(b"one", cluster.now_ms + 5000)
    second = leader.group.propose(b"two", cluster.now_ms)
    cluster.work(leader)
    entries = leader.group.entries(first, second)
    assert entries is not None
    assert [entry.time_ms for entry in entries] == [cluster.now_ms + 5000] * 2


def next_batch_is_relaxed(cluster: RaftCluster) -> bool:
    """Whether the leader says of one more entry that its own sync may wait."""
    leader = cluster["a"]
    leader.group.propose(b"next", cluster.now_ms)
    batch = leader.group.take()
    assert batch is not None
    assert batch.entries
    return bool(batch.relaxed)


def test_leader_whose_followers_commit_without_it_need_not_sync_at_once() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.propose(b"first")
    cluster.run(50)
    assert next_batch_is_relaxed(cluster)


def test_leader_syncs_at_once_while_one_of_its_two_followers_is_behind() -> None:
    cluster = RaftCluster()
    cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("b")
    cluster.propose(b"first")
    cluster.run(50)
    assert not next_batch_is_relaxed(cluster)


def test_leader_need_not_sync_at_once_while_a_follower_is_one_round_behind_for_a_few_milliseconds() -> None:
    """When it had synced once, it and the faster follower committed, and it had to sync the next time as well."""
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.hold_disk("c")
    cluster.propose(b"first")
    assert cluster.run_until(lambda: leader.group.committed == leader.group.last, 20)
    assert next_batch_is_relaxed(cluster)
    cluster.run(20)
    assert not next_batch_is_relaxed(cluster)


def test_leader_that_is_alone_or_has_one_follower_syncs_at_once() -> None:
    for names in ("a", "ab"):
        cluster = RaftCluster(names)
        cluster.elect("a")
        cluster.run(50)
        assert not next_batch_is_relaxed(cluster)


def test_follower_that_confirms_early_waits_with_the_others_for_the_next_append() -> None:
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.drop = lambda message: message.kind == APPEND_REPLY and message.sender == b"c.0"
    sent = record(cluster)
    for number in range(2):
        leader.group.propose(b"%d" % number, cluster.now_ms)
        cluster.work(leader)
    leader.group.propose(b"2", cluster.now_ms)
    cluster.hold_disk("a")
    cluster.run(3)
    assert [len(message.entries) for message in sent if message.to == b"b.0" and message.entries] == [1]
    cluster.release_disk("a")
    cluster.run(20)
    assert commands(cluster, "b") == [b"0", b"1", b"2"], "the leader and one follower are enough"


def test_next_round_waits_for_those_that_were_answered_until_the_driver_has_it_sent() -> None:
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    sent = record(cluster)
    for number in range(4):
        leader.group.propose(b"%d" % number, cluster.now_ms)
    cluster.work(leader)
    assert cluster.run_until(lambda: bool(leader.group.held), 20)
    for number in (4, 5):
        leader.group.propose(b"%d" % number, cluster.now_ms)
        cluster.work(leader)
    assert [len(message.entries) for message in sent if message.to == b"b.0" and message.entries] == [4]
    leader.group.resume()
    cluster.work(leader)
    assert [len(message.entries) for message in sent if message.to == b"b.0" and message.entries] == [4, 2]


def test_held_entries_are_sent_although_nothing_else_is_proposed() -> None:
    cluster = gathering()
    leader = cluster.elect("a")
    cluster.run(50)
    for number in range(2):
        leader.group.propose(b"%d" % number, cluster.now_ms)
        cluster.work(leader)
    cluster.run(20)
    assert commands(cluster, "b") == [b"0", b"1"]


def test_follower_that_is_behind_does_not_wait_for_a_voter_that_is_lost() -> None:
    """The entries that it waited for were needed for the commit that would have shown that the other voter is lost."""
    tuning = short_times()
    tuning.gather_entries = 64
    tuning.message_bytes = 1
    cluster = RaftCluster("abcd", tuning)
    leader = cluster.elect("a")
    cluster.run(50)
    cluster.partition("d")
    for number in range(5):
        cluster.propose(b"%d" % number)
    cluster.run(100)
    leader.group.propose(b"last", cluster.now_ms)
    cluster.work(leader)
    cluster.crash("b")
    cluster.heal()
    cluster.run(3000)
    assert commands(cluster, "c")[-1] == commands(cluster, "d")[-1] == b"last"
