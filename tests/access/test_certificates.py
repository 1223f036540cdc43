"""Users that certificates of clients name (`tls-auth-clients-user`)."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.core.clients.session import Session
from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture
def local() -> LocalNode:
    """A node on which certificates name users."""
    config = Config()
    config.assign("tls_auth_clients_user", "cn")
    return LocalNode(config)


def connect(local: LocalNode, name: bytes) -> LocalClient:
    """A client with a certificate."""
    session = Session(b"127.0.0.1:50000", local.now_ms)
    session.tls = True
    session.certificate_name = name
    client = LocalClient(local, session)
    local.admit(client)
    return client


def test_a_certificate_names_the_user(local: LocalNode) -> None:
    local.client().call("ACL", "SETUSER", "mail", "on", ">secret", "~mail:*", "+@producer", "+acl|whoami")
    client = connect(local, b"mail")
    assert client.call("ACL", "WHOAMI") == b"mail"
    assert client.raw("PAUSE", "mail:x", "in").startswith(b"-NOPERM")


@pytest.mark.parametrize("rules", [(), ("off",), ("on", "%c=1")])
def test_a_certificate_without_a_user_that_can_log_in_is_as_none(local: LocalNode, rules: tuple[str, ...]) -> None:
    admin = local.client()
    if rules:
        admin.call("ACL", "SETUSER", "mail", "+@all", "nopass", *rules)
        admin.local.client().raw("AUTH", "mail", "x")
    assert connect(local, b"mail").call("ACL", "WHOAMI") == b"default"
    admin.call("CONFIG", "SET", "requirepass", "secret")
    assert connect(local, b"mail").raw("ACL", "WHOAMI").startswith(b"-NOAUTH")


def test_nothing_is_named_unless_the_directive_says_so() -> None:
    local = LocalNode()
    local.client().call("ACL", "SETUSER", "mail", "on", "+@all")
    assert connect(local, b"mail").call("ACL", "WHOAMI") == b"default"


def test_another_login_replaces_the_user_of_the_certificate_and_a_failed_one_restores_it(local: LocalNode) -> None:
    admin = local.client()
    admin.call("ACL", "SETUSER", "mail", "on", "+@all")
    admin.call("ACL", "SETUSER", "ops", "on", ">secret", "+@all")
    client = connect(local, b"mail")
    assert client.raw("AUTH", "ops", "secret") == b"+OK\r\n"
    assert client.call("ACL", "WHOAMI") == b"ops"
    assert client.raw("AUTH", "ops", "wrong").startswith(b"-WRONGPASS")
    assert client.call("ACL", "WHOAMI") == b"mail"


@pytest.mark.parametrize(
    "change",
    [("ACL", "SETUSER", "mail", "off"), ("ACL", "DELUSER", "mail"), ("CONFIG", "SET", "tls-auth-clients-user", "off")],
)
def test_a_session_ends_when_its_certificate_names_no_user_any_more(local: LocalNode, change: tuple[str, ...]) -> None:
    admin = local.client()
    admin.call("ACL", "SETUSER", "mail", "on", ">secret", "+@all")
    client = connect(local, b"mail")
    admin.call("ACL", "SETUSER", "mail", "resetpass")
    assert client.call("ACL", "WHOAMI") == b"mail"
    admin.call(*change)
    assert client.closed


def test_a_user_that_is_created_later_applies_to_connections_of_the_default_user(local: LocalNode) -> None:
    client = connect(local, b"mail")
    assert client.call("ACL", "WHOAMI") == b"default"
    local.client().call("ACL", "SETUSER", "mail", "on", "+@all")
    assert client.call("ACL", "WHOAMI") == b"mail"
