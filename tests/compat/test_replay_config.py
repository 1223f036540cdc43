"""CONFIG REWRITE writes the same file as the original, except for the port and the directory of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.normalise import RECORDED_DIRECTORY, RECORDED_PORT
from compat.recording import VECTORS
from compat.replay import Client
from compat.wire import Status
from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path


def test_rewriting_gives_the_recorded_file(tmp_path: Path) -> None:
    before = (VECTORS / "config" / "before-rewrite.conf").read_text()
    with ServerProcess(tmp_path, config=before) as server:
        client = Client(server)
        assert client.call(b"CONFIG", b"SET", b"aof-enqueue-jobs-once", b"yes") == Status(b"OK")
        assert client.call(b"CONFIG", b"REWRITE") == Status(b"OK")
        assert client.finish() == b""

    rewritten = (tmp_path / "disque.conf").read_bytes()
    ours = rewritten.replace(b"%d" % server.port, RECORDED_PORT).replace(str(tmp_path).encode(), RECORDED_DIRECTORY)
    assert ours == (VECTORS / "config" / "after-rewrite.conf").read_bytes()
