"""CONFIG SET dir with an append-only file."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from disqued.testing.processes import ServerProcess
from support.aofcontent import Content
from support.nodeclient import NodeClient

TIMEOUT_S = 30


def rewritten(client: NodeClient) -> bool:
    return b"aof_rewrite_in_progress:0" in client.call("INFO", "persistence")


def test_the_append_only_file_is_in_the_new_directory(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    with ServerProcess(old, "--appendonly", "yes") as server, contextlib.closing(NodeClient(server.port)) as client:
        first = client.call("ADDJOB", "q", "body", 0)
        assert client.call("CONFIG", "SET", "dir", str(new)) == b"OK"
        until = time.monotonic() + TIMEOUT_S
        while not rewritten(client) and time.monotonic() < until:
            time.sleep(0.01)
        second = client.call("ADDJOB", "q", "body", 0)
        assert set(Content((new / "disque.aof").read_bytes()).jobs) == {first, second}
        assert set(Content((old / "disque.aof").read_bytes()).jobs) == {first}
        assert [path.name for path in new.iterdir()] == ["disque.aof"]
