"""Temporary files of interrupted rewrites, found when a server starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from disqued.server.leftovers import remove_leftovers
from disqued.testing.ports import free_port
from server.refusing import run_server


def test_leftovers_of_ended_processes_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    kept = [
        f"temp-rewriteaof-bg-{os.getppid()}.aof",
        "temp-rewriteaof-bg-.aof",
        "temp-rewriteaof-mine.aof",
        "disque.aof",
    ]
    removed = [
        f"temp-rewriteaof-bg-{process.pid}.aof",
        f"temp-rewriteaof-{process.pid}.aof",
        f"temp-rewriteaof-bg-{os.getpid()}.aof",  # of a process that had our number: in containers all have the same
        "temp-rewriteaof-bg-999999999999.aof",
        "temp-rewriteaof-bg-0.aof",
    ]
    for name in kept + removed:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_server_starts_when_a_leftover_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "temp-rewriteaof-bg-0.aof").mkdir()
    remove_leftovers(tmp_path)
    assert (tmp_path / "temp-rewriteaof-bg-0.aof").exists()


def test_server_does_not_start_with_half_a_restore(tmp_path: Path) -> None:
    (tmp_path / "restore.unfinished").touch()
    (tmp_path / "disque.aof").write_bytes(b"")
    ended = run_server(tmp_path, "--port", str(free_port()), "--appendonly", "yes")
    assert ended.status == 1
    assert "The restore of a backup was interrupted" in ended.out + ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disque.aof", "restore.unfinished"]
