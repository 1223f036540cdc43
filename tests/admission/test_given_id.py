"""ADDJOB ID: the same job can be added at any node, any number of times, and is one job."""

from __future__ import annotations

import pytest

from disqued.placing.homes import homes
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, LocalNode

MIDDLE = "0123456789abcdefABCDEF+/"
WHOLE = b"D-00000000-" + MIDDLE.encode() + b"-05a1"


def add(client: LocalClient, *options: str | int, job_id: str | bytes = MIDDLE, queue: str = "mail") -> object:
    return client.call("ADDJOB", queue, "body", 1000, "ID", job_id, *options)


def test_the_same_job_is_added_once(client: LocalClient) -> None:
    assert [add(client), add(client), add(client, job_id=WHOLE)] == [WHOLE] * 3
    assert client.call("QLEN", "mail") == 1


def test_a_job_that_was_finished_is_not_added_again(local: LocalNode, client: LocalClient) -> None:
    add(client)
    client.call("GETJOB", "FROM", "mail")
    client.call("ACKJOB", WHOLE)
    local.run(seconds=1)
    assert add(client) == WHOLE
    assert client.call("QLEN", "mail") == 0


@pytest.mark.parametrize(
    ("options", "job_id", "error"),
    [
        ((), "short", "ERR ID must be a job ID, or the 24 characters in its middle"),
        ((), "x" * 23 + "!", "ERR ID must be a job ID"),
        (("TTL", 60), WHOLE, "ERR the ID must end with -0001 if TTL is 60 seconds and RETRY is above 0"),
        (("RETRY", 0, "REPLICATE", 1), WHOLE, "ERR the ID must end with -05a0 if TTL is 86400 seconds and RETRY is 0"),
        (("KEY", "k"), MIDDLE, "ERR ID and KEY cannot be combined"),
    ],
)
def test_wrong_ids_are_refused(
    client: LocalClient, options: tuple[str | int, ...], job_id: str | bytes, error: str
) -> None:
    assert str(add(client, *options, job_id=job_id)).startswith(error)
    assert client.call("QLEN", "mail") == 0


def test_an_id_of_a_job_in_another_queue_is_refused(client: LocalClient) -> None:
    """The error is JobExists."""
    add(client)
    assert str(add(client, queue="other")).startswith("EXISTS a job with this ID is in another queue")


def test_several_jobs_cannot_have_one_id(client: LocalClient) -> None:
    assert str(client.call("ADDTO", 2, "a", "b", "body", 0, "ID", MIDDLE)).startswith("ERR ADDTO makes several jobs")


# --- in a cluster -----------------------------------------------------------------------------------------------------


def middle(number: int) -> str:
    return f"{number:024d}"


def queued(cluster: Cluster, job_id: bytes) -> list[Member]:
    return cluster.copies(job_id, "queued")


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_any_node_adds_the_job_to_the_nodes_that_its_id_determines(cluster: Cluster, copies: int) -> None:
    for number in range(6):
        ids = set()
        for member in cluster.members:
            client = member.client()
            client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", copies, "ID", middle(number))
            cluster.until(lambda client=client: not client.silent, within_s=1)  # type: ignore[misc]
            ids.add(client.next_reply())
        (job_id,) = ids
        assert isinstance(job_id, bytes)
        cluster.run(milliseconds=200)
        assert {member.id for member in cluster.copies(job_id)} == set(
            homes(cluster.members[0].node.state, job_id, copies)
        )
        assert len(queued(cluster, job_id)) == 1


def test_a_repetition_at_another_node_does_not_deliver_the_job_again(cluster: Cluster) -> None:
    first, second, third = cluster.members
    client = first.client()
    client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 2, "RETRY", 300, "ID", MIDDLE)
    cluster.until(lambda: not client.silent, within_s=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    worker = second.client()
    worker.send("GETJOB", "FROM", "mail")
    cluster.until(lambda: not worker.silent, within_s=5)
    for member in (first, second, third):
        again = member.client()
        again.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 2, "RETRY", 300, "ID", MIDDLE)
        cluster.until(lambda again=again: not again.silent, within_s=1)  # type: ignore[misc]
        assert again.next_reply() == job_id
    cluster.run(seconds=5)
    assert queued(cluster, job_id) == []


def test_two_nodes_that_add_the_job_at_once_make_one(cluster: Cluster) -> None:
    clients = [member.client() for member in cluster.members]
    for client in clients:
        client.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, "RETRY", 5, "ID", MIDDLE)
    cluster.run(seconds=2)
    replies = {str(client.next_reply()) for client in clients}
    assert len(replies) == 1
    job_id = next(iter(cluster.members[0].node.state.lifecycle.table.jobs())).id
    cluster.run(seconds=10)
    assert len(queued(cluster, job_id)) == 1


def test_a_repetition_after_a_refusal_adds_the_job(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", to=first)
    cluster.lose("GOTJOBS", to=first)
    client = first.client()
    client.send("ADDJOB", "mail", "body", 300, "REPLICATE", 3, "RETRY", 5, "ID", MIDDLE)
    cluster.until(lambda: not client.silent, within_s=1)
    assert str(client.next_reply()).startswith("NOREPL")
    again = second.client()
    again.send("ADDJOB", "mail", "body", 1000, "REPLICATE", 3, "RETRY", 5, "ID", MIDDLE)
    cluster.until(lambda: not again.silent, within_s=1)
    job_id = again.next_reply()
    assert isinstance(job_id, bytes)
    cluster.run(seconds=15)
    assert len(queued(cluster, job_id)) == 1
