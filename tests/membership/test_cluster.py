"""CLUSTER on a single node: identity, leaving, reset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.membership.kept import membership_of
from disqued.membership.nodesconf import decode
from disqued.testing.cluster import Cluster
from disqued.testing.local import NODE_ID
from membership.stories import logged, nodes
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import LocalClient, LocalNode

LEAVING = b"-LEAVING This node is leaving the cluster, please connect to a different one\r\n"


@pytest.fixture
def pair() -> Member:
    """A node that knows another node, which can take its jobs."""
    return Cluster(2).members[0]


def identity(local: LocalNode) -> tuple[bytes, bool]:
    """The ID and the leaving flag of the node in its cluster configuration file."""
    saved = decode(local.host.nodes_text)
    return saved.node_id, saved.leaving


def test_lone_node_lists_itself(client: LocalClient) -> None:
    assert ask(client, "CLUSTER", "MYID") == NODE_ID
    assert ask(client, "CLUSTER", "NODES") == NODE_ID + b" :7711 myself 0 0 connected\n"
    assert ask(client, "CLUSTER", "INFO") == (
        b"cluster_state:ok\r\ncluster_known_nodes:1\r\ncluster_reachable_nodes:0\r\ncluster_size:1\r\n"
        b"cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ncluster_links_up:0\r\n"
        b"cluster_nodes_pfail:0\r\ncluster_nodes_fail:0\r\ncluster_nodes_leaving:0\r\ncluster_links_unproven:0\r\n"
        b"cluster_max_skew_ms:0\r\ncluster_clock_ahead_ms:0\r\ncluster_clock_quarantine:0\r\n"
    )


def test_saveconfig_writes_the_identity(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("CLUSTER", "SAVECONFIG") == b"+OK\r\n"
    assert identity(local) == (NODE_ID, False)


def test_leaving_is_shown_and_survives_a_restart(pair: Member) -> None:
    client = pair.admin
    assert client.raw("CLUSTER", "LEAVING") == b"+no\r\n"
    assert client.raw("CLUSTER", "LEAVING", "YES") == b"+OK\r\n"
    assert client.raw("CLUSTER", "LEAVING") == b"+yes\r\n"
    assert nodes(pair)[pair.id][1] == "myself,leaving"
    assert identity(pair) == (pair.id, True)
    pair.restart()
    assert pair.admin.raw("CLUSTER", "LEAVING") == b"+yes\r\n"
    assert pair.admin.raw("CLUSTER", "LEAVING", "no") == b"+OK\r\n"
    assert identity(pair) == (pair.id, False)


def test_leaving_node_releases_its_waiting_clients(pair: Member) -> None:
    waiting = [pair.client() for _ in range(2)]
    for worker in waiting:
        worker.send("GETJOB", "FROM", "mail")
    ask(pair.admin, "CLUSTER", "LEAVING", "yes")
    assert [worker.received for worker in waiting] == [LEAVING, LEAVING]
    assert pair.admin.raw("GETJOB", "FROM", "mail") == LEAVING
    assert pair.admin.raw("GETJOB", "NOHANG", "FROM", "mail") == b"*-1\r\n"


def test_leaving_node_delivers_the_jobs_it_has(pair: Member) -> None:
    ask(pair.admin, "ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    ask(pair.admin, "CLUSTER", "LEAVING", "yes")
    assert ask(pair.admin, "GETJOB", "FROM", "mail")[0][2] == b"body"


def test_a_reset_forgets_jobs_and_keeps_the_identity(local: LocalNode, client: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "FROM", "empty")
    ask(client, "ADDJOB", "mail", "body", 0)
    assert client.raw("CLUSTER", "RESET") == b"+OK\r\n"
    assert client.raw("CLUSTER", "RESET", "soft") == b"+OK\r\n"
    assert ask(client, "QLEN", "mail") == 0
    assert ask(client, "CLUSTER", "MYID") == NODE_ID
    assert worker.received == b"*-1\r\n"


def test_hard_reset_changes_the_identity(pair: Member) -> None:
    before, client = pair.id, pair.admin
    ask(client, "CLUSTER", "LEAVING", "yes")
    assert client.raw("CLUSTER", "RESET", "HARD") == b"+OK\r\n"
    renewed = ask(client, "CLUSTER", "MYID")
    assert renewed != before
    assert identity(pair) == (renewed, True), "a reset does not cancel leaving"
    ask(client, "CLUSTER", "LEAVING", "no")
    assert ask(client, "ADDJOB", "mail", "body", 0)[2:10] == renewed[:8]


def test_write_error_is_reported_and_nothing_changes(pair: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str, _sync: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pair.host, "save_nodes", fail)
    error = b"-ERR error saving the cluster node config: No space left on device\r\n"
    assert pair.admin.raw("CLUSTER", "SAVECONFIG") == error
    assert pair.admin.raw("CLUSTER", "LEAVING", "yes") == error
    assert pair.admin.raw("CLUSTER", "LEAVING") == b"+no\r\n"


def test_node_that_ends_still_stays_at_its_next_start_after_a_write_error(
    pair: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_text: str, _sync: bool) -> None:
        raise OSError(28, "No space left on device")

    pair.node.leave_to_end(pair.node.state.now_ms)
    with monkeypatch.context() as broken:
        broken.setattr(pair.host, "save_nodes", fail)
        pair.admin.raw("CLUSTER", "LEAVING", "no")
    assert pair.admin.raw("CLUSTER", "LEAVING") == b"+yes\r\n"
    assert pair.admin.raw("CLUSTER", "SAVECONFIG") == b"+OK\r\n"
    assert identity(pair) == (pair.id, False)


def test_failed_write_is_retried(pair: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    written = pair.host.save_nodes

    def fail(_text: str, _sync: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pair.host, "save_nodes", fail)
    membership_of(pair.node.state).unsaved = True
    pair.run(seconds=10)
    assert len(logged(pair, "Can't write the cluster config file: No space left on device")) == 1
    monkeypatch.setattr(pair.host, "save_nodes", written)
    pair.host.nodes_text = ""
    pair.run(seconds=2)
    assert identity(pair) == (pair.id, False)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("FOO", "Wrong CLUSTER subcommand or number of arguments"),
        ("MYID x", "Wrong CLUSTER subcommand or number of arguments"),
        ("RESET HARD x", "Wrong CLUSTER subcommand or number of arguments"),
        ("RESET foo", "syntax error"),
        ("LEAVING maybe", "Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'"),
        ("FORGET x", "Invalid node identifier"),
        (f"FORGET {'0' * 40}", f"Unknown node {'0' * 40}"),
        (f"FORGET {NODE_ID.decode()}", "I tried hard but I can't forget myself..."),
        ("MEET 127.0.0.1", "Wrong CLUSTER subcommand or number of arguments"),
        ("MEET 127.0.0.1 x", "Invalid TCP port specified: x"),
        ("MEET nohost 7711", "Invalid node address specified: nohost:7711"),
        ("MEET 127.0.0.1 0", "Invalid node address specified: 127.0.0.1:0"),
        ("MEET 127.0.0.1 55536", "Invalid node address specified: 127.0.0.1:55536"),
        ("MEET 127.0.0.1 -5", "Invalid node address specified: 127.0.0.1:-5"),
        ("MEET 300.1.1.1 7711", "Invalid node address specified: 300.1.1.1:7711"),
        ("MEET fe80::1%eth0 7711", "Invalid node address specified: fe80::1%eth0:7711"),
    ],
)
def test_invalid_arguments_are_refused_with_an_error(client: LocalClient, words: str, error: str) -> None:
    assert client.raw("CLUSTER", *words.split()) == f"-ERR {error}\r\n".encode()
