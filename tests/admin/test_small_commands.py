"""PING, TIME, MONITOR, SHUTDOWN and the two commands of the append-only file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode


def test_ping_answers_pong_or_the_text(client: LocalClient) -> None:
    assert client.raw("PING") == b"+PONG\r\n"
    assert client.raw("ping", "hello") == b"$5\r\nhello\r\n"
    assert client.raw("PING", "a", "b") == b"-ERR wrong number of arguments for 'ping' command\r\n"


def test_time_is_the_wall_clock_as_text(local: LocalNode, client: LocalClient) -> None:
    local.host.now_ms += 7
    assert ask(client, "TIME") == [b"%d" % (local.now_ms // 1000), b"7000"]


def test_a_monitor_sees_commands_before_they_run(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("MONITOR") == b"+OK\r\n"
    worker = local.client()
    worker.raw("ADDJOB", "q", b'bo"dy\x01\r\n', 0)
    worker.raw("NOSUCH")
    worker.raw("AUTH", "pw")
    at_s, at_us = divmod(local.now_ms * 1000, 1_000_000)
    head = b"+%d.%06d [127.0.0.1:40001] " % (at_s, at_us)
    assert client.received.splitlines(keepends=True)[1:] == [
        head + b'"ADDJOB" "q" "bo\\"dy\\x01\\r\\n" "0"\r\n',
        head + b'"AUTH" "(redacted)"\r\n',
    ]


def test_a_monitor_may_ask_again_and_run_commands(local: LocalNode, client: LocalClient) -> None:
    client.send("MONITOR")
    client.send("MONITOR")
    client.send("PING")
    lines = client.received.split(b"\r\n")
    assert lines[0] == lines[2] == b"+OK"
    assert lines[1].endswith(b'"MONITOR"')
    assert lines[3].endswith(b'"PING"')
    assert lines[4] == b"+PONG"
    client.disconnect()
    assert local.client().raw("PING") == b"+PONG\r\n"


def test_a_monitor_is_shown_the_beginning_of_long_requests(local: LocalNode, client: LocalClient) -> None:
    client.send("MONITOR")
    worker = local.client()
    worker.raw("ADDJOB", "q", b"x" * 1025, 0)
    worker.raw("DELJOB", *["D-no-job"] * 100)
    _, add, delete = client.received.splitlines()
    assert add.endswith(b'"' + b"x" * 1024 + b'... (1 more bytes)" "0"')
    assert delete.endswith(b'"D-no-job" "... (38 more arguments)"')


def test_shutdown_ends_without_a_reply(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(b"SHUTDOWN\r\nPING\r\n")
    assert client.received == b""
    assert client.closed
    assert local.host.ended == "shutdown"


def test_shutdown_knows_one_option(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("SHUTDOWN", "FOO") == b"-ERR syntax error\r\n"
    assert client.raw("SHUTDOWN", "REWRITE-AOF", "x") == b"-ERR syntax error\r\n"
    assert local.host.ended is None
    client.send("SHUTDOWN", "rewrite-aof")
    assert local.host.ended == "shutdown"


def test_loadjob_is_not_for_clients(client: LocalClient) -> None:
    assert client.raw("LOADJOB", "x") == b"-ERR LOADJOB is a special command only processed from AOF\r\n"
