"""The files of the server: cluster configuration file, rewritten configuration, log."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from compat.wire import Failure, Status
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.conftest import Connect
from server.refusing import run_server

# --- cluster configuration file ---------------------------------------------------------------------------------------


def node_id(server: ServerProcess, connect: Connect) -> bytes:
    """The node ID that the server reports."""
    reply = connect(server).call(b"CLUSTER", b"MYID")
    assert isinstance(reply, bytes)
    return reply


def test_new_node_saves_its_id_and_keeps_it(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        first = node_id(server, connect)
        assert f"No cluster configuration found, I'm {first.decode()}" in server.log.read_text()
    line = (tmp_path / "nodes.conf").read_text()
    assert re.fullmatch(rf"{first.decode()} \S*:\d+ myself 0 0 connected\n", line)
    (tmp_path / "nodes.conf").write_text(line.replace("myself", "myself,leaving"))
    with ServerProcess(tmp_path) as server:
        assert node_id(server, connect) == first
        assert f"Node configuration loaded, I'm {first.decode()}" in server.log.read_text()
        assert connect(server).call(b"CLUSTER", b"LEAVING") == Status(b"yes")
        assert connect(server).call(b"CLUSTER", b"RESET", b"HARD") == Status(b"OK")
        second = node_id(server, connect)
        assert second != first
    with ServerProcess(tmp_path) as server:
        assert node_id(server, connect) == second


def test_files_with_data_are_private_and_existing_ones_become_so(tmp_path: Path, connect: Connect) -> None:
    names = ("nodes.conf", "disque.aof")
    old = os.umask(0o022)
    try:
        with ServerProcess(tmp_path, "--appendonly", "yes") as server:
            connect(server).call(b"ADDJOB", b"mail", b"body", b"0")
            connect(server).call(b"CONFIG", b"REWRITE")
        assert [(tmp_path / name).stat().st_mode & 0o777 for name in names] == [0o600] * 2
        for name, mode in zip(names, (0o664, 0o644), strict=True):
            (tmp_path / name).chmod(mode)
        with ServerProcess(tmp_path, "--appendonly", "yes") as server:
            connect(server).call(b"BGREWRITEAOF")
            assert server.stop() == 0
        assert [(tmp_path / name).stat().st_mode & 0o777 for name in names] == [0o600] * 2
        others = [path for path in tmp_path.iterdir() if path.name not in {*names, server.log.name}]
        assert all(path.stat().st_mode & 0o077 == 0 for path in others), others
    finally:
        os.umask(old)


def test_the_file_of_the_original_is_understood(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "cluster.conf").write_text(
        "vars nothing\n\n" + "ab" * 20 + " 127.0.0.1:17711 myself 0 0 connected\n\n\n"
    )
    with ServerProcess(tmp_path, "--cluster-config-file", "cluster.conf") as server:
        assert node_id(server, connect) == b"ab" * 20
    assert not (tmp_path / "nodes.conf").exists()


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"one two\n", "line 1: expected 6 words for a node, found 2"),
        (b"vars x\n\xff\xfe 127.0.0.1:1 myself 0 0 connected\n", "line 2: '\ufffd\ufffd' is no node ID"),
        (b"ab" * 20 + b" 127.0.0.1:1 noflags 0 0 connected\n", "no line has the flag 'myself'"),
    ],
)
def test_a_corrupted_file_stops_the_start(tmp_path: Path, contents: bytes, reason: str) -> None:
    path = tmp_path / "nodes.conf"
    path.write_bytes(contents)
    outcome = run_server(tmp_path, "--port", str(free_port()))
    assert outcome.status == 1
    assert f" # Unrecoverable error: corrupted cluster config file {path}, {reason}" in outcome.out
    assert path.read_bytes() == contents


def test_two_servers_with_one_file_are_refused(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        outcome = run_server(tmp_path, "--port", "0", "--unixsocket", "s")
        assert outcome.status == 1
        assert f" # The cluster config file {tmp_path / 'nodes.conf'} is in use by another server." in outcome.out
        assert not (tmp_path / "s").exists()
        assert connect(server).call(b"PING") == Status(b"PONG")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, plain_user: list[str]) -> None:
    arguments = ("--port", str(free_port()), "--cluster-config-file")
    outcome = run_server(tmp_path, *arguments, "gone/nodes.conf")
    assert outcome.status == 1
    path = tmp_path / "gone" / "nodes.conf"
    assert f" # Can't open the cluster config file {path}: No such file or directory\n" in outcome.out
    (tmp_path / "locked").touch(0o400)
    outcome = run_server(tmp_path, *arguments, "locked", launcher=plain_user)
    assert outcome.status == 1
    assert f" # Can't open the cluster config file {tmp_path / 'locked'}: Permission denied\n" in outcome.out


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "--port", str(free_port()), launcher=("prlimit", "--fsize=0"))
    assert outcome.status == 1
    assert f" # Can't write the cluster config file {tmp_path / 'nodes.conf'}: File too large\n" in outcome.out


# --- CONFIG REWRITE ---------------------------------------------------------------------------------------------------

BEFORE = b"""\
# Our broker. Gr\xfcn
port %d
BIND 127.0.0.1
# password below
requirepass "old \xe9"
maxmemory 1gb
maxmemory 2gb


include more.conf
rename-command DEBUG ""
nonsense-free comment below
"""


def test_config_rewrite_keeps_comments_and_order(tmp_path: Path, connect: Connect) -> None:
    port = free_port()
    path = tmp_path / "disque.conf"
    path.write_bytes(BEFORE.replace(b"nonsense-free", b"# nonsense-free") % port)
    path.chmod(0o640)
    (tmp_path / "more.conf").write_text("hz 50\n")
    with ServerProcess(tmp_path, "disque.conf", port=port, bare=True) as server:
        client = connect(server)
        assert client.call(b"AUTH", b"old \xe9") == Status(b"OK")
        assert client.call(b"CONFIG", b"SET", b"requirepass", b'new "\xff"') == Status(b"OK")
        client = connect(server)  # the login with the withdrawn password has ended
        assert client.call(b"AUTH", b'new "\xff"') == Status(b"OK")
        for name, value in ((b"maxmemory", b"3gb"), (b"timeout", b"300")):
            assert client.call(b"CONFIG", b"SET", name, value) == Status(b"OK")
        for _ in range(2):
            assert client.call(b"CONFIG", b"REWRITE") == Status(b"OK")
    directory = os.fsencode(tmp_path)
    assert path.read_bytes() == (
        b"# Our broker. Gr\xfcn\n"
        b"port %d\n"
        b"bind 127.0.0.1\n"
        b"# password below\n"
        b'requirepass "new \\"\\xff\\""\n'
        b"maxmemory 3gb\n"
        b"\n"
        b"include more.conf\n"
        b'rename-command DEBUG ""\n'
        b"# nonsense-free comment below\n"
        b"# Generated by CONFIG REWRITE\n"
        b"timeout 300\n"
        b"hz 50\n"
        b'dir "%b"\n' % (port, directory)
    )
    assert path.stat().st_mode & 0o777 == 0o640
    with ServerProcess(tmp_path, "disque.conf", port=port, bare=True) as server:
        client = connect(server)
        assert client.call(b"AUTH", b'new "\xff"') == Status(b"OK")
        assert client.call(b"CONFIG", b"GET", b"timeout") == [b"timeout", b"300"]


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "disque.conf").touch()
    (tmp_path / "link.conf").symlink_to("real/disque.conf")
    port = free_port()
    with ServerProcess(tmp_path, "link.conf", "--port", str(port), "--hz", "33", port=port, bare=True) as server:
        assert connect(server).call(b"CONFIG", b"REWRITE") == Status(b"OK")
    assert (tmp_path / "link.conf").is_symlink()
    assert "hz 33\n" in (tmp_path / "real" / "disque.conf").read_text()


def test_a_file_that_cannot_be_rewritten_is_left_alone(tmp_path: Path, connect: Connect, plain_user: list[str]) -> None:
    place = tmp_path / "etc"
    place.mkdir()
    (place / "disque.conf").write_text("hz 20\n")
    place.chmod(0o555)
    port = free_port()
    arguments = ("etc/disque.conf", "--port", str(port))
    with ServerProcess(tmp_path, *arguments, launcher=plain_user, port=port, bare=True) as server:
        client = connect(server)
        assert client.call(b"CONFIG", b"REWRITE") == Failure(b"ERR Rewriting config file: Permission denied")
        assert client.call(b"DEBUG", b"RESTART") == Failure(b"ERR Rewriting config file: Permission denied")
        assert client.call(b"PING") == Status(b"PONG")
        place.chmod(0o755)
        (place / "disque.conf").rename(place / "moved")
        assert client.call(b"CONFIG", b"REWRITE") == Failure(b"ERR Rewriting config file: No such file or directory")
    assert {path.name: path.read_text() for path in place.iterdir()} == {"moved": "hz 20\n"}


def test_without_a_file_there_is_nothing_to_rewrite(server: ServerProcess, connect: Connect) -> None:
    refused = Failure(b"ERR The server is running without a config file")
    assert connect(server).call(b"CONFIG", b"REWRITE") == refused


def test_the_directory_can_be_changed(server: ServerProcess, connect: Connect) -> None:
    client = connect(server)
    refused = client.call(b"CONFIG", b"SET", b"dir", b"gone")
    assert refused == Failure(b"ERR Changing directory: No such file or directory")
    (server.directory / "other").mkdir()
    assert client.call(b"CONFIG", b"SET", b"dir", b"other") == Status(b"OK")
    directory = os.fsencode(server.directory / "other")
    assert client.call(b"CONFIG", b"GET", b"dir") == [b"dir", directory]
    assert client.call(b"CLUSTER", b"SAVECONFIG") == Status(b"OK")
    assert list((server.directory / "other").iterdir()) == []


def test_a_directory_that_was_removed_has_no_name(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        client = connect(server)
        (tmp_path / "other").mkdir()
        assert client.call(b"CONFIG", b"SET", b"dir", b"other") == Status(b"OK")
        (tmp_path / "other").rmdir()
        assert client.call(b"CONFIG", b"GET", b"dir") == [b"dir", b""]


# --- log --------------------------------------------------------------------------------------------------------------


def test_the_log_has_one_line_for_each_event(server: ServerProcess, connect: Connect) -> None:
    assert connect(server).call(b"PING") == Status(b"PONG")
    line = rf"{server.process.pid}:P \d\d [A-Z][a-z]{{2}} \d\d:\d\d:\d\d\.\d{{3}} [.\-*#] .+"
    lines = server.log.read_text().splitlines()
    assert all(re.fullmatch(line, text) for text in lines), lines
    assert lines[-1].endswith(f" * The server is now ready to accept connections on port {server.port}")
    assert lines[-2].endswith(f" * Other nodes of the cluster reach this one on the bus port {server.port + 10000}")
    assert " * Server started, Disque version 1.0-rc1" in lines[-3]


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, "--logfile", "/dev/full") as server:
        assert connect(server).call(b"PING") == Status(b"PONG")
    assert server.process.returncode == 0
    assert server.log.read_text() == ""


def test_a_quiet_server_logs_warnings_only(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, "--loglevel", "warning") as server:
        assert connect(server).call(b"PING") == Status(b"PONG")
        assert server.log.read_text() == ""
    assert server.log.read_text().count(" # ") == 2


def test_server_runs_without_syslog(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, "--syslog-enabled", "yes", "--syslog-ident", "broker") as server:
        assert connect(server).call(b"PING") == Status(b"PONG")
