"""Queries and commands to real brokers on the loopback address."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disque_operator import brokers
from disque_operator.brokers import Asked, CommandFailedError, Connection, UnreachableError
from disque_operator.observed import LOCKED, Broker, password_hash
from disque_operator.orderedstate import Ordered, OrderedGroup, OrderedStatus
from disque_operator.schedulespec import ScheduleFields
from support.cluster import RealCluster, RealNode

DIRECTIVES = ("maxmemory", "cluster-announce-hostname", "no-such-directive")
SCHEDULE = {
    "clusterRef": {"name": "c"},
    "when": " 0  3 * * *",
    "timeZone": "Europe/Berlin",
    "queue": "reports",
    "body": "sales: \u20ac\n",
    "missed": "Once",
    "paused": True,
    "job": {"ttlSeconds": 600, "priority": -1, "replicate": 2},
}
PASSWORDS = ("--requirepass", "old", "--requirepass-former", "new")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("brokers"), 3, "--appendonly", "yes") as three:
        yield three


def look(node: RealNode, *passwords: str) -> tuple[Broker, Connection]:
    return asyncio.run(brokers.query("c-0", node.address, passwords, Asked(DIRECTIVES), time.time()))


@contextmanager
def password(node: RealNode, text: str, former: str = "") -> Iterator[None]:
    """Set a password on the broker, and a former one, until the context ends."""
    connection = node.connect()
    connection.call("CONFIG", "SET", "requirepass-former", former)
    connection.call("CONFIG", "SET", "requirepass", text)
    try:
        yield
    finally:
        if text:
            connection.call("AUTH", text)
        connection.call("CONFIG", "SET", "requirepass", "")
        connection.call("CONFIG", "SET", "requirepass-former", "")
        connection.close()


def hashes(*passwords: str) -> frozenset[str]:
    return frozenset(map(password_hash, passwords))


async def received(node: RealNode, password: str) -> bytes:
    """Query the broker through a relay; return everything that it sends."""
    found = bytearray()
    finished = asyncio.Event()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        while data := await reader.read(1 << 16):
            kept.extend(data)
            writer.write(data)
        writer.close()
        await writer.wait_closed()

    async def relay(commands: asyncio.StreamReader, to_operator: asyncio.StreamWriter) -> None:
        replies, to_broker = await asyncio.open_connection(node.host, node.port)
        await asyncio.gather(copy(commands, to_broker, bytearray()), copy(replies, to_operator, found))
        finished.set()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        await brokers.query("c-0", f"{host}:{port}", (password,), Asked(DIRECTIVES), time.time())
        await finished.wait()
    return bytes(found)


def test_query_returns_the_node_id_and_the_peers(cluster: RealCluster) -> None:
    one, *others = cluster.nodes
    node, connection = look(one)
    assert node.pod == "c-0"
    assert node.node_id == one.id
    assert not node.loading
    assert node.leaving is None
    assert node.password_hashes == hashes()
    assert connection == Connection(one.address, None)
    assert {peer.node_id for peer in node.peers} == {other.id for other in others}
    assert all(peer.connected and not peer.failing and not peer.leaving for peer in node.peers)
    assert all(peer.silent_s < 20 for peer in node.peers)
    assert node.max_memory == int(one.info()["maxmemory"])
    assert dict(node.config) == {
        "maxmemory": one.info()["maxmemory"],
        "cluster-announce-hostname": "",
    }


def test_query_returns_addresses_of_unanswered_meets(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    one.call("CLUSTER", "MEET", "192.0.2.7", "7711")
    found, _ = look(one)
    assert found.meeting == {"192.0.2.7"}
    assert len(found.peers) == 2


def test_query_counts_jobs_and_queues(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    before, _ = look(one)
    for number in range(5):
        one.call("ADDJOB", "counted", f"job {number}", 0, "REPLICATE", 1)
    node, _ = look(one)
    assert node.jobs == before.jobs + 5
    assert node.queues == before.queues + 1


def test_announced_host_name_is_the_host_of_a_peer(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    two.call("CONFIG", "SET", "cluster-announce-hostname", "localhost")

    def hosts() -> dict[str, str]:
        return {peer.node_id: peer.host for peer in look(one)[0].peers}

    cluster.wait_until(lambda: hosts()[two.id] == "localhost")
    two.call("CONFIG", "SET", "cluster-announce-hostname", "")
    cluster.wait_until(lambda: hosts()[two.id] == "127.0.0.1")


def test_leaving_broker_reports_its_progress(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    asyncio.run(brokers.send_command(look(one)[1], one.id, ("CLUSTER", "LEAVING", "yes")))
    cluster.wait_until(lambda: (leaving := look(one)[0].leaving) is not None and leaving.done)
    leaving = look(one)[0].leaving
    assert leaving is not None
    assert (leaving.jobs_left, leaving.waits_for) == (0, "")
    cluster.wait_until(lambda: any(peer.leaving for peer in look(two)[0].peers))
    asyncio.run(brokers.send_command(look(one)[1], one.id, ("CLUSTER", "LEAVING", "no")))
    assert look(one)[0].leaving is None


def test_command_for_another_node_id_is_not_sent(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    with pytest.raises(CommandFailedError, match=f"node {one.id} answers instead of {two.id}"):
        asyncio.run(brokers.send_command(look(one)[1], two.id, ("CLUSTER", "LEAVING", "yes")))
    assert look(one)[0].leaving is None


def test_error_of_a_broker_is_reported(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    with pytest.raises(CommandFailedError, match="Unknown node"):
        asyncio.run(brokers.send_command(look(one)[1], one.id, ("CLUSTER", "FORGET", "0" * 40)))


@pytest.mark.parametrize("set_to", ["new", "old", "older", ""])
def test_accepted_password_is_found(cluster: RealCluster, set_to: str) -> None:
    one = cluster.nodes[0]
    with password(one, set_to):
        node, connection = look(one, "new", "old", "older")
        assert node.password_hashes == (hashes(set_to) if set_to else hashes())
        assert (connection.password or "") == set_to
        asyncio.run(brokers.send_command(connection, node.node_id, ("PING",)))


def test_hashes_of_both_passwords_of_a_broker_are_returned(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    with password(one, "old", "new"):
        node, connection = look(one, "new")
        assert (node.password_hashes, connection.password) == (hashes("old", "new"), "new")
        assert password_hash("old") not in repr(node)


def test_no_reply_to_a_query_has_a_password(cluster: RealCluster) -> None:
    with password(cluster.nodes[0], "secret-old", "secret-new"):
        replies = asyncio.run(received(cluster.nodes[0], "secret-new"))
    assert password_hash("secret-old").encode() in replies
    assert b"maxmemory" in replies
    assert b"secret" not in replies
    assert b"requirepass" not in replies


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PASSWORDS, hashes("old", "new")),
        (("--requirepass", "new"), hashes("new")),
        (("--requirepass-former", "new"), hashes()),
        ((), hashes()),
    ],
)
def test_broker_without_acl_is_asked_for_its_passwords(
    tmp_path: Path, options: tuple[str, ...], expected: frozenset[str]
) -> None:
    with RealCluster(tmp_path, 1, "--rename-command", "ACL", "no-acl", *options) as cluster:
        assert look(cluster.nodes[0], "new")[0].password_hashes == expected


def test_broker_with_an_unknown_password_is_reported_as_locked(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    with password(one, "strange"):
        for passwords in ((), ("new", "old")):
            with pytest.raises(UnreachableError, match=LOCKED):
                look(one, *passwords)


def test_hanging_broker_is_unreachable_after_the_timeout(cluster: RealCluster) -> None:
    one = cluster.nodes[2]
    one.stop()
    try:
        began_s = time.monotonic()
        with pytest.raises(UnreachableError, match="no answer"):
            look(one, "new", "old")
        assert time.monotonic() - began_s < 3 * brokers.STEP_S + 1
    finally:
        one.cont()


def test_refused_connection_is_unreachable() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(UnreachableError, match="no answer"):
            asyncio.run(brokers.query("c-0", address, (), Asked(), time.time()))


def test_server_of_another_protocol_is_unreachable() -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            with pytest.raises(UnreachableError):
                await brokers.query("c-0", f"{host}:{port}", (), Asked(), time.time())

    asyncio.run(main())


def test_killed_member_is_reported_as_failing_and_silent(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        one, two = cluster.nodes
        gone = two.id
        two.kill()
        cluster.wait_until(lambda: any(not peer.connected and peer.failing for peer in look(one)[0].peers))
        [peer] = look(one)[0].peers
        assert peer.node_id == gone
        assert peer.silent_s > 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [(PASSWORDS, hashes("old", "new")), ((*PASSWORDS, "--rename-command", "ACL", "no-acl"), hashes("new"))],
    ids=["with ACL", "without ACL"],
)
def test_loading_broker_reports_only_that_it_is_loading_and_its_passwords(
    tmp_path: Path, options: tuple[str, ...], expected: frozenset[str]
) -> None:
    with RealCluster(tmp_path, 1, "--appendonly", "yes") as cluster:
        [one] = cluster.nodes
        for start in range(0, 40_000, 500):
            commands = [("ADDJOB", "q", f"job {start + number}", 0, "REPLICATE", 1) for number in range(500)]
            with_client = one.connect()
            with_client.pipeline(commands)
            with_client.close()
        one.kill()
        one.arguments += options
        one.start()
        one.server.wait_ready()
        node, _ = look(one, "new")
        assert node.loading, "the file takes long to load"
        assert (node.node_id, node.peers) == ("", ())
        assert node.version
        assert node.password_hashes == expected
        cluster.wait_until(lambda: not look(one, "new")[0].loading)
        node, _ = look(one, "new")
        assert (node.jobs, node.password_hashes) == (40_000, hashes("old", "new"))


def test_query_tells_users_permissions_and_pauses_when_asked(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    one.call("ACL", "SETUSER", "mail", "on", ">secret", "~mail:*", "+@producer")
    one.call("PAUSE", "paused", "out")
    one.call("QCONF", "paused", "SET", "retry", "30", "pause", "none")
    one.call("QCONF", "p*", "SET", "ttl", "60")
    try:
        one.call("SCHEDULE", "nightly", "SET", *ScheduleFields.model_validate(SCHEDULE).set_words)
        one.call("SCHEDULE", "nightly", "PAUSE")
        asked = Asked(DIRECTIVES, users=True, queues=["paused", "no such queue"], schedules=["nightly", "none"])
        node, _ = asyncio.run(brokers.query("c-0", one.address, (), asked, time.time()))
    finally:
        one.call("ACL", "DELUSER", "mail")
        one.call("PAUSE", "paused", "none")
        one.call("QCONF", "paused", "UNSET", "*")
        one.call("QCONF", "p*", "UNSET", "*")
        one.call("SCHEDULE", "nightly", "DEL")
    assert node.schedules == {"nightly": ScheduleFields.model_validate(SCHEDULE).shown, "none": {}}
    assert node.users["mail"] == f"on #{password_hash('secret')} ~mail:* +@producer"
    assert {"@producer", "@all", "addjob", "config|get"} <= node.permissions
    assert node.pauses == {"paused": "out", "no such queue": "none"}
    assert node.settings == {"paused": {"retry": "30"}, "no such queue": {}}
    assert "maxmemory" in node.config
    assert node.password_hashes == hashes()


def test_catalog_and_queues_are_made_within_the_time_that_a_command_has(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3, "--appendonly", "yes") as cluster:
        one = cluster.nodes[0]
        ids = sorted(node.id for node in cluster.nodes)
        connection = look(one)[1]
        asyncio.run(brokers.send_command(connection, one.id, ("CLUSTER", "ORDERED", "INIT", *ids)))
        asyncio.run(brokers.send_command(connection, one.id, ("QNEW", "orders", "ORDERED", "REPLICAS", "3")))
        cluster.wait_until(
            lambda: all((known := look(node)[0].ordered) is not None and known.queues for node in cluster.nodes)
        )
        found = Ordered({node.id: look(node)[0].ordered or OrderedStatus() for node in cluster.nodes})
        assert len(found.catalogs) == 1
        assert sorted(found.members.replicas) == sorted(found.queues["orders"].replicas) == ids
        assert found.leaderless == ()
        asyncio.run(brokers.send_command(connection, one.id, ("CLUSTER", "LEAVING", "yes")))
        leaving = look(one)[0].leaving
        assert leaving is not None
        assert (leaving.jobs_left, leaving.done) == (0, False), "no other member can take its replica of the queue"
        assert leaving.replicas_left > 0
        asyncio.run(brokers.send_command(connection, one.id, ("CLUSTER", "LEAVING", "no")))
        asyncio.run(brokers.send_command(connection, one.id, ("QDROP", "orders")))


def test_query_tells_the_ordered_queues_and_asks_for_no_pause_of_theirs(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1) as cluster:
        [one] = cluster.nodes
        assert look(one)[0].ordered == OrderedStatus()
        one.call("CLUSTER", "ORDERED", "INIT", one.id)
        one.call("QNEW", "orders", "ORDERED", "SINGLE", "PREFETCH", "3")
        one.call("ADDJOB", "orders", "job", "1000")
        one.call("PAUSE", "orders", "out")
        asked = Asked(queues=["orders", "plain"])
        node, _ = asyncio.run(brokers.query("c-0", one.address, (), asked, time.time()))
    found = node.ordered
    assert found is not None
    assert len(found.catalog) > 10
    assert (found.conflict, found.error) == ("", "")
    assert found.members.leader == node.node_id
    assert found.members.replicas == (node.node_id,)
    replicas = (node.node_id,)
    assert found.queues == {"orders": OrderedGroup("orders", node.node_id, replicas, True, True, 3, "out", 1)}
    assert node.pauses == {"plain": "none"}
    assert node.settings == {"orders": {}, "plain": {}}
