"""AUTH: what a password keeps out, and how it is shown."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.testing.local import LocalClient, LocalNode

NO_AUTH = b"-NOAUTH Authentication required.\r\n"
WRONG = b"-ERR invalid password\r\n"
WRONG_PAIR = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"


@pytest.fixture
def guarded() -> LocalClient:
    """A client of a node with a password."""
    config = Config()
    config.set(b"requirepass", b"s3cret")
    return LocalNode(config).client()


def test_nothing_runs_before_the_password(guarded: LocalClient) -> None:
    assert guarded.raw("PING") == NO_AUTH
    assert guarded.raw("NOSUCH") == b"-ERR unknown command 'NOSUCH'\r\n"
    assert guarded.raw("AUTH", "s3cret") == b"+OK\r\n"
    assert guarded.raw("PING") == b"+PONG\r\n"


def test_a_wrong_password_ends_an_earlier_authentication(guarded: LocalClient) -> None:
    guarded.raw("AUTH", "s3cret")
    assert guarded.raw("AUTH", "wrong") == WRONG
    assert guarded.raw("PING") == NO_AUTH


def test_clients_of_redis_name_the_only_user(guarded: LocalClient) -> None:
    assert guarded.raw("AUTH", "somebody", "s3cret") == WRONG_PAIR
    assert guarded.raw("AUTH", "default", "wrong") == WRONG_PAIR
    assert guarded.raw("AUTH", "default", "s3cret") == b"+OK\r\n"


def test_the_former_password_is_accepted_while_it_is_set(guarded: LocalClient) -> None:
    guarded.raw("AUTH", "s3cret")
    assert guarded.raw("CONFIG", "SET", "requirepass-former", "s3cret") == b"+OK\r\n"
    assert guarded.raw("CONFIG", "SET", "requirepass", "fresh") == b"+OK\r\n"
    for words in (["s3cret"], ["default", "s3cret"], ["fresh"]):
        client = guarded.local.client()
        assert client.raw("PING") == NO_AUTH
        assert client.raw("AUTH", *words) == b"+OK\r\n"
    assert client.raw("HELLO", "2", "AUTH", "default", "s3cret").startswith(b"*14\r\n")
    assert client.raw("AUTH", "") == WRONG
    assert guarded.raw("CONFIG", "SET", "requirepass-former", "") == b"+OK\r\n"
    assert client.raw("AUTH", "s3cret") == WRONG
    assert client.raw("AUTH", "") == WRONG
    assert client.raw("AUTH", "fresh") == b"+OK\r\n"


def test_a_session_ends_when_the_password_of_its_login_is_withdrawn(guarded: LocalClient) -> None:
    late, early, waiting = (guarded.local.client() for _ in range(3))
    for client in (guarded, early, waiting):
        client.raw("AUTH", "s3cret")
    guarded.raw("CONFIG", "SET", "requirepass-former", "s3cret")
    guarded.raw("CONFIG", "SET", "requirepass", "fresh")
    late.raw("AUTH", "fresh")
    waiting.send("GETJOB", "FROM", "q")
    assert early.raw("PING") == late.raw("PING") == b"+PONG\r\n"
    assert guarded.raw("CONFIG", "SET", "requirepass-former", "") == b"+OK\r\n"
    assert early.closed
    assert waiting.closed
    assert guarded.closed, "it had logged in with the former password too"
    assert late.raw("PING") == b"+PONG\r\n"
    assert late.call("QLEN", "q") == 0


def test_a_session_continues_when_the_former_password_becomes_the_current_one(guarded: LocalClient) -> None:
    """As Kubernetes' operator does, which does not know which one of two passwords is `requirepass`."""
    guarded.raw("AUTH", "s3cret")
    guarded.raw("CONFIG", "SET", "requirepass-former", "s3cret")
    guarded.raw("CONFIG", "SET", "requirepass", "fresh")
    assert guarded.raw("CONFIG", "SET", "requirepass", "s3cret") == b"+OK\r\n"
    assert guarded.raw("CONFIG", "SET", "requirepass-former", "newest") == b"+OK\r\n"
    assert guarded.raw("PING") == b"+PONG\r\n"
    for word, reply in (("fresh", WRONG), ("newest", b"+OK\r\n"), ("s3cret", b"+OK\r\n")):
        assert guarded.local.client().raw("AUTH", word) == reply


def test_a_former_password_alone_requires_no_authentication(client: LocalClient) -> None:
    client.raw("CONFIG", "SET", "requirepass-former", "s3cret")
    assert client.raw("PING") == b"+PONG\r\n"
    assert client.raw("AUTH", "s3cret") == b"-ERR Client sent AUTH, but no password is set\r\n"


def test_large_requests_are_read_after_the_password_only(guarded: LocalClient) -> None:
    guarded.raw("AUTH", "s3cret")
    assert guarded.raw("PING", b"x" * 20_000) == b"$20000\r\n" + b"x" * 20_000 + b"\r\n"
    guarded.raw("AUTH", "wrong")
    assert guarded.raw("PING", b"x" * 20_000) == b"-ERR Protocol error: invalid bulk length\r\n"
    assert guarded.closed


def test_auth_is_an_error_if_no_password_is_set(client: LocalClient) -> None:
    assert client.raw("AUTH", "x") == b"-ERR Client sent AUTH, but no password is set\r\n"


@pytest.mark.parametrize("words", [[], ["a", "b", "c"]])
def test_auth_takes_one_or_two_words(client: LocalClient, words: list[str]) -> None:
    assert client.raw("AUTH", *words) == b"-ERR wrong number of arguments for 'auth' command\r\n"
