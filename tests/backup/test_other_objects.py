"""A store that also has objects of others: they are neither backups nor deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from disqued.backup.errors import BackupError
from disqued.backup.manifest import LATEST, MANIFEST, Manifest, load
from disqued.backup.retention import DAY_S, Retention, prune, unfinished
from disqued.backup.store import Store

COPY = "a" * 40 + ".aof"
NOW_S = 1_800_000_000.0


def write(root: Path, path: str, data: bytes = b"") -> Path:
    """Write an object to a directory, as if ten days ago."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    os.utime(file, (NOW_S - 10 * DAY_S,) * 2)
    return file


def complete(root: Path, name: str, *, days_ago: float) -> Path:
    manifest = Manifest(name, "mails", "nightly", NOW_S - days_ago * DAY_S, 0.0, "1", 0)
    write(root, f"{name}/{COPY}")
    return write(root, f"{name}/{MANIFEST}", manifest.encode())


@pytest.mark.parametrize(
    "make",
    [
        lambda root: complete(root / "other", "old", days_ago=10),
        lambda root: write(root, f"other/interrupted/{COPY}"),
        lambda root: write(root, "photos/2026/one.jpg"),
        lambda root: write(root, "photos/one.jpg"),
        lambda root: write(root, "note.txt"),
    ],
    ids=["backup-of-a-store-below", "incomplete-backup-of-a-store-below", "folder", "file-in-a-folder", "file"],
)
def test_objects_of_others_are_not_deleted(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    found = make(tmp_path)
    complete(tmp_path, "new", days_ago=0)
    assert prune(Store(str(tmp_path)), "mails", "nightly", Retention(days=1), NOW_S) == []
    assert found.exists()


def test_incomplete_backup_is_deleted_after_a_day(tmp_path: Path) -> None:
    found = write(tmp_path, f"interrupted/{COPY}")
    store = Store(str(tmp_path))
    assert [*unfinished(store.objects())] == ["interrupted"]
    assert prune(store, "mails", "nightly", Retention(days=1), NOW_S) == ["interrupted"]
    assert not found.parent.exists()


def test_expired_backup_leaves_a_store_below_it(tmp_path: Path) -> None:
    complete(tmp_path, "old", days_ago=10)
    complete(tmp_path, "new", days_ago=0)
    below = complete(tmp_path / "old", "other", days_ago=10)
    assert prune(Store(str(tmp_path)), "mails", "nightly", Retention(days=1), NOW_S) == ["old"]
    assert below.exists()
    assert not (tmp_path / "old" / MANIFEST).exists()


def test_latest_is_not_a_backup_of_a_store_below(tmp_path: Path) -> None:
    complete(tmp_path / "other", "theirs", days_ago=0)
    with pytest.raises(BackupError, match="has no complete backup"):
        load(Store(str(tmp_path)), LATEST)
    complete(tmp_path, "ours", days_ago=5)
    assert load(Store(str(tmp_path)), LATEST).name == "ours"
