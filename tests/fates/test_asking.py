"""JOBASK and JOBTOLD: a node asks what becomes of jobs, and others answer, at once and whenever they learn more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from disqued.bus import kinds
from disqued.core.fates.fate import (
    DEAD,
    DELETED,
    DONE,
    EXPIRED,
    MOVED,
    NOTHING,
    UNKNOWN,
    WAITING,
    Fate,
    pack_fate,
    unpack_fate,
)
from disqued.core.fates.watches import Watcher
from disqued.fates import askers, asking
from disqued.fates.payload import MOST_ASKED, pack_answer, pack_questions, unpack_answers
from disqued.fates.room import fates_of
from fates.asking import add, scripted
from metrics.pages import scrape

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalClient, LocalNode
    from membership.stories import ScriptedNode

JOB = b"D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"


class Notes(Watcher):
    """Notes all answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[bytes, Fate, bytes]] = []

    def told(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        self.answers.append((job_id, fate, node_id))

    def latest(self) -> dict[bytes, int]:
        """The last outcome that each node told."""
        return {node_id: int(fate.outcome) for _, fate, node_id in self.answers}


def watch(member: Member | LocalNode, *job_ids: bytes) -> Notes:
    """Watch jobs at a node."""
    notes = Notes()
    for job_id in job_ids:
        member.node.state.watches.watch(job_id, notes)
    return notes


def ask(local: LocalNode, job_id: bytes) -> Fate:
    """What a node answers to another one."""
    return local.node.state.events.fate_of(job_id)


# --- what one node knows ------------------------------------------------------------------------------------------


def test_a_job_that_nobody_knows_is_unknown(local: LocalNode) -> None:
    assert ask(local, JOB).outcome == UNKNOWN


def test_a_job_waits_until_it_is_acknowledged(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    assert (ask(local, job).outcome, ask(local, job).copies) == (WAITING, 1)
    client.take("q")
    assert ask(local, job).outcome == WAITING
    client.call("ACKJOB", job)
    assert ask(local, job).outcome == DONE
    assert ask(local, job).ended_ms == local.now_ms


def test_a_record_is_kept_for_as_long_as_retain_says(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    client.call("ACKJOB", job)
    local.run(seconds=59)
    assert ask(local, job).outcome == DONE
    local.run(seconds=2)
    assert ask(local, job).outcome == UNKNOWN
    assert local.node.state.records.count == 0


def test_a_job_without_retain_leaves_no_record(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q")
    client.call("ACKJOB", job)
    assert ask(local, job).outcome == UNKNOWN


@pytest.mark.parametrize(("command", "outcome"), [("ACKJOB", DONE), ("FASTACK", DONE), ("DELJOB", DELETED)])
def test_each_command_that_ends_a_job_has_its_outcome(
    local: LocalNode, client: LocalClient, command: str, outcome: int
) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    client.call(command, job)
    assert ask(local, job).outcome == outcome


def test_a_job_that_expires_and_one_that_is_purged_have_their_outcomes(local: LocalNode, client: LocalClient) -> None:
    expired = client.add("a", "body", "RETAIN", 60, "TTL", 1)
    purged = client.add("b", "body", "RETAIN", 60)
    client.call("QPURGE", "b")
    local.run(seconds=5)
    assert ask(local, expired).outcome == EXPIRED
    assert ask(local, purged).outcome == DELETED


def test_the_setting_retain_is_the_default_and_an_option_wins(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "q", "SET", "retain", 60)
    kept = client.add("q")
    plain = client.add("q", "body", "RETAIN", 0)
    client.call("ACKJOB", kept, plain)
    assert (ask(local, kept).outcome, ask(local, plain).outcome) == (DONE, UNKNOWN)


@pytest.mark.parametrize("value", [-1, 2_592_001, "x"])
def test_retain_must_be_up_to_thirty_days(client: LocalClient, value: int | str) -> None:
    client.call("ADDJOB", "q", "body", 0, "RETAIN", 2_592_000)
    reply = client.call("ADDJOB", "q", "body", 0, "RETAIN", value)
    assert str(reply) == "ERR RETAIN must be between 0 and 2592000 seconds"


def test_a_moved_job_is_answered_for_by_its_newest_link(local: LocalNode, client: LocalClient) -> None:
    first = client.add("q")
    client.call("MOVEJOB", first, "TO", "r")
    assert ask(local, first).outcome == WAITING
    assert ask(local, first).moves == 1
    (second,) = client.take("r")
    client.call("ACKJOB", second)
    fate = ask(local, first)
    assert (fate.outcome, fate.moves) == (DONE, 1)


def test_a_dead_letter_is_dead_until_it_is_redriven(local: LocalNode, client: LocalClient) -> None:
    first = client.add("q")
    client.take("q")
    client.call("NACK", first, "DEAD")
    fate = ask(local, first)
    (letter,) = [job.id for job in local.node.state.lifecycle.table.jobs()]
    assert (fate.outcome, fate.successor, fate.moves) == (DEAD, letter, 1)
    client.call("REDRIVE", "q.dead")
    local.run(seconds=1)
    assert ask(local, first).outcome == WAITING
    client.call("ACKJOB", *client.take("q"))
    assert ask(local, first).outcome == DONE


def test_a_dead_letter_that_is_acknowledged_is_deleted_not_done(local: LocalNode, client: LocalClient) -> None:
    first = client.add("q")
    client.take("q")
    client.call("NACK", first, "DEAD")
    client.call("ACKJOB", *client.take("q.dead"))
    assert ask(local, first).outcome == DELETED


def test_a_job_that_is_dropped_instead_of_becoming_a_dead_letter_is_dead_without_successor(
    local: LocalNode, client: LocalClient
) -> None:
    client.call("QCONF", "q", "SET", "dead", "drop")
    first = client.add("q")
    client.take("q")
    client.call("NACK", first, "DEAD")
    assert (ask(local, first).outcome, ask(local, first).successor) == (DEAD, None)


def test_an_at_most_once_job_that_is_moved_is_answered_for_by_its_successor(
    local: LocalNode, client: LocalClient
) -> None:
    first = client.add("q", "body", "RETRY", 0)
    client.call("MOVEJOB", first, "TO", "r")
    assert (ask(local, first).outcome, ask(local, first).moves) == (WAITING, 1)


def test_the_oldest_records_are_forgotten_when_there_are_too_many(local: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "maxmemory", "20mb")
    client.call("CONFIG", "SET", "records-max", 1)
    ids = [client.add("q", "body", "RETAIN", 60) for _ in range(1000)]
    before = local.node.state.lifecycle.memory.used_bytes
    for job in ids:
        client.call("ACKJOB", job)
    records = local.node.state.records
    assert 0 < records.count < 1000
    assert int(records.used_bytes) * 10_000 <= 95 * (20 << 20)
    assert ask(local, ids[0]).outcome == UNKNOWN
    assert ask(local, ids[-1]).outcome == DONE
    assert local.node.state.lifecycle.memory.used_bytes < before
    client.call("CONFIG", "SET", "records-max", 0)
    local.run(seconds=2)
    assert (records.count, records.used_bytes) == (0, 0)


def test_records_and_watches_have_metrics(local: LocalNode, client: LocalClient) -> None:
    client.call("ACKJOB", client.add("q", "body", "RETAIN", 60))
    watch(local, JOB)
    page = scrape(local)
    assert page.value("disque_job_records") == page.value("disque_job_watches") == 1
    assert page.value("disque_job_records_bytes") == local.node.state.records.used_bytes


def test_records_go_with_everything_else(local: LocalNode, client: LocalClient) -> None:
    for _ in range(300):
        client.call("ACKJOB", client.add("q", "body", "RETAIN", 60))
    client.call("DEBUG", "FLUSHALL")
    records = local.node.state.records
    assert (records.count, records.used_bytes) == (0, 0)
    local.run(seconds=1)
    assert not records.free_part()


# --- between nodes ------------------------------------------------------------------------------------------------


def test_holders_answer_and_tell_about_the_end(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, copies=2)
    (other,) = [
        member for member in (two, three) if job not in {j.id for j in member.node.state.lifecycle.table.jobs()}
    ]
    notes = watch(other, job)
    cluster.run(seconds=1)
    assert sorted(notes.latest().values()) == [UNKNOWN, WAITING, WAITING]
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=1)
    assert DONE in notes.latest().values()
    assert len(cluster.sent("JOBASK")) == 2


def test_a_watched_job_leaves_a_record_for_ten_minutes(cluster: Cluster) -> None:
    one, _, three = cluster.members
    job = add(cluster, one, copies=3)
    watch(three, job)
    cluster.run(seconds=1)
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=590)
    assert three.node.state.events.fate_of(job).outcome == DONE
    cluster.run(seconds=40)
    assert three.node.state.events.fate_of(job).outcome == UNKNOWN


def test_questions_are_repeated_and_forgotten(cluster: Cluster) -> None:
    one, two, _ = cluster.members
    notes = watch(one, JOB)
    cluster.run(seconds=65)
    assert len(cluster.sent("JOBASK", to=two)) == 3
    one.node.state.watches.unwatch(JOB, notes)
    cluster.forget_sent()
    cluster.run(milliseconds=askers.REMEMBERED_MS + asking.REPEAT_MS + 1000)
    assert not cluster.sent("JOBASK")
    for member in cluster.members:
        assert not member.node.state.lifecycle.watched


def test_a_lost_answer_comes_with_the_next_question(cluster: Cluster) -> None:
    one, _, three = cluster.members
    job = add(cluster, one, copies=3)
    notes = watch(three, job)
    cluster.run(seconds=1)
    cluster.lose("JOBTOLD", to=three, count=2)
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=1)
    cluster.run(milliseconds=asking.REPEAT_MS)
    assert notes.latest()[one.id] == DONE


def congest(here: Member, there: Member, *, congested: bool) -> None:
    """Pretend that a link has no room, or has some again."""
    link = here.node.state.view.peers[there.id].link
    assert link is not None
    link.congested = congested


def test_a_node_with_a_congested_link_is_asked_when_the_link_has_room_again(cluster: Cluster) -> None:
    """Seed 1248: RESULT said that no node knows a job, because no node was asked."""
    one, two, three = cluster.members
    jobs = [add(cluster, one, copies=3) for _ in range(MOST_ASKED + 1)]
    congest(three, one, congested=True)
    cluster.forget_sent()
    notes = watch(three, *jobs)
    cluster.run(milliseconds=500)
    assert len(cluster.sent("JOBASK", by=three, to=two)) == 2, "the others are asked at once"
    assert not cluster.sent("JOBASK", to=one)
    congest(three, one, congested=False)
    cluster.run(milliseconds=500)
    assert len(cluster.sent("JOBASK", to=one)) == 2
    assert {job for job, _, node_id in notes.answers if node_id == one.id} == set(jobs)


def test_news_over_a_congested_link_come_when_the_link_has_room_again(cluster: Cluster) -> None:
    one, two, three = cluster.members
    jobs = [add(cluster, one, copies=2) for _ in range(3)]
    notes = watch(three, *jobs)
    cluster.run(seconds=1)
    for holder in (one, two):
        congest(holder, three, congested=True)
    one.admin.call("ACKJOB", *jobs)
    cluster.run(seconds=1)
    assert DONE not in notes.latest().values()
    for holder in (one, two):
        congest(holder, three, congested=False)
    cluster.run(milliseconds=500)
    assert {job for job, fate, _ in notes.answers if fate.outcome == DONE} == set(jobs)


def test_a_watch_survives_a_partition(cluster: Cluster) -> None:
    one, two, three = cluster.members
    job = add(cluster, one, "RETAIN", 600, copies=3)
    notes = watch(three, job)
    cluster.run(seconds=1)
    cluster.partition([one, two], [three])
    one.admin.call("ACKJOB", job)
    cluster.run(seconds=60)
    assert DONE not in notes.latest().values()
    cluster.heal()
    cluster.run(seconds=askers.REMEMBERED_MS / 1000)
    assert notes.latest()[one.id] == DONE


def test_many_jobs_are_asked_about_in_few_messages(cluster: Cluster) -> None:
    one, two, _ = cluster.members
    ids = [add(cluster, one, copies=3) for _ in range(250)]
    cluster.forget_sent()
    notes = watch(two, *ids)
    cluster.run(seconds=1)
    assert len(cluster.sent("JOBASK", to=one)) == 3
    assert len(notes.answers) == 3 * 250


def test_a_withdrawn_job_is_deleted_and_not_done(cluster: Cluster) -> None:
    one, two, three = cluster.members
    cluster.lose("GOTJOB")
    cluster.lose("GOTJOBS")
    client = one.client()
    client.send("ADDJOB", "q", "body", 1000, "REPLICATE", 3, "RETAIN", 60)
    cluster.run(milliseconds=500)
    (job,) = [job.id for job in two.node.state.lifecycle.table.jobs()]
    cluster.run(seconds=2)
    assert str(client.next_reply()).startswith("NOREPL")
    for member in (two, three):
        assert member.node.state.events.fate_of(job).outcome == DELETED


def test_a_moved_job_is_done_nowhere(cluster: Cluster) -> None:
    """The holders learn of the end of the old job by an acknowledgement, which must not read as done."""
    one, two, three = cluster.members
    job = add(cluster, one, copies=3)
    notes = [watch(member, job) for member in cluster.members]
    cluster.run(seconds=1)
    one.client().send("MOVEJOB", job, "TO", "r")
    cluster.run(seconds=40)
    for member in (one, two, three):
        assert member.node.state.events.fate_of(job).outcome in (WAITING, MOVED)
    assert not any(fate.outcome == DONE for noted in notes for _, fate, _ in noted.answers)


# --- messages -----------------------------------------------------------------------------------------------------


def test_the_payload_of_a_fate_comes_back() -> None:
    for fate in (NOTHING, Fate(DONE, 1, 2, 3, JOB, b"", 5), Fate(DEAD, (1 << 62), (1 << 62), 7, None, b"r" * 65536)):
        back = unpack_fate(b"xx" + pack_fate(fate), 2)
        for name in ("outcome", "ended_ms", "claim", "moves", "successor", "result", "copies"):
            assert getattr(back, name) == getattr(fate, name)


@pytest.mark.parametrize("payload", [b"", JOB[:-1], b"X" * 40, pack_questions([JOB] * (MOST_ASKED + 1)), JOB + b"x"])
def test_a_malformed_question_has_no_answer(local: LocalNode, payload: bytes) -> None:
    peer = scripted(local)
    peer.deliver(peer.link, peer.writer.other(kinds.JOBASK, payload))
    local.run(seconds=1)
    peer.collect()
    assert not peer.received(kinds.JOBTOLD)
    assert not local.node.state.lifecycle.watched


def answered(peer: ScriptedNode) -> list[tuple[bytes, Fate]]:
    """What the node answered to a scripted one."""
    link = peer.dialed_link
    assert link is not None
    carrier: Any = link.carrier
    told = [frame for frame in carrier.frames if frame.kind == kinds.JOBTOLD]
    return [answer for frame in told for answer in unpack_answers(frame.payload)]


def test_a_question_is_answered(local: LocalNode, client: LocalClient) -> None:
    job = client.add("q", "body", "RETAIN", 60)
    peer = scripted(local)
    peer.deliver(peer.link, peer.writer.other(kinds.JOBASK, pack_questions([job, JOB])))
    local.run(milliseconds=100)
    peer.collect()
    assert [(job_id, fate.outcome) for job_id, fate in answered(peer)] == [(job, WAITING), (JOB, UNKNOWN)]
    client.call("ACKJOB", job)
    local.run(milliseconds=100)
    peer.collect()
    assert [(job_id, fate.outcome) for job_id, fate in answered(peer)][2:] == [(job, DONE)]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        JOB,
        pack_answer(JOB, NOTHING)[:-1],
        pack_answer(b"X" * 40, NOTHING),
        JOB + b"\x09" + pack_fate(NOTHING)[1:],
        pack_answer(JOB, Fate(DONE, 0, 0, 0, None, b"x" * 65537)),
        pack_answer(JOB, NOTHING) * (MOST_ASKED + 1),
        JOB + pack_fate(Fate(DONE, -1)),
    ],
)
def test_a_malformed_answer_is_ignored(local: LocalNode, payload: bytes) -> None:
    peer = scripted(local)
    notes = watch(local, JOB)
    local.run(milliseconds=100)
    notes.answers.clear()
    peer.deliver(peer.link, peer.writer.other(kinds.JOBTOLD, payload))
    local.run(milliseconds=100)
    assert not notes.answers


def test_no_more_questions_are_remembered_than_there_is_room_for(
    local: LocalNode,
) -> None:
    fates_of(local.node.state).askers.most = 1
    peer = scripted(local)
    peer.deliver(peer.link, peer.writer.other(kinds.JOBASK, pack_questions([JOB, JOB[:-1] + b"3"])))
    assert len(local.node.state.lifecycle.watched) == 1
