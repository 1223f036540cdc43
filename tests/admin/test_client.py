"""CLIENT: connections list, name, pause and close one another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode

HELP = b"-ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)\r\n"


def listed(client: LocalClient) -> list[dict[str, str]]:
    """CLIENT LIST by lines."""
    lines = ask(client, "CLIENT", "LIST").decode().splitlines()
    return [dict(word.split("=", 1) for word in line.split(" ")) for line in lines]


def test_the_line_of_a_connection_has_the_fields_of_the_original_and_its_user(client: LocalClient) -> None:
    client.session.descriptor = 7
    line = ask(client, "CLIENT", "LIST")
    assert line == (
        b"id=1 addr=127.0.0.1:40000 fd=7 name= age=0 idle=0 flags=N qbuf=0 qbuf-free=0 obl=0 oll=0 omem=0 events=r "
        b"cmd=client user=default\n"
    )


def test_the_list_shows_what_each_connection_is_doing(local: LocalNode, client: LocalClient) -> None:
    local.client().send("GETJOB", "FROM", "mail")
    local.client().send("MONITOR")
    local.client()
    local.run(seconds=3)
    lines = listed(client)
    assert [line["flags"] for line in lines] == ["N", "b", "O", "N"]
    assert [line["cmd"] for line in lines] == ["client", "getjob", "monitor", "NULL"]
    assert [line["id"] for line in lines] == ["1", "2", "3", "4"]
    assert (lines[0]["age"], lines[0]["idle"]) == ("3", "0")
    assert (lines[3]["age"], lines[3]["idle"]) == ("3", "3")


def test_waiting_input_and_output_are_counted(local: LocalNode, client: LocalClient) -> None:
    other = local.client()
    other.send_bytes(b"*1\r\n$4\r\nPI")
    other.session.out.append(b"x" * 10)
    line = listed(client)[1]
    assert (line["qbuf"], line["oll"], line["omem"], line["events"]) == ("6", "1", "10", "rw")


def test_a_connection_can_be_named_and_unnamed(client: LocalClient) -> None:
    assert client.raw("CLIENT", "GETNAME") == b"$-1\r\n"
    assert client.raw("CLIENT", "SETNAME", "worker-1") == b"+OK\r\n"
    assert client.raw("CLIENT", "GETNAME") == b"$8\r\nworker-1\r\n"
    assert listed(client)[0]["name"] == "worker-1"
    assert client.raw("CLIENT", "SETNAME", "") == b"+OK\r\n"
    assert client.raw("CLIENT", "GETNAME") == b"$-1\r\n"


@pytest.mark.parametrize("name", [b"two words", b"line\n", b"\x7f", b"\xff"])
def test_a_name_that_would_break_the_list_is_refused(client: LocalClient, name: bytes) -> None:
    refused = client.raw("CLIENT", "SETNAME", name)
    assert refused == b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"


def test_an_address_is_enough_to_close_a_connection(local: LocalNode, client: LocalClient) -> None:
    other = local.client()
    assert client.raw("CLIENT", "KILL", other.session.address) == b"+OK\r\n"
    assert other.closed
    assert client.raw("CLIENT", "KILL", other.session.address) == b"-ERR No such client\r\n"


def test_the_caller_is_closed_after_its_reply(client: LocalClient) -> None:
    assert client.raw("CLIENT", "KILL", client.session.address) == b"+OK\r\n"
    assert client.closed


def test_filters_choose_whom_to_close(local: LocalNode, client: LocalClient) -> None:
    others = [local.client() for _ in range(3)]
    assert ask(client, "CLIENT", "KILL", "ID", 2, "ADDR", "127.0.0.1:40002") == 0
    assert ask(client, "CLIENT", "KILL", "ID", 2, "ADDR", "127.0.0.1:40001") == 1
    assert [other.closed for other in others] == [True, False, False]
    assert ask(client, "CLIENT", "KILL", "TYPE", "normal") == 2
    assert not client.closed
    assert ask(client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no") == 1
    assert client.closed


def test_a_blocked_client_that_is_closed_takes_no_job(local: LocalNode, client: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "FROM", "mail")
    assert ask(client, "CLIENT", "KILL", "ID", 2) == 1
    client.send("ADDJOB", "mail", "body", 0)
    client.next_reply()
    assert ask(client, "QLEN", "mail") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "syntax error"),
        ("ID", "No such client"),
        ("ID 999 TYPE", "syntax error"),
        ("ID x", "value is not an integer or out of range"),
        ("TYPE slave", "Unknown client type 'slave'"),
        ("SKIPME maybe", "syntax error"),
        ("FOO bar", "syntax error"),
    ],
)
def test_bad_filters_are_refused(client: LocalClient, words: str, error: str) -> None:
    assert client.raw("CLIENT", "KILL", *words.split()) == f"-ERR {error}\r\n".encode()


def test_a_pause_holds_the_commands_of_all_clients(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("CLIENT", "PAUSE", 400) == b"+OK\r\n"
    other = local.client()
    client.send("PING")
    other.send("PING")
    local.run(milliseconds=399)
    assert (client.received, other.received) == (b"+OK\r\n", b"")
    local.run(milliseconds=1)
    assert (client.received, other.received) == (b"+OK\r\n+PONG\r\n", b"+PONG\r\n")


def test_commands_held_by_a_pause_run_in_order(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(b"CLIENT PAUSE 400\r\nPING 1\r\nCLIENT ID\r\nPING 2\r\n")
    local.run(milliseconds=399)
    assert client.received == b"+OK\r\n"
    local.run(milliseconds=1)
    assert client.received == b"+OK\r\n$1\r\n1\r\n:1\r\n$1\r\n2\r\n"


def test_a_shorter_pause_does_not_end_a_longer_one(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(b"CLIENT PAUSE 400\r\nCLIENT PAUSE 100\r\nPING\r\n")
    local.run(milliseconds=399)
    assert client.received == b"+OK\r\n+OK\r\n"
    local.run(milliseconds=1)
    assert client.received == b"+OK\r\n+OK\r\n+PONG\r\n"


def test_another_client_ends_a_pause(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(b"CLIENT PAUSE 3600000\r\nADDJOB mail body 0\r\n")
    assert client.received == b"+OK\r\n"
    assert local.client().raw("CLIENT", "UNPAUSE") == b"+OK\r\n"
    assert client.received.startswith(b"+OK\r\n+D-"), "the held command runs at once"
    assert local.client().raw("PING") == b"+PONG\r\n"


def test_a_client_that_must_authenticate_ends_a_pause(local: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "requirepass", "secret")
    client.call("AUTH", "secret")
    assert client.raw("CLIENT", "PAUSE", 3_600_000) == b"+OK\r\n"
    other = local.client()
    assert other.raw("CLIENT", "UNPAUSE") == b"-NOAUTH Authentication required.\r\n"
    assert other.raw("AUTH", "secret") == b"+OK\r\n"
    assert other.raw("HELLO", 2).startswith(b"*14\r\n")
    assert other.raw("CLIENT", "UNPAUSE") == b"+OK\r\n"
    assert client.raw("PING") == b"+PONG\r\n"


def test_the_longest_pause_is_accepted(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("CLIENT", "PAUSE", (1 << 63) - 1) == b"+OK\r\n"
    client.send("PING")
    local.run(seconds=10)
    assert client.received == b"+OK\r\n"


def test_a_pause_of_no_time_ends_at_once(client: LocalClient) -> None:
    assert client.raw("CLIENT", "PAUSE", 0) == b"+OK\r\n"
    assert client.raw("PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    ("value", "error"), [("x", "timeout is not an integer or out of range"), ("-1", "timeout is negative")]
)
def test_a_pause_needs_a_time(client: LocalClient, value: str, error: str) -> None:
    assert client.raw("CLIENT", "PAUSE", value) == f"-ERR {error}\r\n".encode()


def test_replies_can_be_turned_off_and_on(client: LocalClient) -> None:
    client.send("CLIENT", "REPLY", "OFF")
    client.send("PING")
    client.send("CLIENT", "REPLY", "SKIP")
    client.send("PING")
    client.send("NOSUCH")
    assert client.received == b""
    assert client.raw("CLIENT", "REPLY", "ON") == b"+OK\r\n"
    assert client.raw("PING") == b"+PONG\r\n"


def test_one_reply_can_be_skipped(client: LocalClient) -> None:
    client.send_bytes(b"CLIENT REPLY SKIP\r\nPING a\r\nPING b\r\n")
    assert client.received == b"$1\r\nb\r\n"


def test_an_unknown_reply_mode_is_refused(client: LocalClient) -> None:
    assert client.raw("CLIENT", "REPLY", "BAD") == b"-ERR syntax error\r\n"


def test_commands_of_modern_clients_are_accepted(client: LocalClient) -> None:
    assert client.raw("CLIENT", "ID") == b":1\r\n"
    assert client.raw("CLIENT", "SETINFO", "lib-name", "redis-py") == b"+OK\r\n"
    assert client.raw("CLIENT", "SETINFO", "LIB-VER", "8.0") == b"+OK\r\n"
    assert client.raw("CLIENT", "NO-EVICT", "on") == b"+OK\r\n"
    assert client.raw("CLIENT", "NO-TOUCH", "off") == b"+OK\r\n"
    assert client.raw("CLIENT", "UNPAUSE") == b"+OK\r\n"
    shown = ask(client, "CLIENT", "INFO")
    assert re.fullmatch(rb"id=1 addr=\S+ .* cmd=client user=default lib-name=redis-py lib-ver=8\.0 resp=2\n", shown)


@pytest.mark.parametrize(
    "words", ["SETINFO lib-name", "SETINFO lib-what x", "NO-EVICT maybe", "NO-TOUCH", "ID 5", "MAINT_NOTIFICATIONS ON"]
)
def test_invalid_commands_of_modern_clients_are_errors(client: LocalClient, words: str) -> None:
    assert client.raw("CLIENT", *words.split()).startswith(b"-ERR ")


def test_a_library_name_that_would_break_the_list_is_refused(client: LocalClient) -> None:
    assert client.raw("CLIENT", "SETINFO", "LIB-NAME", "a b").startswith(b"-ERR The name and version of a library")


@pytest.mark.parametrize("words", ["FOO", "LIST x", "GETNAME x", "SETNAME", "PAUSE", "REPLY"])
def test_unknown_subcommands_and_word_counts_are_refused(client: LocalClient, words: str) -> None:
    assert client.raw("CLIENT", *words.split()) == HELP


def test_a_name_has_at_most_256_bytes(client: LocalClient) -> None:
    """CLIENT LIST shows the names of all connections."""
    assert client.raw("CLIENT", "SETNAME", "n" * 256) == b"+OK\r\n"
    long = b"can have at most 256 bytes, 2000000 were given\r\n"
    assert client.raw("CLIENT", "SETNAME", "n" * 2_000_000) == b"-ERR Client names " + long
    refused = client.raw("CLIENT", "SETINFO", "LIB-NAME", "n" * 2_000_000)
    assert refused == b"-ERR The name and version of a library " + long


def test_other_clients_are_served_while_many_are_listed(local: LocalNode, client: LocalClient) -> None:
    others = [local.client() for _ in range(1000)]
    local.host.command_ns = 1_000_000
    client.send("CLIENT", "LIST")
    assert client.silent
    assert others[0].call("PING") == b"PONG"
    others[-1].disconnect()
    local.run(seconds=2)
    reply = client.next_reply()
    assert isinstance(reply, bytes)
    assert len(reply.splitlines()) == 1000
