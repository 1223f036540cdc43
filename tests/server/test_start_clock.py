"""A node whose wall clock is behind its files starts with the time of the files, and says so."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from compat.wire import Failure, Status
from disqued.server.startclock import start_ms
from disqued.testing.processes import ServerProcess
from server.conftest import Connect

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file of an hour ago, one of now, and one that does not exist."""
    made = [tmp_path / "nodes.conf", tmp_path / "disque.aof"]
    for file, age_s in zip(made, (3600, 0), strict=True):
        file.touch()
        os.utime(file, (NOW_MS // 1000 - age_s,) * 2)
    return [*made, tmp_path / "missing"]


@pytest.mark.parametrize("ahead_ms", [0, 1, DAY_MS, -59_000])
def test_a_clock_that_is_not_clearly_behind_is_used(files: list[Path], ahead_ms: int) -> None:
    assert start_ms(NOW_MS + ahead_ms, files) == NOW_MS + ahead_ms
    assert start_ms(NOW_MS, ()) == NOW_MS


def test_the_time_of_the_latest_file_is_used_by_a_clock_that_is_behind(
    files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    assert start_ms(NOW_MS - 3 * DAY_MS, files) == NOW_MS
    line = caplog.text
    assert f"file={files[1]} changed=2027-01-15T08:00:00Z wall_clock=2027-01-12T08:00:00Z behind_s=259200" in line


def test_a_server_starts_with_the_time_of_its_files(tmp_path: Path, connect: Connect) -> None:
    with ServerProcess(tmp_path, "--appendonly", "yes") as server:
        assert isinstance(connect(server).call(b"ADDJOB", b"mail", b"body", b"0"), Status)
    later_s = int(time.time()) + 3 * 86_400
    os.utime(tmp_path / "disque.aof", (later_s, later_s))
    with ServerProcess(tmp_path, "--appendonly", "yes") as server:
        client = connect(server)
        while isinstance(client.call(b"QLEN", b"mail"), Failure):
            pass  # it loads its file
        job_id = client.call(b"ADDJOB", b"other", b"body", b"0", b"TTL", b"60")
        assert isinstance(job_id, Status)
        shown = client.call(b"SHOW", job_id.text)
        assert isinstance(shown, list)
        created_s = int(str(shown[shown.index(b"ctime") + 1])) // 1_000_000_000
        assert 0 <= created_s - later_s <= 60
        assert re.search(
            r"The wall clock is behind the files of this node: .*behind_s=2\d{5}\.", server.log.read_text()
        )
