"""QPURGE deletes the jobs of a queue on all nodes, and its mark keeps them away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from counts.test_qcount import add, count, flat, jobs
from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.config import Config
from disqued.core.cluster.entrykinds import PURGE
from disqued.settings.entries import LEAST_MARK_MS, MOST_MARKS, make, mark_value
from disqued.settings.room import settings_of
from disqued.settings.sharing import FEATURE_SETTINGS
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import LocalClient


def purge(cluster: Cluster, member: Member, *options: str | int) -> dict[str, int]:
    """What QPURGE replies on a node."""
    client = member.client()
    client.send("QPURGE", "mail", *options)
    cluster.until(lambda: not client.silent, within_s=10)
    return flat(client.next_reply())


def known_jobs(cluster: Cluster) -> list[int]:
    """How many jobs each member has, finished ones included."""
    return [int(member.node.state.lifecycle.table.count) for member in cluster.members]


def logging_config() -> Config:
    """Nodes with an append-only file."""
    config = Config()
    config.assign("appendonly", True)
    config.assign("appendfsync", "always")
    return config


def test_waiting_jobs_are_deleted_and_a_worker_keeps_its_job(client: LocalClient) -> None:
    leased = client.add("mail")
    client.take("mail")
    client.add("mail")
    client.add("mail", "body", "DELAY", 60)
    client.add("print")
    assert flat(client.call("QPURGE", "mail")) == {"deleted": 2, "nodes-answered": 1, "nodes-known": 1}
    assert jobs(flat(client.call("QCOUNT", "mail"))) == {"leased": 1}
    assert client.call("QLEN", "print") == 1
    assert client.call("ACKJOB", leased) == 1


def test_deleted_jobs_are_not_counted_any_more(cluster: Cluster) -> None:
    at, other = cluster.members[:2]
    for _ in range(3):
        add(cluster, other)
    assert jobs(count(cluster, at)) == {"queued": 3}
    assert purge(cluster, other)["deleted"] == 3
    assert jobs(count(cluster, at)) == {}


def test_jobs_that_are_added_afterwards_stay(client: LocalClient) -> None:
    client.add("mail")
    assert flat(client.call("QPURGE", "mail"))["deleted"] == 1
    client.add("mail")
    client.add("mail", "body", "DELAY", 1)
    assert client.call("QLEN", "mail") == 1
    assert flat(client.call("QPURGE", "mail"))["deleted"] == 2


def test_a_job_that_a_worker_gives_back_after_the_purge_is_deleted(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    client.call("QPURGE", "mail")
    assert client.call("NACK", job) == 0
    local.run(milliseconds=200)
    assert client.call("SHOW", job) is None


def test_only_jobs_in_the_named_states_are_deleted(client: LocalClient) -> None:
    client.add("mail")
    client.call("NACK", client.take("mail")[0], "DEAD")
    client.add("mail.dead")
    client.add("mail.dead", "body", "DELAY", 60)
    assert flat(client.call("QPURGE", "mail.dead", "STATE", "dead"))["deleted"] == 1
    assert jobs(flat(client.call("QCOUNT", "mail.dead"))) == {"queued": 1, "delayed": 1, "records": 1}


def test_leased_jobs_are_deleted_on_request_and_their_workers_are_told(client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    assert flat(client.call("QPURGE", "mail", "STATE", "leased", "STATE", "queued"))["deleted"] == 1
    assert client.raw("WORKING", job).startswith(b"-NOJOB")


def test_only_jobs_from_before_a_time_are_deleted(local: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    local.run(seconds=10)
    between_ms = local.now_ms - 5000
    client.add("mail")
    assert flat(client.call("QPURGE", "mail", "BEFORE", between_ms))["deleted"] == 1
    assert client.call("QLEN", "mail") == 1


def test_an_earlier_mark_is_not_weakened_by_one_for_older_jobs(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail")
    client.take("mail")
    client.call("QPURGE", "mail")
    client.call("QPURGE", "mail", "BEFORE", local.now_ms - 60_000)
    assert client.call("NACK", job) == 0


def test_keys_of_purged_jobs_can_be_used_again(client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k")
    client.call("QPURGE", "mail")
    assert client.add("mail", "body", "KEY", "k") != first
    assert client.call("QLEN", "mail") == 1


def test_purged_jobs_are_counted(client: LocalClient) -> None:
    client.add("mail")
    client.call("QPURGE", "mail")
    info = client.call("INFO", "counts")
    assert isinstance(info, bytes)
    assert b"jobs_purged:1\r\n" in info


def test_the_queue_is_empty_on_all_nodes(cluster: Cluster) -> None:
    for member in cluster.members:
        for _ in range(3):
            add(cluster, member)
        add(cluster, member, "DELAY", 60)
    cluster.run(seconds=1)
    assert purge(cluster, cluster.members[1]) == {"deleted": 12, "nodes-answered": 3, "nodes-known": 3}
    cluster.run(seconds=1)
    assert known_jobs(cluster) == [0, 0, 0]


def test_a_node_that_was_away_deletes_its_jobs_when_it_returns(cluster: Cluster) -> None:
    first, second, third = cluster.members
    for _ in range(3):
        add(cluster, third)
    cluster.run(seconds=1)
    cluster.partition([first, second], [third])
    cluster.until(lambda: first.sees == 1)
    assert purge(cluster, first)["nodes-answered"] == 2
    assert third.admin.call("QLEN", "mail") == 3
    cluster.heal()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=5)
    assert third.admin.call("QLEN", "mail") == 0
    cluster.run(seconds=400)
    assert jobs(count(cluster, first)) == {}, "no copy comes back after its retry time"
    assert known_jobs(cluster) == [0, 0, 0]


def test_copies_of_a_lost_node_are_not_delivered(cluster: Cluster) -> None:
    first, second, third = cluster.members
    add(cluster, third, "RETRY", 5)
    add(cluster, third, "RETRY", 5, "DELAY", 30)
    cluster.run(seconds=1)
    third.crash()
    cluster.until(lambda: first.sees == 1)
    purge(cluster, first)
    cluster.run(seconds=60)
    assert jobs(count(cluster, second)) == {}
    assert known_jobs(cluster)[:2] == [0, 0]


def test_a_job_on_its_way_to_another_node_is_deleted_there(pair: Cluster) -> None:
    first, second = pair.members
    second.admin.add("mail", "body", "REPLICATE", 1)
    pair.cut(second, first)
    client = first.client()
    client.send("GETJOB", "TIMEOUT", 30_000, "FROM", "mail")
    pair.until(lambda: bool(pair.sent("YOURJOBS")))
    assert second.admin.call("QLEN", "mail") == 0
    pair.partition([first], [second])
    purge(pair, first, "TIMEOUT", 100)
    pair.heal()
    pair.until(pair.is_whole)
    pair.run(seconds=400)
    assert client.next_reply() is None
    assert known_jobs(pair) == [0, 0]


def test_jobs_of_an_old_file_are_not_delivered() -> None:
    local = LocalNode(logging_config())
    client = local.client()
    client.send("ADDJOB", "mail", "body", 0, "RETRY", 5)
    local.run(seconds=1)
    name = local.config.appendfilename
    old = bytes(local.host.disk.files[name])
    client.send("QPURGE", "mail")
    local.run(seconds=1)
    assert flat(client.replies()[-1])["deleted"] == 1
    local.crash()
    local.host.disk.put(name, old)
    local.restart()
    assert local.node.state.lifecycle.table.count == 1
    local.run(seconds=20)
    assert local.node.state.lifecycle.table.count == 0


def test_a_mark_outlasts_a_restart(cluster: Cluster) -> None:
    first, second, third = cluster.members
    add(cluster, third, "RETRY", 5)
    cluster.run(seconds=1)
    third.crash()
    second.crash()
    cluster.run(seconds=3)
    purge(cluster, first, "TIMEOUT", 100)
    cluster.run(seconds=1)
    first.restart()
    second.restart()
    cluster.run(seconds=30)
    assert first.node.state.lifecycle.queues.purges.some
    assert second.node.state.lifecycle.queues.purges.some


def test_a_mark_is_forgotten_when_all_jobs_of_its_time_have_expired(cluster: Cluster) -> None:
    first, *_ = cluster.members
    add(cluster, first, "TTL", 5 * 86_400)
    purge(cluster, first)
    cluster.run(seconds=1)
    for member in cluster.members:
        room = settings_of(member.node.state)
        assert 4 * LEAST_MARK_MS < room.entries.expires_ms - member.now_ms < 6 * LEAST_MARK_MS
        room.entries.expires_ms = member.now_ms  # looked at in the next turn of the cron
    assert settings_of(first.node.state).entries.set_count == 0, "marks are no settings"


def test_marks_are_bounded(client: LocalClient, local: LocalNode) -> None:
    entries = settings_of(local.node.state).entries
    for number in range(MOST_MARKS - 2):
        entries.put(make(PURGE, b"q%d" % number, b"queued", mark_value(1, 1000), 1, b"a" * 40))
    assert client.raw("QPURGE", "mail").startswith(b"-ERR there are 9998 marks of QPURGE of 10000")
    assert flat(client.call("QPURGE", "mail", "STATE", "queued"))["deleted"] == 0
    assert client.call("QCONF", "mail", "SET", "ttl", 60) == b"OK"


@pytest.mark.parametrize("value", [b"", b"x", b"1", b"-1 5", b"1 99999999999", b"9999999999999999999999 1"])
def test_a_malformed_mark_of_another_node_is_refused(local: LocalNode, value: bytes) -> None:
    client = local.client()
    client.add("mail")
    node = ScriptedNode(local, b"10.0.0.9", extension=extension(FEATURE_SETTINGS, 17711, NOBODY, b"only-run"))
    node.join()
    entry = make(PURGE, b"mail", b"queued", value, local.now_ms, node.id)
    node.deliver(node.link, node.writer.other(kinds.SETTINGS, entry.wire))
    local.run(seconds=1)
    assert client.call("QLEN", "mail") == 1
    assert not local.node.state.lifecycle.queues.purges.some


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("STATE",), "ERR syntax error"),
        (("STATE", "acked"), "ERR Invalid job state name, try queued, leased, delayed, dead, held"),
        (("BEFORE", 1 << 60), "ERR BEFORE must be unix milliseconds that are not in the future"),
        (("BEFORE", 0), "ERR BEFORE must be unix milliseconds that are not in the future"),
        (("TIMEOUT", 0), "ERR timeout must be 1 to 60000 ms, not 0"),
        (("NOW", 1), "ERR syntax error"),
    ],
)
def test_wrong_options_are_refused(client: LocalClient, words: tuple[str | int, ...], error: str) -> None:
    client.add("mail")
    assert client.raw("QPURGE", "mail", *words) == f"-{error}\r\n".encode()
    assert client.call("QLEN", "mail") == 1


def test_other_clients_are_served_while_many_jobs_are_deleted(local: LocalNode, client: LocalClient) -> None:
    for number in range(3000):
        client.send("ADDJOB", "mail", number, 0)
    client.replies()
    client.send("QPURGE", "mail")
    assert client.silent
    assert local.client().call("PING") == b"PONG"
    local.run(seconds=1)
    assert flat(client.next_reply())["deleted"] == 3000


def test_jobs_are_kept_that_a_node_whose_clock_is_behind_adds_after_a_purge(cluster: Cluster) -> None:
    first, late = cluster.members[:2]
    late.skew_ms = -3_600_000
    add(cluster, first)
    purge(cluster, first)
    for restarts in (False, True):
        if restarts:
            late.crash()
            late.restart()
            cluster.until(cluster.is_whole, within_s=60)
        kept = add(cluster, late)
        cluster.run(seconds=2)
        assert late.client().take("mail") == [kept]
        add(cluster, late)
        assert purge(cluster, late)["deleted"] == 1
        late.client().call("ACKJOB", kept)
        cluster.run(seconds=2)
        assert known_jobs(cluster) == [0, 0, 0]
