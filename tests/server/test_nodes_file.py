"""The cluster configuration file and a power loss: the ID of a node is on disk before anyone learns it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from disqued.server.nodesfile import NodesFile

LINE = "ab" * 20 + " :7711 myself 0 0 connected\n"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """What is synced: the inode, and the text of a file at that moment, which is empty for a directory."""
    calls: list[tuple[int, str]] = []
    really = os.fsync

    def sync(descriptor: int) -> None:
        really(descriptor)
        target = Path(f"/proc/self/fd/{descriptor}")
        calls.append((target.stat().st_ino, target.read_text() if target.is_file() else ""))

    monkeypatch.setattr(os, "fsync", sync)
    return calls


def test_the_first_save_is_synced_with_the_name_of_the_file(tmp_path: Path, synced: list[tuple[int, str]]) -> None:
    file = NodesFile(tmp_path / "nodes.conf")
    file.save(LINE, sync=False)
    assert synced == [(file.path.stat().st_ino, LINE), (tmp_path.stat().st_ino, "")]
    file.close()


def test_later_saves_are_synced_when_that_is_requested(tmp_path: Path, synced: list[tuple[int, str]]) -> None:
    file = NodesFile(tmp_path / "nodes.conf")
    file.save(LINE, sync=False)
    synced.clear()
    file.save(LINE, sync=False)
    assert synced == []
    file.save(LINE + "\n", sync=True)
    assert synced == [(file.path.stat().st_ino, LINE + "\n")]
    file.close()


def test_a_save_that_failed_is_not_taken_for_one_on_disk(
    tmp_path: Path, synced: list[tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    file = NodesFile(tmp_path / "nodes.conf")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output error"):
            file.save(LINE, sync=False)
    file.save(LINE, sync=False)
    assert len(synced) == 2
    file.close()
