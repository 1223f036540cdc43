"""BACKUP: the copy that a node makes of its jobs, and what it says about finished jobs and those that left.

The nodes run in virtual time with disks in memory. `disqued.backup` merges the copies; its tests are in tests/backup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hiredis
import pytest

from disqued.client import ResponseError
from disqued.core.host import disk
from disqued.core.jobs.codec import unpack
from disqued.persistence.backup import IDLE_MS, READ_BYTES
from disqued.testing.local import LocalNode
from support.aofcontent import come_back, job_ids
from support.asking import ask
from support.logging_node import AOF, logging_node, written

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalClient

COPY = "temp-rewriteaof-backup-1.aof"
DONE, MOVED = "done", "moved"


def reply(local: LocalNode, client: LocalClient, *words: bytes | str | int) -> Any:
    """The reply to a command that waits for the disk."""
    client.send(*words)
    for _ in range(2000):
        if not client.silent:
            return client.next_reply()
        local.run(milliseconds=5)
    pytest.fail(f"no reply to {words}")


def begun(local: LocalNode, client: LocalClient) -> bytes:
    """Begin a copy: its ID, when it has all jobs."""
    backup_id, node_id = reply(local, client, "BACKUP", "BEGIN")
    assert node_id == local.node.state.view.node_id
    assert isinstance(backup_id, bytes)
    return backup_id


def ended(local: LocalNode, client: LocalClient, backup_id: bytes) -> bytes:
    """End the copy, read it, and close it."""
    size, _ = reply(local, client, "BACKUP", "END", backup_id)
    data = b""
    while part := reply(local, client, "BACKUP", "READ", backup_id, len(data)):
        data += part
    assert len(data) == size
    assert str(reply(local, client, "BACKUP", "CLOSE", backup_id)) in {"OK", "b'OK'"}
    return data


def outcomes(data: bytes) -> dict[bytes, str]:
    """What the last record of each job says: the state of the job, DONE, or MOVED."""
    found: dict[bytes, str] = {}
    reader = hiredis.Reader()
    reader.feed(data)
    while (record := reader.gets()) is not False:
        match record:
            case [b"LOADJOB", packed]:
                one = unpack(packed, 0, len(packed))
                found[one.job.id] = ("wait-repl", "active", "queued", "acked")[one.state]
            case [b"DELJOB", job_id]:
                found[job_id] = DONE
            case [b"MOVED", job_id]:
                found[job_id] = MOVED
            case _:
                pass
    return found


@pytest.fixture(params=[True, False], ids=["with a log", "without a log"])
def local(request: pytest.FixtureRequest) -> LocalNode:
    """A node, with and without an append-only file."""
    return logging_node() if request.param else LocalNode()


@pytest.fixture
def client(local: LocalNode) -> LocalClient:
    return local.client()


def test_copy_has_every_job_in_its_state(local: LocalNode, client: LocalClient) -> None:
    queued = [client.add("mail", f"body {number}", "RETRY", 60) for number in range(3000)]
    [taken] = client.take("mail")
    delayed = client.add("mail", "later", "RETRY", 60, "DELAY", 600)
    found = outcomes(ended(local, client, begun(local, client)))
    assert found == dict.fromkeys([*queued, delayed], "queued") | {taken: "active", delayed: "active"}


def test_changes_before_the_end_of_the_copy_are_in_it_and_later_ones_are_not(
    local: LocalNode, client: LocalClient
) -> None:
    before, finished = client.add("mail", "a", "RETRY", 60), client.add("mail", "b", "RETRY", 60)
    backup_id = begun(local, client)
    meanwhile = client.add("mail", "c", "RETRY", 60)
    client.call("ACKJOB", finished)
    client.send("BACKUP", "END", backup_id)
    client.send("ACKJOB", before)
    after = reply(local, client, "ADDJOB", "mail", "d", 0)
    assert isinstance(after, list)
    client.replies()
    found = outcomes(reply(local, client, "BACKUP", "READ", backup_id, 0))
    assert found == {before: "queued", finished: DONE, meanwhile: "queued"}


def test_jobs_that_are_added_and_finished_during_the_walk_are_right_in_the_copy(
    local: LocalNode, client: LocalClient
) -> None:
    ids = [client.add("mail", f"body {number}", "RETRY", 60) for number in range(20_000)]
    other = local.client()
    other.send("BACKUP", "BEGIN")
    late: list[bytes] = []
    acknowledged: list[bytes] = []
    while other.silent:
        late.append(client.add("mail", "late", "RETRY", 60))
        acknowledged += [ids[len(late)], ids[-len(late)], late[0]]
        client.call("ACKJOB", *acknowledged[-3:])
        local.run(milliseconds=1)
    assert len(late) > 3, "the walk was over at once"
    backup_id: Any = other.next_reply()
    found = outcomes(ended(local, other, backup_id[0]))
    assert {job_id for job_id, state in found.items() if state == "queued"} == {*ids, *late} - {*acknowledged}


def test_copy_does_not_touch_the_file_of_the_node(client: LocalClient, local: LocalNode) -> None:
    kept, finished = client.add("mail", "a", "RETRY", 60), client.add("mail", "b", "RETRY", 60)
    backup_id = begun(local, client)
    client.call("ACKJOB", finished)
    ended(local, client, backup_id)
    local.run(seconds=3)
    assert COPY not in local.host.disk.files
    if local.node.state.config.appendonly:
        assert b"MOVED" not in written(local)
        come_back(local)
        assert job_ids(local) == {kept}
    else:
        assert AOF not in local.host.disk.files


def test_a_large_copy_is_read_in_parts(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", b"x" * (3 * READ_BYTES), "RETRY", 60)
    backup_id = begun(local, client)
    size, jobs = reply(local, client, "BACKUP", "END", backup_id)
    parts = [reply(local, client, "BACKUP", "READ", backup_id, at) for at in range(0, size, READ_BYTES)]
    assert jobs == 1
    assert len(parts) == 4
    assert sum(map(len, parts)) == size
    assert reply(local, client, "BACKUP", "READ", backup_id, size) == b""
    assert "offset" in str(reply(local, client, "BACKUP", "READ", backup_id, size + 1))


def test_a_job_that_all_holders_do_not_know_to_be_finished_is_finished_in_the_copy(cluster: Cluster) -> None:
    owner, other, third = cluster.members
    client = owner.client()
    job_id = added(cluster, client, "REPLICATE", 3, "RETRY", 60)
    cluster.partition([owner], [other, third])
    assert ask(client, "ACKJOB", job_id) == 1
    assert copy_of(cluster, owner)[job_id] == DONE
    assert copy_of(cluster, third)[job_id] == "active"


def test_an_acknowledgement_of_a_job_of_another_node_is_in_the_copy(cluster: Cluster) -> None:
    owner, other, third = cluster.members
    job_id = added(cluster, owner.client(), "REPLICATE", 1, "RETRY", 60)
    cluster.partition([owner], [other, third])
    other.client().call("ACKJOB", job_id)
    assert copy_of(cluster, other)[job_id] == DONE


def test_a_job_that_moves_to_another_node_is_not_finished(pair: Cluster) -> None:
    first, second = pair.members
    job_id = added(pair, first.client(), "REPLICATE", 1, "RETRY", 0)
    maker = first.client()
    backup_id = begin_in(pair, maker)
    worker = second.client()
    worker.send("GETJOB", "TIMEOUT", 5000, "FROM", "mail")
    pair.until(lambda: not worker.silent)
    assert end_in(pair, maker, backup_id)[job_id] == MOVED


def test_a_job_that_a_leaving_node_transfers_is_not_finished(pair: Cluster) -> None:
    first, second = pair.members
    job_id = added(pair, first.client(), "REPLICATE", 1, "RETRY", 60)
    maker = first.client()
    backup_id = begin_in(pair, maker)
    first.client().call("CLUSTER", "LEAVING", "yes")
    pair.until(lambda: pair.copies(job_id) == [second])
    assert end_in(pair, maker, backup_id)[job_id] == MOVED


def test_one_copy_is_made_at_a_time(local: LocalNode, client: LocalClient) -> None:
    backup_id = begun(local, client)
    assert "is being made" in str(client.call("BACKUP", "BEGIN"))
    ended(local, client, backup_id)
    assert begun(local, client) != backup_id


def test_a_copy_without_a_client_is_removed(local: LocalNode, client: LocalClient) -> None:
    backup_id = begun(local, client)
    local.run(milliseconds=IDLE_MS - 1000)
    assert "offset" not in str(client.call("BACKUP", "READ", backup_id, 0))
    local.run(milliseconds=IDLE_MS - 1000)
    assert COPY in local.host.disk.files
    local.run(milliseconds=2000)
    assert "no request for it came for 120 seconds" in str(client.call("BACKUP", "END", backup_id))
    local.run(seconds=1)
    assert COPY not in local.host.disk.files


@pytest.mark.parametrize("verb", [disk.OPEN, disk.APPEND, disk.READ])
def test_a_disk_that_fails_is_reported(local: LocalNode, client: LocalClient, verb: int) -> None:
    client.add("mail", b"x" * READ_BYTES, "RETRY", 60)
    if local.node.state.config.appendonly:
        local.run(seconds=3)
    local.host.disk.fail(verb, times=1)
    client.send("BACKUP", "BEGIN")
    local.run(seconds=1)
    begun_now: Any = client.next_reply()
    answer = begun_now
    if not isinstance(begun_now, ResponseError):
        answer = reply(local, client, "BACKUP", "END", begun_now[0])
    if not isinstance(answer, ResponseError):
        answer = reply(local, client, "BACKUP", "READ", begun_now[0], 0)
    assert "Input/output error" in str(answer)


def test_dropping_all_jobs_stops_the_copy(local: LocalNode, client: LocalClient) -> None:
    backup_id = begun(local, client)
    reply(local, client, "DEBUG", "FLUSHALL")
    assert "all jobs were dropped" in str(client.call("BACKUP", "END", backup_id))


def test_settings_are_those_of_the_file(client: LocalClient) -> None:
    client.call("QCONF", "mail", "SET", "limit", "5")
    data = client.call("BACKUP", "SETTINGS")
    assert isinstance(data, bytes)
    lines = data.splitlines()
    assert (lines[0], lines[1][:26]) == (b"disqued-settings 1", b'setting "mail" "limit" "5"')


@pytest.mark.parametrize(
    "words",
    [("BACKUP",), ("BACKUP", "END"), ("BACKUP", "READ", "1-1", "x"), ("BACKUP", "CLOSE", "1-1"), ("BACKUP", "X")],
)
def test_wrong_requests_are_refused(client: LocalClient, words: tuple[str, ...]) -> None:
    assert isinstance(client.call(*words), ResponseError)


# --- in a cluster -----------------------------------------------------------------------------------------------------


def added(cluster: Cluster, client: LocalClient, *options: str | int) -> bytes:
    """The ID of a job that was added."""
    client.send("ADDJOB", "mail", "body", 5000, *options)
    cluster.until(lambda: not client.silent)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes), job_id
    return job_id


def begin_in(cluster: Cluster, client: LocalClient) -> bytes:
    client.send("BACKUP", "BEGIN")
    cluster.until(lambda: not client.silent)
    backup_id: Any = client.next_reply()
    assert isinstance(backup_id[0], bytes)
    return backup_id[0]


def end_in(cluster: Cluster, client: LocalClient, backup_id: bytes) -> dict[bytes, str]:
    """What the copy says about each job."""
    for words in (("END", backup_id), ("READ", backup_id, 0)):
        client.send("BACKUP", *words)
        cluster.until(lambda: not client.silent)
        data = client.next_reply()
    assert isinstance(data, bytes)
    return outcomes(data)


def copy_of(cluster: Cluster, member: Member) -> dict[bytes, str]:
    client = member.client()
    return end_in(cluster, client, begin_in(cluster, client))
