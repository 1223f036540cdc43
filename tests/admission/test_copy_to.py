"""The setting `copy-to`: ADDJOB also adds the job to other queues."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient
from replication.adding import adding, id_of


def copy_to(member: Member, *queues: str, of: str = "mail") -> LocalClient:
    """Set `copy-to`; returns a client of the member."""
    assert member.admin.call("QCONF", of, "SET", "copy-to", " ".join(queues)) == b"OK"
    return member.admin


def taken(client: LocalClient, queue: str) -> list[tuple[bytes, bytes]]:
    """The IDs and bodies of all jobs of a queue."""
    reply = client.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", queue)
    return [(job[1], job[2]) for job in reply or []]  # type: ignore[index, misc, union-attr]


def test_each_queue_gets_a_job_of_its_own(cluster: Cluster) -> None:
    admin = copy_to(cluster.members[0], "audit", "archive")
    job_id = admin.add("mail", "hello", "REPLICATE", 1, "RETRY", 7)
    assert taken(admin, "mail") == [(job_id, b"hello")]
    ((audit, body),) = taken(admin, "audit")
    ((archive, _),) = taken(admin, "archive")
    assert body == b"hello"
    assert len({job_id, audit, archive}) == 3
    assert admin.show(audit)["retry"] == 7
    assert b"total_connections" in admin.raw("INFO", "stats"), "no reply too many"


def test_copies_are_replicated_after_the_reply(cluster: Cluster) -> None:
    first, _, third = cluster.members
    admin = copy_to(first, "audit")
    cluster.run(milliseconds=100)
    cluster.lose("GOTJOB", by=third, count=2)
    client = first.client()
    client.send("ADDJOB", "mail", "x", 0, "REPLICATE", 3, "RETRY", 60)
    cluster.run(seconds=2)
    assert isinstance(client.next_reply(), bytes)
    assert client.silent
    match admin.call("JSCAN", 0, "QUEUE", "audit"):
        case [_, [bytes(copy)]]:
            assert cluster.copies(copy) == cluster.members
        case reply:
            raise AssertionError(reply)


def test_a_copy_that_is_refused_is_counted(cluster: Cluster) -> None:
    admin = copy_to(cluster.members[0], "full", "paused", "audit")
    admin.call("QCONF", "full", "SET", "maxlen", 1)
    admin.call("PAUSE", "paused", "in")
    for _ in range(2):
        admin.add("mail", "x", "REPLICATE", 1)
    assert [admin.call("QLEN", queue) for queue in ("mail", "full", "paused", "audit")] == [2, 1, 0, 2]
    assert b"copy_to_refused:3\r\n" in admin.raw("INFO", "admission")


def test_copies_are_not_copied_again(cluster: Cluster) -> None:
    admin = copy_to(cluster.members[0], "b", "a", of="a")
    copy_to(cluster.members[0], "a", "c", of="b")
    admin.add("a", "x", "REPLICATE", 1)
    assert [admin.call("QLEN", queue) for queue in "abc"] == [1, 1, 0]


def test_a_job_that_is_known_by_its_key_is_not_copied_again(cluster: Cluster) -> None:
    admin = copy_to(cluster.members[0], "audit")
    ids = {admin.add("mail", "x", "REPLICATE", 1, "KEY", "k") for _ in range(3)}
    assert len(ids) == 1
    assert admin.call("QLEN", "audit") == 1


@pytest.mark.parametrize("number", range(3))
def test_a_job_with_a_given_id_is_copied_also_by_a_node_that_keeps_no_copy_of_it(cluster: Cluster, number: int) -> None:
    copy_to(cluster.members[0], "audit")
    cluster.run(milliseconds=100)
    client = adding(cluster, "REPLICATE", 1, "ID", "0123456789abcdefABCDEF+/", by=number + 1)
    job_id = id_of(cluster, client)
    ((copy, body),) = taken(client, "audit")
    assert (body, copy == job_id) == (b"body", False)
    assert "named" not in client.show(copy)
    assert len(cluster.copies(job_id)) == 1


def test_addto_copies_too(cluster: Cluster) -> None:
    admin = copy_to(cluster.members[0], "audit")
    reply = admin.call("ADDTO", 2, "mail", "print", "x", 0, "REPLICATE", 1)
    assert isinstance(reply, list)
    assert len(reply) == 2
    assert admin.call("QLEN", "audit") == 1


def test_a_pipeline_of_copied_jobs_has_its_replies_in_order(cluster: Cluster) -> None:
    first = cluster.members[0]
    admin = copy_to(first, "audit")
    client = first.client()
    for number in range(5):
        client.send("ADDJOB", "mail", f"{number}", 0, "REPLICATE", 3)
    cluster.run(milliseconds=50)
    assert [admin.show(job_id)["body"] for job_id in client.replies()] == [b"0", b"1", b"2", b"3", b"4"]  # type: ignore[arg-type]
    assert admin.call("QLEN", "audit") == 5


def test_a_leaving_node_refuses_what_it_cannot_copy(cluster: Cluster) -> None:
    first = cluster.members[0]
    admin = copy_to(first, "audit")
    assert admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    client = first.client()
    client.send("ADDJOB", "mail", "x", 0, "REPLICATE", 1)
    assert "copy-to" in str(client.next_reply())
