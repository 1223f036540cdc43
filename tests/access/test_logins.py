"""Failed logins are counted, logged and delayed."""

from __future__ import annotations

import pytest

from disqued.core.access.failures import FREE_FAILURES, LONGEST_DELAY_MS, LoginFailures
from disqued.testing.local import LocalClient, LocalNode

REFUSED = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"


@pytest.mark.parametrize("words", [("AUTH", "mail", "guess"), ("HELLO", "3", "AUTH", "mail", "guess")])
def test_answers_to_repeated_failures_are_delayed(admin: LocalClient, words: tuple[str, ...]) -> None:
    attacker = admin.local.client()
    for _ in range(FREE_FAILURES):
        assert attacker.raw(*words) == REFUSED
    assert attacker.raw(*words) == b""
    assert attacker.raw("PING") == b"", "its next requests wait too"
    assert admin.raw("PING") == b"+PONG\r\n"
    admin.local.run(milliseconds=200)
    assert attacker.received.endswith(REFUSED + b"+PONG\r\n")
    assert attacker.raw(*words) == b""
    admin.local.run(milliseconds=150)
    assert attacker.silent
    admin.local.run(milliseconds=150)
    assert not attacker.silent


@pytest.mark.parametrize("words", [("AUTH", "mail", "guess"), ("HELLO", "3", "AUTH", "mail", "guess")])
def test_a_failed_login_counts_as_a_failed_command_also_if_its_answer_is_delayed(
    admin: LocalClient, words: tuple[str, ...]
) -> None:
    state = admin.local.node.state
    for _ in range(FREE_FAILURES + 2):
        admin.local.client().send(*words)
    entry = state.commands[words[0].encode()]
    assert (entry.done, entry.failed) == (0, FREE_FAILURES + 2)


def test_a_client_that_leaves_while_its_refusal_is_delayed_leaves_nothing_behind(admin: LocalClient) -> None:
    attacker = admin.local.client()
    for _ in range(FREE_FAILURES + 1):
        attacker.send("AUTH", "mail", "guess")
    attacker.disconnect()
    admin.local.run(seconds=1)
    assert admin.local.node.state.blocked_clients == 0


def test_a_right_password_is_not_delayed(admin: LocalClient) -> None:
    admin.call("ACL", "SETUSER", "mail", "on", ">secret")
    for _ in range(FREE_FAILURES + 3):
        admin.local.client().send("AUTH", "mail", "guess")
    assert admin.local.client().raw("AUTH", "mail", "secret") == b"+OK\r\n"


def test_the_delay_grows_per_address_up_to_a_limit_and_is_forgotten() -> None:
    failures = LoginFailures()
    delays = [failures.note("10.0.0.1", 1000) for _ in range(20)]
    assert delays[:FREE_FAILURES] == [0] * FREE_FAILURES
    assert delays[FREE_FAILURES : FREE_FAILURES + 3] == [100, 200, 400]
    assert delays[-1] == LONGEST_DELAY_MS
    assert failures.note("10.0.0.2", 1000) == 0
    assert failures.note("10.0.0.1", 100_000) == 0


def test_failures_of_many_addresses_take_bounded_memory() -> None:
    failures = LoginFailures()
    for number in range(10_000):
        failures.note(f"10.{number}", 1000)
    assert len(failures._by_origin) == 4096


def test_failures_are_logged_once_per_second_without_the_password(local: LocalNode) -> None:
    local.client().call("CONFIG", "SET", "protected-mode", "no")
    attacker = local.client(b"192.0.2.7:555")
    for _ in range(3):
        attacker.call("AUTH", 'ma"il\n', "guess")
    lines = [text for _, text in local.host.log_lines if "Login failed" in text]
    assert lines == ['Login failed: user="ma\\"il\\n" address="192.0.2.7:555" failures=1']
    local.run(seconds=1)
    attacker.call("AUTH", "x", "guess")
    assert local.host.log_lines[-1][1].endswith("failures=3")


def test_refusals_are_counted_and_kept_in_acl_log(admin: LocalClient) -> None:
    admin.call("ACL", "SETUSER", "mail", "on", ">secret", "+@producer", "~mail:*")
    client = admin.local.client()
    client.call("AUTH", "mail", "guess")
    client.call("AUTH", "mail", "secret")
    for _ in range(2):
        client.call("ADDJOB", "other", "b", 0)
    client.call("PAUSE", "mail:x", "in")
    log = admin.call("ACL", "LOG")
    assert isinstance(log, list)
    entries = [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in log]  # type: ignore[index, arg-type]
    assert [(e[b"reason"], e[b"object"], e[b"username"], e[b"count"]) for e in entries] == [
        (b"command", b"pause", b"mail", 1),
        (b"key", b"other", b"mail", 2),
        (b"auth", b"AUTH", b"mail", 1),
    ]
    shown = admin.raw("INFO", "access")
    assert b"logins_failed:1\r\n" in shown
    assert b"requests_forbidden_queue:2\r\n" in shown
    assert admin.raw("ACL", "LOG", "RESET") == b"+OK\r\n"
    assert admin.call("ACL", "LOG") == []


def test_addresses_of_one_network_count_together(local: LocalNode) -> None:
    """A host chooses the second half of its IPv6 address freely."""
    local.client().call("ACL", "SETUSER", "default", "resetpass", ">pw")
    for number in range(FREE_FAILURES + 1):
        client = local.client()
        client.session.address = b"[2001:db8::%x]:4000" % number
        client.send("AUTH", "wrong")
    assert client.silent, "the refusal is delayed"
