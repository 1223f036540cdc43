"""The file with the settings of queues, on a real disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from compat.replay import Client
from compat.wire import Status
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.refusing import run_server

Connect: TypeAlias = Callable[[ServerProcess], Client]


def test_settings_survive_a_kill_right_after_the_reply(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        client = connect(server)
        for number in range(20):
            assert client.call(b"QCONF", b"mail:*", b"SET", b"ttl", b"%d" % (number + 1)) == Status(b"OK")
        server.kill()
    assert (tmp_path / "queues.conf").stat().st_mode & 0o077 == 0
    with ServerProcess(tmp_path) as server:
        rows = connect(server).call(b"QCONF", b"*", b"SHOW")
        assert isinstance(rows, list)
        (row,) = rows
        assert isinstance(row, list)
        assert row[:3] == [b"mail:*", b"ttl", b"20"]


def test_damaged_file_stops_the_start_and_is_left_as_it_is(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path) as server:
        connect(server).call(b"QCONF", b"mail", b"SET", b"ttl", b"60")
    path = tmp_path / "queues.conf"
    damaged = path.read_bytes().replace(b'"60"', b'"61"')
    path.write_bytes(damaged)
    outcome = run_server(tmp_path, "--port", str(free_port()))
    assert outcome.status == 1
    assert "Unrecoverable error: corrupted settings file queues.conf, line 3: " in outcome.out
    assert path.read_bytes() == damaged


def test_file_can_have_another_name(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, "--cluster-settings-file", "other.conf") as server:
        connect(server).call(b"QCONF", b"mail", b"SET", b"ttl", b"60")
    assert (tmp_path / "other.conf").exists()
    assert not (tmp_path / "queues.conf").exists()
    outcome = run_server(tmp_path, "--port", str(free_port()), "--cluster-settings-file", "sub/other.conf")
    assert outcome.status == 1
    assert "cluster-settings-file can't be a path" in outcome.err
