"""ADDJOB with a KEY when other nodes have copies: no reply has the ID of a job that may still fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient

WAITS = "NOREPL The job with this key still waits for its copies, try again later"
TIMEOUT = "NOREPL Timeout reached before replicating to the requested number of nodes"
SOON_MS = 10


def adding(member: Member, *options: str | int, key: str = "k", timeout_ms: int = 1000) -> LocalClient:
    """A client that sent an ADDJOB."""
    client = member.client()
    client.send("ADDJOB", "mail", "body", timeout_ms, "KEY", key, *options)
    return client


def answer(cluster: Cluster, member: Member, *options: str | int, key: str = "k") -> bytes | str:
    """The ID that a client is told soon, or the error."""
    client = adding(member, *options, key=key)
    cluster.until(lambda: not client.silent, within_s=2)
    reply = client.next_reply()
    return reply if isinstance(reply, bytes) else str(reply)


def cut_off(cluster: Cluster, member: Member) -> None:
    """Nobody hears the member, and nobody notices yet."""
    for other in cluster.members:
        if other is not member:
            cluster.cut(member, other)


def leave(member: Member) -> None:
    assert member.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"


def run_short_of_memory(member: Member) -> None:
    used_bytes = int(member.node.state.lifecycle.memory.used_bytes)
    assert member.admin.call("CONFIG", "SET", "maxmemory", used_bytes * 100 // 85) == b"OK"


def remembered(cluster: Cluster) -> list[int]:
    return [int(member.node.state.lifecycle.keys.count) for member in cluster.members]


def test_a_job_with_copies_is_added_once(cluster: Cluster) -> None:
    first = cluster.members[0]
    job_id = answer(cluster, first)
    assert answer(cluster, first) == job_id
    assert [int(member.node.state.lifecycle.table.count) for member in cluster.members] == [1, 1, 1]


def test_a_key_is_known_only_to_the_node_where_it_was_used(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    one, other = answer(cluster, first), answer(cluster, second)
    assert one != other
    assert remembered(cluster) == [1, 1, 0]
    assert second.admin.call("DELJOB", one) == 1
    assert answer(cluster, second) == other, "the copy of the other node's job has nothing to do with it"


@pytest.mark.parametrize("options", [("REPLICATE", 3), ("REPLICATE", 2, "WINDOW", 1)])
def test_a_second_add_is_refused_while_the_first_waits_for_its_copies(
    cluster: Cluster, options: tuple[str | int, ...]
) -> None:
    first = cluster.members[0]
    cut_off(cluster, first)
    waiting = adding(first, *options, timeout_ms=0)
    cluster.run(seconds=2)
    assert answer(cluster, first, *options) == WAITS
    assert answer(cluster, first, *options, "ASYNC") == WAITS
    cluster.heal()
    cluster.until(lambda: not waiting.silent)
    assert answer(cluster, first, *options) == waiting.next_reply()


def test_the_window_begins_when_the_client_is_told(cluster: Cluster) -> None:
    first = cluster.members[0]
    cut_off(cluster, first)
    waiting = adding(first, "WINDOW", 3, timeout_ms=0)
    cluster.run(seconds=2)
    cluster.heal()
    cluster.until(lambda: not waiting.silent)
    cluster.run(seconds=2)
    assert answer(cluster, first, "WINDOW", 3) == waiting.next_reply()
    cluster.run(seconds=1, milliseconds=20)
    assert remembered(cluster) == [0, 0, 0]


def timed_out(cluster: Cluster, client: LocalClient) -> None:
    cluster.run(seconds=1, milliseconds=50)
    assert str(client.next_reply()) == TIMEOUT


def hung_up(_cluster: Cluster, client: LocalClient) -> None:
    client.disconnect()


def deleted(cluster: Cluster, client: LocalClient) -> None:
    first = cluster.members[0]
    (job,) = first.node.state.lifecycle.table.jobs()
    assert first.admin.call("DELJOB", job.id) == 1
    assert str(client.next_reply()).startswith("NOREPL job removed")


def flushed(cluster: Cluster, client: LocalClient) -> None:
    assert cluster.members[0].admin.call("DEBUG", "FLUSHALL") == b"OK"
    assert str(client.next_reply()).startswith("NOREPL job removed")


@pytest.mark.parametrize("end", [timed_out, hung_up, deleted, flushed])
def test_an_add_that_failed_is_forgotten_and_the_next_one_is_a_new_job(
    cluster: Cluster, end: Callable[[Cluster, LocalClient], None]
) -> None:
    first = cluster.members[0]
    cut_off(cluster, first)
    client = adding(first, "REPLICATE", 3)
    (failed,) = first.node.state.lifecycle.table.jobs()
    end(cluster, client)
    assert remembered(cluster) == [0, 0, 0]
    cluster.heal()
    job_id = answer(cluster, first, "REPLICATE", 3)
    assert isinstance(job_id, bytes)
    assert job_id != failed.id
    assert answer(cluster, first, "REPLICATE", 3) == job_id


def test_the_key_of_a_job_that_expires_before_its_copies_exist_is_forgotten(cluster: Cluster) -> None:
    first = cluster.members[0]
    cut_off(cluster, first)
    client = adding(first, "REPLICATE", 3, "TTL", 1, timeout_ms=0)
    cluster.run(seconds=3)
    assert str(client.next_reply()).startswith("NOREPL job removed")
    assert remembered(cluster) == [0, 0, 0]


def test_an_asynchronous_add_is_known_at_once(cluster: Cluster) -> None:
    first = cluster.members[0]
    job_id = answer(cluster, first, "ASYNC")
    assert answer(cluster, first, "ASYNC") == answer(cluster, first) == job_id


def test_a_job_acknowledged_elsewhere_is_not_added_again(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job_id = answer(cluster, first, "REPLICATE", 3)
    assert isinstance(job_id, bytes)
    assert second.admin.call("ACKJOB", job_id) == 1
    cluster.run(milliseconds=SOON_MS)
    assert answer(cluster, first, "REPLICATE", 3) == job_id
    cluster.run(seconds=5)
    assert cluster.copies(job_id) == []
    assert answer(cluster, first, "REPLICATE", 3) == job_id


def test_a_job_acknowledged_and_then_deleted_is_not_added_again(cluster: Cluster) -> None:
    first, _, third = cluster.members
    job_id = answer(cluster, first, "REPLICATE", 3)
    assert isinstance(job_id, bytes)
    cluster.cut(third, first)
    assert first.admin.call("ACKJOB", job_id) == 1
    assert first.admin.call("DELJOB", job_id) == 1
    assert answer(cluster, first, "REPLICATE", 3) == job_id


@pytest.mark.parametrize("cause", [leave, run_short_of_memory])
@pytest.mark.parametrize("options", [("REPLICATE", 2), ("REPLICATE", 1), ("REPLICATE", 2, "ASYNC")])
def test_a_job_that_only_other_nodes_keep_is_added_once(
    cluster: Cluster, cause: Callable[[Member], None], options: tuple[str | int, ...]
) -> None:
    first = cluster.members[0]
    cause(first)
    job_id = answer(cluster, first, *options)
    assert isinstance(job_id, bytes)
    cluster.run(milliseconds=SOON_MS)
    assert first not in cluster.copies(job_id)
    assert answer(cluster, first, *options) == job_id
    assert first.admin.call("DELJOB", job_id) == 0
    assert answer(cluster, first, *options) == job_id, "it was not deleted where it is"
    assert len(cluster.copies(job_id, "queued")) == 1


def test_the_key_is_forgotten_if_no_other_node_keeps_the_job(cluster: Cluster) -> None:
    first = cluster.members[0]
    leave(first)
    cut_off(cluster, first)
    assert answer(cluster, first, "REPLICATE", 2) == TIMEOUT
    assert remembered(cluster) == [0, 0, 0]


def test_a_job_that_was_transferred_is_not_added_again(cluster: Cluster) -> None:
    first = cluster.members[0]
    job_id = answer(cluster, first, "REPLICATE", 1)
    assert isinstance(job_id, bytes)
    leave(first)
    cluster.until(lambda: first not in cluster.copies(job_id), within_s=60)
    assert answer(cluster, first, "REPLICATE", 1) == job_id
