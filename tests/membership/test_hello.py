"""HELLO: without arguments the array of Disque, with arguments the handshake of Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued.config import Config
from disqued.testing.cluster import Cluster
from disqued.testing.local import NODE_ID, LocalNode
from membership.stories import flags, short_node_timeout
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import LocalClient

NODES = [1, NODE_ID, [NODE_ID, b"", b"7711", b"1"]]


@pytest.fixture
def guarded() -> LocalClient:
    """A client of a node with a password."""
    config = Config()
    config.set(b"requirepass", b"s3cret")
    return LocalNode(config).client()


def test_hello_without_arguments_lists_the_nodes(client: LocalClient) -> None:
    assert ask(client, "HELLO") == NODES
    assert client.raw("HELLO").startswith(b"*3\r\n:1\r\n$40\r\n")


def rows(member: Member) -> dict[bytes, list[bytes]]:
    """Host, port and priority of each node, by ID."""
    return {node_id: rest for node_id, *rest in ask(member.admin, "HELLO")[2:]}


def test_hello_shows_all_nodes_and_their_priorities() -> None:
    cluster = Cluster(5, config=short_node_timeout)
    one, suspect, failed, leaver, late = cluster.members
    cluster.run(seconds=2)
    leaver.admin.call("CLUSTER", "LEAVING", "yes")
    failed.crash()
    cluster.until(lambda: flags(one, failed) == "fail")
    suspect.crash(silent=True)
    late.crash()
    cluster.until(lambda: flags(one, suspect) == "fail?")
    late.restart()
    cluster.until(lambda: flags(one, late) == "noflags")
    assert ask(one.admin, "HELLO")[:2] == [1, one.id]
    assert rows(one) == {
        one.id: [b"10.0.0.1", b"7711", b"1"],
        suspect.id: [b"10.0.0.2", b"7711", b"10"],
        failed.id: [b"10.0.0.3", b"7711", b"100"],
        leaver.id: [b"10.0.0.4", b"7711", b"100"],
        late.id: [b"10.0.0.5", b"7711", b"1"],
    }
    assert rows(leaver)[leaver.id][2] == b"100"


def test_unconnected_node_has_a_worse_priority() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=1)
    one, other = cluster.members
    other.crash()
    cluster.run(milliseconds=500)
    assert rows(one)[other.id][2] == b"5"


def test_handshake_switches_to_the_third_protocol(client: LocalClient) -> None:
    assert ask(client, "HELLO", 3) == {
        b"server": b"disque",
        b"version": b"1.0-rc1",
        b"proto": 3,
        b"id": 1,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }
    assert client.raw("CLIENT", "GETNAME") == b"_\r\n"
    assert ask(client, "HELLO") == NODES


def test_handshake_switches_back_to_the_second_protocol(client: LocalClient) -> None:
    ask(client, "HELLO", 3)
    assert client.raw("HELLO", 2).startswith(b"*14\r\n$6\r\nserver\r\n")
    assert client.raw("CLIENT", "GETNAME") == b"$-1\r\n"


def test_handshake_sets_the_connection_name(client: LocalClient) -> None:
    ask(client, "HELLO", 3, "SETNAME", "worker")
    assert ask(client, "CLIENT", "GETNAME") == b"worker"


def test_hello_without_authentication_is_refused(guarded: LocalClient) -> None:
    assert guarded.raw("HELLO") == b"-NOAUTH Authentication required.\r\n"
    assert guarded.raw("HELLO", 3).startswith(b"-NOAUTH Authentication required: send AUTH first")
    assert guarded.raw("PING") == b"-NOAUTH Authentication required.\r\n"


def test_handshake_with_the_password_authenticates(guarded: LocalClient) -> None:
    assert ask(guarded, "HELLO", 3, "SETNAME", "w", "AUTH", "default", "s3cret")[b"proto"] == 3
    assert guarded.raw("PING") == b"+PONG\r\n"
    assert ask(guarded, "CLIENT", "GETNAME") == b"w"


@pytest.mark.parametrize(("user", "password"), [("default", "wrong"), ("somebody", "s3cret")])
def test_a_refused_password_changes_nothing(guarded: LocalClient, user: str, password: str) -> None:
    assert guarded.raw("HELLO", 3, "AUTH", user, password, "SETNAME", "w").startswith(b"-WRONGPASS ")
    guarded.raw("AUTH", "s3cret")
    assert guarded.raw("CLIENT", "GETNAME") == b"$-1\r\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("1", "NOPROTO unsupported protocol version"),
        ("4", "NOPROTO unsupported protocol version"),
        ("three", "NOPROTO unsupported protocol version"),
        ("3 SETNAME", "ERR syntax error in HELLO at 'SETNAME'"),
        ("3 AUTH default", "ERR syntax error in HELLO at 'AUTH'"),
        ("3 FOO bar", "ERR syntax error in HELLO at 'FOO'"),
        ("3 SETNAME \x7f", "ERR Client names cannot contain spaces"),
    ],
)
def test_errors_name_the_mistake_and_change_nothing(client: LocalClient, words: str, error: str) -> None:
    assert client.raw("HELLO", *words.split(" ")).startswith(f"-{error}".encode())
    assert client.raw("CLIENT", "GETNAME") == b"$-1\r\n"
