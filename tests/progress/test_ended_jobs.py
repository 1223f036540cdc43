"""The progress log of a job that ended stays with its record."""

from __future__ import annotations

import pytest

from disqued.core.fates.fate import DONE, Fate
from disqued.core.fates.stored import store, stored
from disqued.core.jobs.joblog import ADDED, JobLog
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from progress.test_holders import log, read
from progress.test_log import CLAIM, shown
from support.logging_node import logging_node
from support.stories import added

JOB = b"D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"
LINES = [(CLAIM, 0, b"begun"), (CLAIM, 1, b"half\n")]


def used_bytes(local: LocalNode) -> int:
    return int(local.node.state.lifecycle.memory.used_bytes)


def logged(client: LocalClient, *options: str | int) -> bytes:
    """A job with two entries that a worker has."""
    job_id = client.add("mail", "body", *options)
    client.take("mail")
    for claim, seq, entry in LINES:
        assert client.call("LOGJOB", job_id, "CLAIM", claim, "SEQ", seq, entry) == 1
    return job_id


def test_the_log_of_a_job_with_a_record_is_read_after_its_end(local: LocalNode, client: LocalClient) -> None:
    job_id = logged(client, "RETAIN", 60)
    client.call("ACKJOB", job_id, "RESULT", "42")
    local.run(seconds=10)
    assert shown(client, job_id) == LINES
    assert shown(client, job_id, "FROM", 1) == LINES[1:]
    local.run(seconds=60)
    assert str(client.call("SHOWLOG", job_id)).startswith("NOJOB")


def test_the_log_of_a_job_without_a_record_is_forgotten(local: LocalNode, client: LocalClient) -> None:
    job_id = logged(client)
    client.call("ACKJOB", job_id)
    local.run(seconds=10)
    assert str(client.call("SHOWLOG", job_id)).startswith("NOJOB")


def test_its_memory_counts_once_and_is_free_when_the_record_is_forgotten(local: LocalNode, client: LocalClient) -> None:
    before = used_bytes(local)
    job_id = logged(client, "RETAIN", 60)
    log_bytes = local.node.state.lifecycle.logs[job_id].used_bytes
    client.call("ACKJOB", job_id)
    records = local.node.state.records
    record = records.get(job_id)
    assert record is not None
    assert record.size_bytes > log_bytes
    assert records.used_bytes == record.size_bytes
    local.run(seconds=10)
    assert not local.node.state.lifecycle.logs
    after = used_bytes(local)
    local.run(seconds=60)
    assert after - used_bytes(local) >= records.used_bytes + log_bytes
    assert used_bytes(local) - before < log_bytes


def test_an_acknowledgement_with_a_sequence_can_be_repeated(local: LocalNode, client: LocalClient) -> None:
    job_id = logged(client, "RETAIN", 60)
    for _ in range(2):
        assert isinstance(client.call("ACKJOB", job_id, "CLAIM", CLAIM, "SEQ", 2, "RESULT", "42"), int)
    assert shown(client, job_id) == LINES
    local.run(seconds=1)


def test_a_move_carries_the_log_into_the_record_of_the_old_job(client: LocalClient) -> None:
    job_id = logged(client)
    client.call("NACK", job_id)
    assert client.call("MOVEJOB", job_id, "TO", "other") == 1
    assert shown(client, job_id) == LINES
    (successor,) = client.take("other")
    assert shown(client, successor) == []


def test_a_node_without_the_job_shows_the_log_of_its_record(cluster: Cluster) -> None:
    first = cluster.members[0]
    job_id = added(cluster, "REPLICATE", 2, "RETRY", 300, "RETAIN", 60)
    first.admin.take("mail")
    for claim, seq, entry in LINES:
        assert log(cluster, first, job_id, seq, entry.decode(), claim=claim) == "2"
    first.admin.call("ACKJOB", job_id)
    cluster.run(seconds=10)
    assert [member.node.state.records.get(job_id) is not None for member in cluster.members].count(True) == 2
    for member in cluster.members:
        assert read(cluster, member, job_id) == LINES


def test_a_job_that_no_node_knows_is_refused(cluster: Cluster) -> None:
    client = cluster.members[0].client()
    client.send("SHOWLOG", JOB)
    cluster.run(milliseconds=600)
    assert str(client.next_reply()).startswith("NOJOB")


def test_an_entry_that_no_holder_has_is_not_shown(cluster: Cluster) -> None:
    reader, writer = (member.client() for member in cluster.members[:2])
    reader.send("SHOWLOG", JOB)
    writer.send("LOGJOB", JOB, "CLAIM", CLAIM, "SEQ", 0, "entry")
    cluster.run(milliseconds=600)
    assert str(writer.next_reply()).startswith("NOJOB")
    assert str(reader.next_reply()).startswith("NOJOB")


@pytest.mark.parametrize("rewritten", [False, True])
def test_the_log_of_a_record_survives_a_crash(*, rewritten: bool) -> None:
    local = logging_node("always")
    client = local.client()
    job_id = logged(client, "RETAIN", 600)
    client.call("ACKJOB", job_id)
    local.run(seconds=1)
    if rewritten:
        client.call("BGREWRITEAOF")
        local.run(seconds=2)
    local.crash()
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    local.run(seconds=5)
    assert shown(local.client(), job_id) == LINES


def stored_log(*lines: tuple[int, int, int, bytes]) -> bytes:
    """The content of a record with a log and a result."""
    job_log = JobLog()
    for line in lines:
        assert job_log.add(line, 100, 1000) == ADDED
    return store(JOB, b"q", JOB, Fate(DONE, 5, 0, 0, None, b"42"), 99, 0, job_log)


def test_the_log_in_a_record_comes_back() -> None:
    lines = [(CLAIM, 0, 7, b"a\nb"), (CLAIM, 1, 8, b""), (CLAIM, 3, 9, bytes(range(256)))]
    found = stored(stored_log(*lines))
    assert found is not None
    assert found.log is not None
    assert found.log.lines() == lines
    assert found.fate.result == b"42"


@pytest.mark.parametrize(
    "content",
    [
        stored_log((5, 0, 7, b"abc"))[:-1],
        stored_log((5, 0, 7, b"abc")) + b"x",
        stored_log((5, 0, 7, b"abc")).replace(b"5 0 7 3\n", b"5 0 7 4\n"),
        stored_log((5, 0, 7, b"abc")).replace(b"5 0 7 3\n", b"5 0 x 3\n"),
        stored_log((5, 0, 7, b"abc")).replace(b"5 0 7 3\n", b"5 3000000000 7 3\n"),
        stored_log((5, 0, 7, b"abc"), (5, 1, 7, b"abc")).replace(b"5 1 7 3\n", b"5 0 7 3\n"),
    ],
    ids=range(6),
)
def test_a_record_with_a_malformed_log_is_damage(content: bytes) -> None:
    assert stored(content) is None
