"""Starting the server: the sources of its configuration, and errors that prevent the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.replay import Client
from compat.wire import Reply, Status
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.refusing import run_server

EXAMPLE = """\
# Example: what every installation sets.
daemonize no
pidfile /var/run/disque.pid
port {port}
tcp-backlog 511
bind 127.0.0.1
timeout 0
tcp-keepalive 0
loglevel verbose
logfile ""
maxmemory 64mb
maxmemory-policy acks
appendonly no
auto-aof-rewrite-min-size 64mb
slowlog-log-slower-than 10000
hz 10
client-output-buffer-limit normal 0 0 0
include more.conf
"""


def get(server: ServerProcess, name: bytes) -> Reply:
    """The value of a directive in the running server."""
    client = Client(server)
    reply = client.call(b"CONFIG", b"GET", name)
    assert client.finish() == b""
    assert isinstance(reply, list)
    assert reply[0] == name
    return reply[1]


def test_a_configuration_file_with_an_include_is_read(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "more.conf").write_text("slowlog-max-len 77\n")
    with ServerProcess(tmp_path, config=EXAMPLE.format(port=port), port=port, bare=True) as server:
        assert get(server, b"maxmemory") == b"67108864"
        assert get(server, b"loglevel") == b"verbose"
        assert get(server, b"slowlog-max-len") == b"77"
        assert get(server, b"bind") == b"127.0.0.1"


def test_the_configuration_can_come_from_standard_input(tmp_path: Path) -> None:
    port = free_port()
    text = f"port {port}\nbind 127.0.0.1\nmaxmemory 32mb\n".encode()
    with ServerProcess(tmp_path, "-", "--hz", "50", stdin=text, port=port, bare=True) as server:
        assert get(server, b"maxmemory") == b"33554432"
        assert get(server, b"hz") == b"50"


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--timeout", "5", "--hz", "20", config="timeout 9\nhz 30\n") as server:
        assert get(server, b"timeout") == b"5"
        assert get(server, b"hz") == b"20"


def test_a_password_of_any_bytes_is_kept_as_it_is(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "disque.conf").write_bytes(b'port %d\nbind 127.0.0.1\n# gr\xfcn\nrequirepass "\\xff \xe9"\n' % port)
    with ServerProcess(tmp_path, "disque.conf", port=port, bare=True) as server:
        client = Client(server)
        assert client.call(b"AUTH", b"\xff \xe9") == Status(b"OK")
        assert client.finish() == b""


def test_relative_paths_start_at_dir(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    config = "dir data\nlogfile log.txt\nunixsocket s\n"
    with ServerProcess(tmp_path, config=config) as server:
        assert get(server, b"dir") == str(tmp_path / "data").encode()
        assert (tmp_path / "data" / "s").is_socket()
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["log.txt", "nodes.conf"]
    assert "ready to accept connections" in (tmp_path / "data" / "log.txt").read_text()
    assert server.log.read_text() == ""


def test_start_without_configuration_logs_a_warning(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "-", stdin=b"port 0\nunixsocket s\n", at=str(tmp_path / "s"), bare=True) as server:
        assert get(server, b"port") == b"0"
        assert "no config file specified" not in server.log.read_text()
    outcome = run_server(tmp_path, launcher=("prlimit", "--nofile=20:20"))
    assert outcome.status == 1
    assert "no config file specified, using the default config" in outcome.out


# --- invalid configurations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "arguments", "line", "shown", "message"),
    [
        ("hz 10\n\n  nosuch 1\n", [], 3, "nosuch 1", "Bad directive or wrong number of arguments"),
        ("", ["--nosuch", "1"], 2, 'nosuch "1"', "Bad directive or wrong number of arguments"),
        ("port 1\n# two\n", ["--hz", "9", "--port", "x y"], 5, 'port "x y"', "Invalid port"),
        ("logfile 'x\n", [], 1, "logfile 'x", "Unbalanced quotes in configuration line"),
        ("daemonize maybe\n", [], 1, "daemonize maybe", "argument must be 'yes' or 'no'"),
        (
            "include gone.conf\n",
            [],
            1,
            "include gone.conf",
            "Can't open the included file 'gone.conf': No such file or directory",
        ),
    ],
)
def test_a_line_that_cannot_be_used_stops_the_start(
    tmp_path: Path, config: str, arguments: list[str], line: int, shown: str, message: str
) -> None:
    (tmp_path / "disque.conf").write_text(config)
    outcome = run_server(tmp_path, *(["disque.conf"] if config else []), *arguments)
    assert outcome.status == 1
    assert outcome.err == (
        f"\n*** FATAL CONFIG FILE ERROR ***\nReading the configuration file, at line {line}\n>>> '{shown}'\n{message}\n"
    )


def test_a_line_of_an_included_file_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "disque.conf").write_text("include more.conf\n")
    (tmp_path / "more.conf").write_text("hz 10\nhz x\n")
    outcome = run_server(tmp_path, "disque.conf")
    assert outcome.status == 1
    assert "at line 2 of 'more.conf'\n>>> 'hz x'\n" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["gone.conf"], "Fatal error, can't open config file 'gone.conf': No such file or directory\n"),
        (["."], "Fatal error, can't open config file '.': Is a directory\n"),
        (["--dir", "gone"], "Can't chdir to 'gone': No such file or directory\n"),
        (["--logfile", "gone/log"], "Can't open the log file 'gone/log': No such file or directory\n"),
        (["--logfile", "."], "Can't open the log file '.': Is a directory\n"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(tmp_path: Path, arguments: list[str], text: str) -> None:
    outcome = run_server(tmp_path, *arguments)
    assert (outcome.status, outcome.out, outcome.err) == (1, "", text)


def test_a_configuration_file_without_permission_is_named(tmp_path: Path, plain_user: list[str]) -> None:
    (tmp_path / "disque.conf").touch(0o000)
    outcome = run_server(tmp_path, "disque.conf", launcher=plain_user)
    assert outcome.status == 1
    assert outcome.err == "Fatal error, can't open config file 'disque.conf': Permission denied\n"


def test_closed_standard_input_is_no_configuration(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "-", launcher=("sh", "-c", 'exec "$@" <&-', "sh"))
    assert outcome.status == 1
    assert outcome.err == "Fatal error, can't open config file '-': Bad file descriptor\n"


def test_a_removed_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    outcome = run_server(gone, launcher=("sh", "-c", f'rmdir "{gone}"; exec "$@"', "sh"))
    assert outcome.status == 1
    assert outcome.err.startswith("Cannot determine the working directory; it may have been removed:")


# --- questions to the program -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_is_one_line(tmp_path: Path, option: str) -> None:
    outcome = run_server(tmp_path, option)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("Disque server v=1.0-rc1 ")
    assert outcome.out.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_shows_the_usage_and_fails(tmp_path: Path, option: str) -> None:
    outcome = run_server(tmp_path, option)
    assert (outcome.status, outcome.out) == (1, "")
    usage = "Usage: disque-server [--nodes <number>] [config-file | -] [--directive value...]...\n"
    assert outcome.err.startswith(usage)


def test_memory_is_tested(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "--test-memory", "3")
    assert (outcome.status, outcome.out, outcome.err) == (0, "3 MB of memory passed the test.\n", "")


@pytest.mark.parametrize("amount", [[], ["much"], ["-1"], ["1", "2"]])
def test_a_memory_test_needs_a_number(tmp_path: Path, amount: list[str]) -> None:
    outcome = run_server(tmp_path, "--test-memory", *amount)
    assert (outcome.status, outcome.out) == (1, "")
    assert "--test-memory 1024" in outcome.err


@pytest.mark.parametrize("megabytes", ["1000", "99999999999999"])
def test_a_memory_test_of_more_than_there_is_fails(tmp_path: Path, megabytes: str) -> None:
    outcome = run_server(tmp_path, "--test-memory", megabytes, launcher=("prlimit", "--as=500000000"))
    assert outcome.status == 1
    assert outcome.err == f"There are not {megabytes} MB of free memory to test; try less.\n"
