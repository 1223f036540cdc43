"""Changes of users apply at once, and end the sessions that could not log in as they did."""

from __future__ import annotations

import pytest

from access.conftest import PASSWORD, LogIn
from disqued.config import Config
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode


def test_changed_rules_apply_to_sessions_that_run(admin: LocalClient, log_in: LogIn) -> None:
    user = log_in("user", "~* +@all")
    assert user.call("QLEN", "q") == 0
    admin.call("ACL", "SETUSER", "user", "-qlen")
    assert user.raw("QLEN", "q").startswith(b"-NOPERM ")
    admin.call("ACL", "SETUSER", "user", "+@all")
    assert user.call("QLEN", "q") == 0


def test_removed_and_disabled_users_lose_their_sessions(admin: LocalClient, log_in: LogIn) -> None:
    removed, disabled, other = log_in("a", "+@all"), log_in("b", "+@all"), log_in("c", "+@all")
    assert admin.call("ACL", "DELUSER", "a", "nosuch") == 1
    admin.call("ACL", "SETUSER", "b", "off")
    assert removed.closed
    assert disabled.closed
    assert other.raw("PING") == b"+PONG\r\n"
    assert admin.local.client().raw("AUTH", "b", PASSWORD).startswith(b"-WRONGPASS ")


def test_a_removed_password_ends_the_sessions_that_used_it(admin: LocalClient, log_in: LogIn) -> None:
    old = log_in("user", "+@all")
    admin.call("ACL", "SETUSER", "user", ">fresh")
    new = admin.local.client()
    new.call("AUTH", "user", "fresh")
    admin.call("ACL", "SETUSER", "user", f"<{PASSWORD}")
    assert old.closed
    assert new.raw("PING") == b"+PONG\r\n"


def test_who_removes_itself_gets_the_reply_first(log_in: LogIn) -> None:
    user = log_in("user", "~* +@all")
    assert user.raw("ACL", "DELUSER", "user") == b":1\r\n"
    assert user.closed


def test_a_client_that_waits_for_jobs_it_may_not_have_any_more_is_disconnected(
    admin: LocalClient, log_in: LogIn
) -> None:
    waiting = log_in("user", "~a ~b +@consumer")
    waiting.send("GETJOB", "FROM", "a", "b")
    admin.call("ACL", "SETUSER", "user", "resetkeys", "~a")
    assert waiting.closed
    admin.add("b")
    assert admin.call("QLEN", "b") == 1


def test_a_client_that_waits_for_jobs_it_may_have_keeps_waiting(admin: LocalClient, log_in: LogIn) -> None:
    waiting = log_in("user", "~a ~b +@consumer")
    waiting.send("GETJOB", "FROM", "a")
    admin.call("ACL", "SETUSER", "user", "resetkeys", "~a")
    admin.add("a", "body")
    assert waiting.next_reply()


def test_a_monitor_ends_with_its_permission(admin: LocalClient, log_in: LogIn) -> None:
    watching = log_in("user", "~* +@all")
    watching.call("MONITOR")
    admin.call("ACL", "SETUSER", "user", "-@dangerous")
    assert watching.closed


def test_connections_without_login_follow_the_default_user(admin: LocalClient, log_in: LogIn) -> None:
    root = log_in("root", "~* +@all")
    root.call("ACL", "SETUSER", "default", "-@all", "+ping")
    assert admin.raw("PING") == b"+PONG\r\n"
    assert admin.raw("INFO").startswith(b"-NOPERM User default ")
    root.call("ACL", "SETUSER", "default", "off")
    assert admin.raw("PING") == b"-NOAUTH Authentication required.\r\n"
    root.call("ACL", "SETUSER", "default", "on", "+@all")
    assert admin.raw("PING") == b"+PONG\r\n"


def test_connections_of_a_user_can_be_closed(admin: LocalClient, log_in: LogIn) -> None:
    user = log_in("user", "+@all")
    assert b" user=user " in user.raw("CLIENT", "INFO")
    assert admin.call("CLIENT", "KILL", "USER", "user") == 1
    assert user.closed


def password_file(text: bytes) -> tuple[LocalNode, FakeHost]:
    """A node whose password is in a file."""
    host = FakeHost()
    host.secret_files["/run/password"] = text
    config = Config()
    config.assign("requirepass_file", "/run/password")
    return LocalNode(config, host), host


def reread(local: LocalNode) -> None:
    """Send SIGHUP."""
    local.node.files_changed(local.now_ms)
    local.flush()


def test_a_password_comes_from_a_file_and_changes_with_it() -> None:
    local, host = password_file(b"first\n")
    client = local.client()
    assert client.raw("PING").startswith(b"-NOAUTH ")
    assert client.raw("AUTH", "first") == b"+OK\r\n"
    host.secret_files["/run/password"] = b"second\nfirst\n"
    reread(local)
    assert client.raw("PING") == b"+PONG\r\n"
    assert local.client().raw("AUTH", "second") == b"+OK\r\n"
    host.secret_files["/run/password"] = b"second\n"
    reread(local)
    assert client.closed
    assert local.client().raw("AUTH", "first") == b"-ERR invalid password\r\n"


def test_a_password_file_that_cannot_be_used_changes_nothing() -> None:
    local, host = password_file(b"first")
    for text in (b"", b"a\nb\nc\n", b"\nx\n", b"x" * 513):
        host.secret_files["/run/password"] = text
        reread(local)
        assert "must have one password" in host.log_lines[-1][1]
        assert local.client().raw("AUTH", "first") == b"+OK\r\n"
    del host.secret_files["/run/password"]
    reread(local)
    assert host.log_lines[-1][1].endswith("cannot read requirepass-file '/run/password': No such file or directory")


def test_with_a_password_file_requirepass_cannot_be_set() -> None:
    local, _ = password_file(b"first")
    client = local.client()
    client.call("AUTH", "first")
    assert client.raw("CONFIG", "SET", "requirepass", "x").startswith(b"-ERR passwords come from requirepass-file")
    assert client.raw("CONFIG", "SET", "requirepass-file", "/nosuch").startswith(b"-ERR cannot read")
    assert client.raw("CONFIG", "SET", "requirepass-file", "") == b"+OK\r\n"
    assert local.client().raw("PING") == b"+PONG\r\n"


def test_a_second_source_of_passwords_is_refused(admin: LocalClient) -> None:
    admin.local.host.secret_files["/run/password"] = b"first"
    admin.call("CONFIG", "SET", "requirepass", "top")
    admin.call("AUTH", "top")
    client = admin.local.client()
    client.call("AUTH", "top")
    assert b"both requirepass and requirepass-file are set" in client.raw(
        "CONFIG", "SET", "requirepass-file", "/run/password"
    )


@pytest.mark.parametrize("name", ["requirepass-former", "requirepass-file"])
def test_a_directive_that_gives_no_password_leaves_the_password_of_the_default_user(
    admin: LocalClient, name: str
) -> None:
    admin.call("ACL", "SETUSER", "default", "resetpass", ">pw")
    client = admin.local.client()
    assert client.raw("AUTH", "pw") == b"+OK\r\n"
    assert client.raw("CONFIG", "SET", name, "") == b"+OK\r\n"
    assert admin.local.client().raw("PING").startswith(b"-NOAUTH ")


def test_a_password_that_is_withdrawn_in_the_configuration_is_withdrawn(admin: LocalClient) -> None:
    admin.call("CONFIG", "SET", "requirepass", "top")
    client = admin.local.client()
    client.call("AUTH", "top")
    client.call("CONFIG", "SET", "requirepass", "")
    assert admin.local.client().raw("PING") == b"+PONG\r\n"


def test_a_long_command_that_a_user_may_not_run_any_more_ends(admin: LocalClient, log_in: LogIn) -> None:
    for _ in range(2000):
        admin.add("a")
    user = log_in("user", "~a +@consumer")
    admin.local.host.command_ns = 1_000_000  # a slice takes a few steps only
    user.send("GETJOB", "NOHANG", "COUNT", 2000, "FROM", "a")
    assert user.silent, "it needs more than one slice"
    admin.call("ACL", "SETUSER", "user", "resetkeys")
    admin.local.run(seconds=1)
    assert user.closed
    assert admin.call("QLEN", "a") != 0
