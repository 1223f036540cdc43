"""CONFIG: looking, changing with effect at once, writing back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from disqued.config.options import OPTIONS
from disqued.testing.local import LocalNode
from support.asking import ask, pairs

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient


def test_patterns_choose_what_is_shown(client: LocalClient) -> None:
    assert pairs(client, "CONFIG", "GET", "max*") == {
        b"maxmemory": b"1073741824",
        b"maxmemory-samples": b"5",
        b"maxclients": b"10000",
        b"maxmemory-policy": b"acks",
    }
    assert client.raw("CONFIG", "GET", "MAX*") == b"*0\r\n"
    assert len(pairs(client, "CONFIG", "GET", "*")) == len([option for option in OPTIONS if option.shown])


def test_values_are_a_map_in_the_third_protocol(client: LocalClient) -> None:
    ask(client, "HELLO", 3)
    assert client.raw("CONFIG", "GET", "h?") == b"%1\r\n$2\r\nhz\r\n$2\r\n10\r\n"


def test_the_directory_is_changed_or_the_reason_given(local: LocalNode, client: LocalClient) -> None:
    assert pairs(client, "CONFIG", "GET", "dir") == {b"dir": b"/var/lib/disque"}
    assert client.raw("CONFIG", "SET", "dir", "/tmp") == b"+OK\r\n"
    assert pairs(client, "CONFIG", "GET", "dir") == {b"dir": b"/tmp"}
    refused = client.raw("CONFIG", "SET", "dir", "/nonexistent")
    assert refused == b"-ERR Changing directory: No such file or directory\r\n"
    assert local.host.directory == "/tmp"


def test_the_number_of_clients_is_bounded_by_the_system(local: LocalNode, client: LocalClient) -> None:
    local.host.max_clients = 100
    assert client.raw("CONFIG", "SET", "maxclients", 101) == (
        b"-ERR The operating system is not able to handle the specified number of clients, try with 100\r\n"
    )
    assert pairs(client, "CONFIG", "GET", "maxclients") == {b"maxclients": b"10000"}
    assert client.raw("CONFIG", "SET", "maxclients", 100) == b"+OK\r\n"


def test_settings_reach_the_outside(local: LocalNode, client: LocalClient) -> None:
    ask(client, "CONFIG", "SET", "loglevel", "VERBOSE")
    ask(client, "CONFIG", "SET", "tcp-keepalive", 60)
    assert local.host.log_level == "verbose"
    assert local.host.keep_alive_s == 60


@pytest.mark.parametrize(("given", "kept"), [(0, b"1"), (100, b"100"), (9999, b"500")])
def test_the_cron_frequency_is_clamped(client: LocalClient, given: int, kept: bytes) -> None:
    assert client.raw("CONFIG", "SET", "HZ", given) == b"+OK\r\n"
    assert pairs(client, "CONFIG", "GET", "hz") == {b"hz": kept}


def test_a_smaller_memory_limit_evicts_at_once(client: LocalClient) -> None:
    # An acknowledged job leaves at once in a cluster of one; a delivered at-most-once job stays until memory is short.
    ask(client, "ADDJOB", "mail", b"x" * 1_000_000, 0, "RETRY", 0, "REPLICATE", 1)
    ((_, job, _),) = ask(client, "GETJOB", "FROM", "mail")
    assert ask(client, "SHOW", job) is not None
    ask(client, "CONFIG", "SET", "maxmemory", "1500kb")
    assert ask(client, "SHOW", job) is None
    assert b"evicted_jobs:1\r\n" in client.raw("INFO", "stats")


def test_a_new_password_holds_at_once(local: LocalNode, client: LocalClient) -> None:
    ask(client, "CONFIG", "SET", "requirepass", "secret")
    assert client.raw("PING") == b"-NOAUTH Authentication required.\r\n"
    assert local.client().raw("PING") == b"-NOAUTH Authentication required.\r\n"
    ask(client, "AUTH", "secret")
    ask(client, "CONFIG", "SET", "requirepass", "")
    assert local.client().raw("PING") == b"+PONG\r\n"


def test_resetstat_resets_all_statistics(client: LocalClient) -> None:
    ask(client, "PING")
    assert client.raw("CONFIG", "RESETSTAT") == b"+OK\r\n"
    shown = ask(client, "INFO", "all").decode()
    assert "total_connections_received:0\r\n" in shown
    assert "cmdstat_ping" not in shown
    assert "total_commands_processed:1\r\n" in shown
    assert "cmdstat_config:calls=1," in shown


def test_the_file_is_rewritten_in_place(local: LocalNode, client: LocalClient) -> None:
    local.host.config_text = "# mine\nhz 20\n"
    ask(client, "CONFIG", "SET", "timeout", 5)
    ask(client, "CONFIG", "SET", "hz", 30)
    assert client.raw("CONFIG", "REWRITE") == b"+OK\r\n"
    assert local.host.config_text.startswith("# mine\nhz 30\n")
    assert "timeout 5\n" in local.host.config_text
    assert 'dir "/var/lib/disque"\n' in local.host.config_text


def test_without_a_file_there_is_nothing_to_rewrite(client: LocalClient) -> None:
    assert client.raw("CONFIG", "REWRITE") == b"-ERR The server is running without a config file\r\n"


def test_write_error_of_config_rewrite_is_reported(
    local: LocalNode, client: LocalClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_text: str) -> None:
        raise PermissionError(13, "Permission denied")

    local.host.config_text = ""
    monkeypatch.setattr(local.host, "write_config", fail)
    assert client.raw("CONFIG", "REWRITE") == b"-ERR Rewriting config file: Permission denied\r\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("FOO", "CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE"),
        ("get", "Wrong number of arguments for CONFIG get"),
        ("GET a b", "Wrong number of arguments for CONFIG GET"),
        ("SET x", "Wrong number of arguments for CONFIG SET"),
        ("RESETSTAT x", "Wrong number of arguments for CONFIG RESETSTAT"),
        ("REWRITE x", "Wrong number of arguments for CONFIG REWRITE"),
        ("SET nosuch 1", "Unsupported CONFIG parameter: nosuch"),
        ("SET port 1", "Unsupported CONFIG parameter: port"),
        ("SET hz x", "Invalid argument 'x' for CONFIG SET 'hz'"),
    ],
)
def test_mistakes_are_named(client: LocalClient, words: str, error: str) -> None:
    assert client.raw("CONFIG", *words.split()) == f"-ERR {error}\r\n".encode()


def test_a_refused_value_changes_nothing(client: LocalClient) -> None:
    before: Any = ask(client, "CONFIG", "GET", "*")
    ask(client, "CONFIG", "SET", "maxmemory", "much")
    ask(client, "CONFIG", "SET", "loglevel", "loud")
    assert ask(client, "CONFIG", "GET", "*") == before
