"""REPLJOB and GOTJOB: how a node handles copies that other nodes ask it to keep, and invalid messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.core.jobs.codec import pack_for_bus
from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import JobIds
from disqued.testing.cluster import Cluster, Member
from replication.adding import adding, holders, id_of, jobs


class Sender:
    """Sends frames to one member in the name of another one."""

    def __init__(self, sender: Member, receiver: Member) -> None:
        self.sender = sender
        self.receiver = receiver
        self.job_ids = JobIds(sender.id, sender.host.random_bytes)

    def job(self, *, queue: bytes = b"mail", ttl_s: int = 100, retry_s: int = 10, delay_s: int = 0) -> Job:
        """Make a new job of the sender."""
        now_ms = self.sender.now_ms
        job_id = self.job_ids.make(ttl_s, retry_s > 0)
        return Job(job_id, queue, b"body", now_ms * 1_000_000, now_ms // 1000 + ttl_s, delay_s, retry_s, 2)

    def packed(self, job: Job, *node_ids: bytes) -> bytes:
        """Pack the job with a list of holders; by default the sender and the receiver."""
        listed = node_ids or (self.sender.id, self.receiver.id)
        return pack_for_bus(job, self.sender.now_ms, len(listed).to_bytes(4, "little") + b"".join(listed))

    def send(self, frame: bytes) -> None:
        """Deliver a frame."""
        link = self.sender.node.state.view.peers[self.receiver.id].link
        assert link is not None
        link.out.append(frame)
        self.sender.node.ready.links.append(link)
        self.sender.flush()

    def repljob(self, *packed: bytes, flags: int = 0) -> None:
        """Send REPLJOB."""
        self.send(self.sender.node.state.bus.jobs(kinds.REPLJOB, list(packed), flags))


@pytest.fixture
def sender(cluster: Cluster) -> Sender:
    return Sender(cluster.members[0], cluster.members[1])


def answers(cluster: Cluster) -> int:
    cluster.run(milliseconds=5)
    return len(cluster.sent("GOTJOB"))


def test_a_job_is_kept_and_confirmed(cluster: Cluster, sender: Sender) -> None:
    job = sender.job()
    sender.repljob(sender.packed(job))
    assert answers(cluster) == 1
    assert cluster.copies(job.id, "active") == [cluster.members[1]]


def test_a_repljob_with_noreply_is_not_confirmed(cluster: Cluster, sender: Sender) -> None:
    sender.repljob(sender.packed(sender.job()), flags=kinds.NOREPLY)
    assert answers(cluster) == 0
    assert jobs(cluster) == [0, 1, 0]


def test_flags_of_the_sender_are_not_taken_over(cluster: Cluster, sender: Sender) -> None:
    job = sender.job()
    job.state, job.flags, job.gc_retry = 2, 255, 7
    job.nacks, job.additional_deliveries = 3, 4
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    receiver = cluster.members[1]
    kept = receiver.node.state.lifecycle.table.get(job.id)
    assert kept is not None
    assert (kept.state, kept.flags, kept.gc_retry) == (1, 3, 0)
    assert (kept.nacks, kept.additional_deliveries) == (3, 4)


def test_a_copy_of_an_at_most_once_job_is_never_queued_by_itself(cluster: Cluster, sender: Sender) -> None:
    job = sender.job(retry_s=0)
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    assert cluster.members[1].admin.show(job.id)["next-requeue-within"] is None


def test_an_orphaned_copy_is_queued_after_delay_and_retry(cluster: Cluster, sender: Sender) -> None:
    job = sender.job(retry_s=5, delay_s=3)
    began_ms = cluster.network.now_ms
    sender.repljob(sender.packed(job, cluster.members[1].id))
    cluster.until(lambda: bool(cluster.copies(job.id, "queued")))
    assert 7_700 <= cluster.network.now_ms - began_ms <= 8_300


def test_lists_of_holders_are_merged(cluster: Cluster, sender: Sender) -> None:
    first, second, third = cluster.members
    job = sender.job()
    sender.repljob(sender.packed(job, first.id, second.id))
    sender.repljob(sender.packed(job, second.id, third.id))
    assert answers(cluster) == 2
    assert holders(second, job.id) == {first.id, second.id, third.id}


def test_unknown_nodes_are_left_out_and_the_receiver_is_always_a_holder(cluster: Cluster, sender: Sender) -> None:
    first, second, _ = cluster.members
    job = sender.job()
    sender.repljob(sender.packed(job, first.id, b"f" * 40))
    cluster.run(milliseconds=5)
    assert holders(second, job.id) == {first.id, second.id}


def test_a_job_that_is_done_stays_done(cluster: Cluster, sender: Sender) -> None:
    second = cluster.members[1]
    job = sender.job()
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    known = second.node.state.lifecycle.table.get(job.id)
    assert known is not None
    second.node.state.lifecycle.acknowledge(known, second.now_ms)
    sender.repljob(sender.packed(job, *[member.id for member in cluster.members]))
    assert answers(cluster) == 2
    assert second.admin.show(job.id)["state"] == b"acked"
    assert len(holders(second, job.id)) == 3


def test_a_job_replaces_its_dummy_acknowledgement_and_is_done(cluster: Cluster, sender: Sender) -> None:
    first, second, _ = cluster.members
    job = sender.job()
    memory = second.node.state.lifecycle.memory
    empty_bytes = memory.used_bytes
    dummy = Job(job.id, b"", b"", 0, job.expire_at_s, 0, 0, 0)
    second.node.state.lifecycle.keep_dummy(dummy, second.now_ms)
    sender.repljob(sender.packed(job))
    assert answers(cluster) == 1
    shown = second.admin.show(job.id)
    assert (shown["state"], shown["queue"], shown["body"]) == (b"acked", b"mail", b"body")
    assert holders(second, job.id) == {first.id, second.id}
    second.admin.call("DELJOB", job.id)
    assert memory.used_bytes == empty_bytes


def test_a_copy_that_arrives_after_the_acknowledgement_is_not_delivered(cluster: Cluster) -> None:
    """The second node is suspended while a job is added and done; then the frames of the third node arrive first."""
    first, second, third = cluster.members
    cluster.cut(first, second)
    client = adding(cluster, "REPLICATE", 2, "RETRY", 2)
    job_id = id_of(cluster, client)
    while not cluster.sent("REPLJOB", to=second):
        job_id = id_of(cluster, adding(cluster, "REPLICATE", 2, "RETRY", 2))
    third.admin.call("ACKJOB", job_id)
    cluster.run(seconds=1)
    cluster.heal()
    cluster.run(milliseconds=50)
    assert job_id not in second.admin.take("mail", count=100)
    cluster.run(seconds=10)
    assert cluster.copies(job_id) == []
    assert job_id not in second.admin.take("mail", count=100)


def test_a_job_that_was_deleted_but_not_done_is_kept_again(cluster: Cluster, sender: Sender) -> None:
    """The job was deleted here, but no node said that it is done."""
    job = sender.job()
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    sender.send(sender.sender.node.state.bus.about_job(kinds.DELJOB, job.id))
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    assert cluster.copies(job.id, "active") == [cluster.members[1]]


@pytest.mark.parametrize(
    "cause", [("CLUSTER", "LEAVING", "yes"), ("CONFIG", "SET", "maxmemory", "1"), ("PAUSE", "mail", "in")]
)
def test_a_node_that_refuses_copies_does_not_answer(cluster: Cluster, sender: Sender, cause: tuple[str, ...]) -> None:
    cluster.members[1].admin.call(*cause)
    sender.repljob(sender.packed(sender.job()))
    assert answers(cluster) == 0
    assert jobs(cluster) == [0, 0, 0]
    assert b"copies_refused:1" in cluster.members[1].admin.raw("INFO", "replication")


def test_other_nodes_are_asked_when_a_node_refuses_copies(cluster: Cluster) -> None:
    first, second, third = cluster.members
    second.admin.call("PAUSE", "mail", "in")
    for _ in range(10):
        assert cluster.copies(id_of(cluster, adding(cluster, "REPLICATE", 2))) == [first, third]


def test_a_node_that_refuses_copies_still_confirms_jobs_that_it_has(cluster: Cluster, sender: Sender) -> None:
    job = sender.job()
    sender.repljob(sender.packed(job))
    cluster.run(milliseconds=5)
    cluster.members[1].admin.call("PAUSE", "mail", "in")
    sender.repljob(sender.packed(job))
    assert answers(cluster) == 2


def test_frames_with_no_job_are_ignored(cluster: Cluster, sender: Sender) -> None:
    sender.repljob()
    assert answers(cluster) == 0
    assert jobs(cluster) == [0, 0, 0]


def test_frames_with_several_jobs_from_a_node_of_the_original_are_ignored(cluster: Cluster, sender: Sender) -> None:
    cluster.members[1].node.state.view.peers[sender.sender.id].features = 0
    sender.repljob(sender.packed(sender.job()), sender.packed(sender.job()))
    assert answers(cluster) == 0
    assert jobs(cluster) == [0, 0, 0]


def test_bytes_after_the_job_are_ignored(cluster: Cluster, sender: Sender) -> None:
    sender.repljob(sender.packed(sender.job()) + b"more")
    assert answers(cluster) == 1


def test_jobs_of_unknown_nodes_are_ignored(cluster: Cluster, sender: Sender) -> None:
    job = sender.job()
    frame = sender.sender.node.state.bus.jobs(kinds.REPLJOB, [sender.packed(job)])
    sender.send(frame.replace(sender.sender.id, b"e" * 40))
    assert answers(cluster) == 0
    assert jobs(cluster) == [0, 0, 0]


@given(st.data())
def test_a_node_survives_any_bytes_instead_of_a_job(data: st.DataObject) -> None:
    cluster = Cluster(2)
    sender = Sender(*cluster.members)
    packed = bytearray(sender.packed(sender.job()))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    del packed[data.draw(st.integers(0, len(packed))) :]
    sender.repljob(bytes(packed))
    cluster.run(milliseconds=5)
    assert id_of(cluster, adding(cluster, "REPLICATE", 2))
    assert not any("BUG" in line for _, line in cluster.members[1].host.log_lines)


def test_a_corrupt_job_is_logged(cluster: Cluster, sender: Sender) -> None:
    sender.repljob(sender.packed(sender.job())[:-1])
    assert answers(cluster) == 0
    assert any("Ignoring a REPLJOB" in line for _, line in cluster.members[1].host.log_lines)


@pytest.mark.parametrize("job_id", [b"x" * 40, b"D-" + b"\xff" * 38, bytes(40)])
def test_confirmations_of_unknown_jobs_are_ignored(cluster: Cluster, sender: Sender, job_id: bytes) -> None:
    sender.send(sender.sender.node.state.bus.about_job(kinds.GOTJOB, job_id))
    cluster.run(milliseconds=5)
    assert jobs(cluster) == [0, 0, 0]
    assert not any("BUG" in line for _, line in cluster.members[1].host.log_lines)


def test_a_confirmation_by_a_node_that_was_not_asked_does_not_count(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.lose("GOTJOB", by=second)
    client = adding(cluster, "REPLICATE", 2, timeout_ms=30)
    (job,) = first.node.state.lifecycle.table.jobs()
    if third.id in (job.delivered or ()):
        second, third = third, second
        cluster.heal()
        cluster.lose("GOTJOB", by=second)
    Sender(third, first).send(third.node.state.bus.about_job(kinds.GOTJOB, job.id))
    cluster.run(milliseconds=10)
    assert client.silent
