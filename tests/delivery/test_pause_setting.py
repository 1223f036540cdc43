"""The setting `pause` of a queue, beside PAUSE: what either of them stops is stopped."""

from __future__ import annotations

from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode


def conf(client: LocalClient, *words: str) -> None:
    client.call("QCONF", *words)


def test_output_paused_by_setting_stops_all_nodes_and_continues(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    job = second.admin.add("mail", "body", "REPLICATE", 1)
    conf(first.admin, "mail*", "SET", "pause", "out")
    cluster.run(milliseconds=5)
    client = second.client()
    client.send("GETJOB", "FROM", "mail")
    cluster.run(seconds=1)
    assert client.silent
    conf(first.admin, "mail*", "UNSET", "pause")
    cluster.run(milliseconds=20)
    assert client.next_reply() == [[b"mail", job, b"body"]]


def test_queue_stays_stopped_until_both_let_it_go(client: LocalClient) -> None:
    job = client.add("mail")
    client.call("PAUSE", "mail", "out")
    conf(client, "mail", "SET", "pause", "all")
    assert client.call("PAUSE", "mail", "none") == b"none"
    assert client.stat("mail")["pause"] == b"all"
    assert client.take("mail") == []
    conf(client, "mail", "SET", "pause", "in")
    assert client.stat("mail")["pause"] == b"in"
    client.call("PAUSE", "mail", "out")
    conf(client, "mail", "UNSET", "*")
    assert client.stat("mail")["pause"] == b"out"
    assert client.take("mail") == []
    client.call("PAUSE", "mail", "none")
    assert client.take("mail") == [job]


def test_job_is_not_requeued_while_its_queue_is_paused_by_setting(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "body", "RETRY", 1)
    assert client.take("mail") == [job]
    conf(client, "mail", "SET", "pause", "in")
    local.run(seconds=10)
    assert client.call("QLEN", "mail") == 0
    conf(client, "mail", "SET", "pause", "none")
    local.run(seconds=3)
    assert client.call("QLEN", "mail") == 1


def test_copies_are_refused_by_nodes_that_have_no_such_queue_yet(cluster: Cluster) -> None:
    first, second, third = cluster.members
    cluster.cut(second, first)
    conf(second.admin, "mail", "SET", "pause", "in")
    cluster.run(milliseconds=5)
    first.tell("ADDJOB", "mail", "body", 500, "REPLICATE", 3, "ASYNC")
    cluster.run(milliseconds=50)
    counted = [member.node.state.lifecycle.table.count for member in (first, second, third)]
    assert counted == [1, 0, 0]


def test_pause_by_setting_survives_a_restart_and_keeps_no_idle_queue(local: LocalNode, client: LocalClient) -> None:
    conf(client, "mail", "SET", "pause", "in")
    client.call("GETJOB", "NOHANG", "FROM", "mail")
    local.run(seconds=1000)
    assert client.stat("mail") == {}
    local.restart()
    assert local.client().raw("ADDJOB", "mail", "body", 0).startswith(b"-PAUSED")
