"""DEBUG: forgetting everything, sleeping, restarting, dying."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode


def test_flushing_forgets_all_jobs_and_queues(client: LocalClient) -> None:
    for number in range(20):
        ask(client, "ADDJOB", f"q{number % 5}", "body", 0, "DELAY", number % 3)
    ask(client, "GETJOB", "FROM", "q0")
    ask(client, "PAUSE", "q1", "in")
    assert client.raw("DEBUG", "FLUSHALL") == b"+OK\r\n"
    shown = ask(client, "INFO").decode()
    assert "registered_jobs:0\r\n" in shown
    assert "registered_queues:0\r\n" in shown
    assert client.raw("PAUSE", "q1", "state") == b"+none\r\n"


def test_flushing_gives_back_all_memory(client: LocalClient) -> None:
    before = ask(client, "INFO", "memory").splitlines()[1]
    for number in range(20):
        ask(client, "ADDJOB", f"q{number % 5}", "body", 0, "RETRY", 0)
    ask(client, "GETJOB", "COUNT", 7, "FROM", "q0", "q1")
    ask(client, "DEBUG", "FLUSHALL")
    assert ask(client, "INFO", "memory").splitlines()[1] == before


def test_flushing_answers_blocked_clients(local: LocalNode, client: LocalClient) -> None:
    worker = local.client()
    worker.send("GETJOB", "TIMEOUT", 5000, "FROM", "a", "b")
    ask(client, "DEBUG", "FLUSHALL")
    assert worker.received == b"*-1\r\n"
    ask(client, "ADDJOB", "a", "body", 0)
    local.run(seconds=6)
    assert worker.received == b"*-1\r\n"
    assert ask(client, "QLEN", "a") == 1


def test_nothing_wakes_up_after_a_flush(local: LocalNode, client: LocalClient) -> None:
    ask(client, "ADDJOB", "mail", "body", 0, "DELAY", 2)
    ask(client, "DEBUG", "FLUSHALL")
    local.run(seconds=5)
    assert ask(client, "QLEN", "mail") == 0


def test_sleeping_stops_the_server(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("DEBUG", "SLEEP", "0.25") == b"+OK\r\n"
    assert local.host.slept_s == 0.25


@pytest.mark.parametrize("time", ["x", "-1", "nan", "inf", ""])
def test_a_bad_sleep_is_refused(local: LocalNode, client: LocalClient, time: str) -> None:
    assert client.raw("DEBUG", "SLEEP", time) == b"-ERR DEBUG SLEEP takes a number of seconds, 0 or more\r\n"
    assert local.host.slept_s == 0


def test_an_error_can_be_ordered(client: LocalClient) -> None:
    assert client.raw("DEBUG", "ERROR", b"MYERR some\r\ntext \xff") == b"-MYERR some  text \xff\r\n"


def test_sizes_are_shown(client: LocalClient) -> None:
    assert ask(client, "DEBUG", "STRUCTSIZE").startswith(b"bits:64 job:")


def test_without_an_append_only_file_nothing_is_loaded_or_lost(client: LocalClient) -> None:
    job_id = client.add("q")
    refused = b"-ERR The append only file can't be loaded: can't read disque.aof: No such file or directory\r\n"
    assert client.raw("DEBUG", "LOADAOF") == refused
    assert client.show(job_id)


def test_a_restart_rewrites_the_configuration_and_closes_the_connection(local: LocalNode, client: LocalClient) -> None:
    local.host.config_text = ""
    ask(client, "CONFIG", "SET", "timeout", 9)
    client.send("DEBUG", "RESTART", 100)
    assert local.host.ended == "restart after 100 ms, graceful"
    assert "timeout 9\n" in local.host.config_text
    assert client.closed


def test_a_restart_needs_no_configuration_file(local: LocalNode, client: LocalClient) -> None:
    client.send("DEBUG", "RESTART")
    assert local.host.ended == "restart after 0 ms, graceful"


def test_recovery_from_a_crash_can_be_tried(local: LocalNode, client: LocalClient) -> None:
    client.send("DEBUG", "CRASH-AND-RECOVER", -5)
    assert local.host.ended == "restart after 0 ms, at once"


def test_a_restart_that_fails_is_reported(
    local: LocalNode, client: LocalClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local.host, "restart", lambda _delay_ms, _graceful: False)
    assert client.raw("DEBUG", "RESTART") == b"-ERR failed to restart the server. Check server logs.\r\n"


def test_the_delay_of_a_restart_is_a_number(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("DEBUG", "RESTART", "x") == b"-ERR value is not an integer or out of range\r\n"
    assert local.host.ended is None


@pytest.mark.parametrize("kind", ["segfault", "oom", "assert"])
def test_the_server_dies_on_request(local: LocalNode, client: LocalClient, kind: str) -> None:
    client.send("DEBUG", kind.upper())
    assert local.host.ended == kind


@pytest.mark.parametrize("words", ["FOO", "SLEEP", "FLUSHALL x", "ERROR", "RESTART 1 2"])
def test_unknown_subcommands_are_refused(client: LocalClient, words: str) -> None:
    refused = client.raw("DEBUG", *words.split())
    word = words.split(maxsplit=1)[0]
    assert refused == f"-ERR Unknown DEBUG subcommand or wrong number of arguments for '{word}'\r\n".encode()
