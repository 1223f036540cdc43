"""ASYNC: the client gets its reply at once and copies follow; congested links slow the client down, no copy is lost."""

from __future__ import annotations

from disqued.testing.cluster import BUS_PORT, Cluster
from replication.adding import TIMEOUT, adding, error_of, holders, id_of, jobs


def figure(cluster: Cluster, name: str) -> int:
    """A field of INFO REPLICATION of the first member."""
    reply = cluster.members[0].admin.call("INFO", "replication")
    assert isinstance(reply, bytes)
    lines = dict(line.split(":") for line in reply.decode().splitlines() if ":" in line)
    return int(lines[name])


def choke(cluster: Cluster, *numbers: int, bytes_per_ms: int = 10) -> None:
    """Limit the bandwidth from the first member to others, and fill these links until they are congested."""
    first = cluster.members[0]
    for number in numbers:
        other = cluster.members[number - 1]
        cluster.network.path(first, other).bytes_per_ms = bytes_per_ms
    client = first.client()
    while not all(first.node.state.view.peers[cluster.members[n - 1].id].link.congested for n in numbers):  # type: ignore[union-attr]
        client.add("ballast", b"x" * 1000, "ASYNC", "REPLICATE", len(cluster.members))
    cluster.forget_sent()


def test_the_client_gets_its_reply_at_once_and_the_copies_follow(cluster: Cluster) -> None:
    first, *others = cluster.members
    job_id = first.admin.add("mail", "body", "ASYNC", "REPLICATE", 3)
    assert cluster.copies(job_id, "queued") == [first]
    cluster.run(milliseconds=5)
    assert cluster.copies(job_id, "active") == others
    assert [holders(member, job_id) for member in cluster.members] == [{member.id for member in cluster.members}] * 3
    assert cluster.sent("GOTJOB") == []
    assert {sent.frame.message_flags for sent in cluster.sent("REPLJOB")} == {1}


def test_a_delayed_job_is_not_queued_before_its_time(cluster: Cluster) -> None:
    job_id = cluster.members[0].admin.add("mail", "body", "ASYNC", "DELAY", 2)
    assert cluster.copies(job_id, "active") == cluster.members[:1]
    cluster.run(seconds=2.1)
    assert cluster.copies(job_id, "queued") == cluster.members[:1]


def test_a_job_with_one_copy_is_not_sent(cluster: Cluster) -> None:
    cluster.members[0].admin.add("mail", "body", "ASYNC", "REPLICATE", 1)
    cluster.run(milliseconds=20)
    assert cluster.sent("REPLJOB") == []
    assert jobs(cluster) == [1, 0, 0]


def test_a_copy_for_which_there_is_no_link_is_counted(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.network.unlisten(second, BUS_PORT)
    cluster.network.reset(first, second)
    job_id = first.admin.add("mail", "body", "ASYNC", "REPLICATE", 3)
    assert figure(cluster, "async_copies_missing") == 1
    assert holders(first, job_id) == {first.id, third.id}


def test_a_job_is_only_kept_here_when_there_is_no_link() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    cluster.network.unlisten(second, BUS_PORT)
    cluster.network.reset(first, second)
    job_id = first.admin.add("mail", "body", "ASYNC", "REPLICATE", 2)
    assert figure(cluster, "async_copies_missing") == 1
    assert first.admin.take("mail") == [job_id]
    assert first.admin.call("ACKJOB", job_id) == 1
    assert jobs(cluster) == [0, 0]


def test_a_client_waits_while_the_links_are_congested(cluster: Cluster) -> None:
    choke(cluster, 2, 3)
    client = adding(cluster, "ASYNC", "REPLICATE", 3)
    cluster.run(seconds=1)
    assert client.silent
    assert figure(cluster, "async_held_back") == 1
    assert figure(cluster, "replications_waiting") == 1
    cluster.until(lambda: not client.silent)
    assert isinstance(client.next_reply(), bytes)
    assert figure(cluster, "replications_waiting") == 0
    assert figure(cluster, "async_copies_missing") == 0


def test_free_links_are_chosen_before_congested_ones_and_hold_no_client_back(cluster: Cluster) -> None:
    choke(cluster, 2)
    for _ in range(20):
        job_id = cluster.members[0].admin.add("mail", "body", "ASYNC", "REPLICATE", 2)
        assert holders(cluster.members[0], job_id) == {cluster.members[0].id, cluster.members[2].id}
    assert figure(cluster, "async_held_back") == 0


def test_nothing_is_repeated_on_a_congested_link(cluster: Cluster) -> None:
    choke(cluster, 2)
    clients = [adding(cluster, "REPLICATE", 3) for _ in range(10)]
    cluster.run(seconds=1)
    assert all(client.silent for client in clients)
    assert len(cluster.sent("REPLJOB", to=cluster.members[1])) == 10


def test_no_copy_is_lost_however_slow_the_link(cluster: Cluster) -> None:
    """A client that adds as fast as it gets replies is ahead of a slow link by no more than the link's buffer."""
    first, second, third = cluster.members
    for other in (second, third):
        cluster.network.path(first, other).bytes_per_ms = 200
    client = first.client()
    added: list[bytes] = []
    for _ in range(400):
        client.send("ADDJOB", "mail", b"x" * 1000, 0, "ASYNC", "REPLICATE", 3)
        added.append(id_of(cluster, client))
    assert figure(cluster, "async_held_back") > 0
    assert max(end.unsent_bytes() for end in cluster.network.ends_of(first)) < 100_000
    cluster.run(seconds=5)
    assert jobs(cluster) == [400, 400, 400]
    assert all(first.admin.show(job_id)["state"] == b"queued" for job_id in added)


def test_a_client_that_is_held_back_can_time_out(cluster: Cluster) -> None:
    choke(cluster, 2, 3)
    before = jobs(cluster)[0]
    client = adding(cluster, "ASYNC", "REPLICATE", 3, timeout_ms=200)
    cluster.run(milliseconds=250)
    assert error_of(client) == TIMEOUT
    assert jobs(cluster)[0] == before


def test_a_client_is_not_held_back_by_a_link_that_broke(cluster: Cluster) -> None:
    first, second, third = cluster.members
    choke(cluster, 2, 3)
    client = adding(cluster, "ASYNC", "REPLICATE", 3)
    for other in (second, third):
        cluster.network.unlisten(other, BUS_PORT)
        cluster.network.reset(first, other)
    id_of(cluster, client)
    assert figure(cluster, "async_copies_missing") == 2


def test_counters_are_reset(cluster: Cluster) -> None:
    cluster.network.unlisten(cluster.members[1], BUS_PORT)
    cluster.network.reset(cluster.members[0], cluster.members[1])
    cluster.members[0].admin.add("mail", "body", "ASYNC")
    assert cluster.members[0].admin.call("CONFIG", "RESETSTAT") == b"OK"
    assert figure(cluster, "async_copies_missing") == 0
