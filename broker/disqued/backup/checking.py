"""Compares a backup in the store with its manifest, counts its jobs, and reads its settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from disqued.backup.errors import BackupError
from disqued.backup.merge import Merge, entries
from disqued.settings.file import decode

if TYPE_CHECKING:
    from disqued.backup.manifest import Manifest, MemberCopy, SettingsCopy
    from disqued.backup.store import Store


def count_jobs(store: Store, manifest: Manifest) -> int:
    """Read all copies, and return how many different jobs are unfinished. Raises BackupError if a copy is wrong."""
    settings_in(store, manifest)
    merge = Merge(int(manifest.started_at))
    for number, member in enumerate(manifest.members):
        path = manifest.path(member)
        merge.take(number, entries(verified(store, path, member), path), path)
    return merge.unfinished()


def settings_in(store: Store, manifest: Manifest) -> bytes:
    """The file with the settings of queues and the marks of purges; empty for a backup without one.

    Raises BackupError if it is wrong.
    """
    if manifest.settings is None:
        return b""
    path = manifest.path(manifest.settings)
    data = b"".join(verified(store, path, manifest.settings))
    try:
        decode(data)
    except ValueError as error:
        raise BackupError(f"{path} in {store.url} is damaged: {error}") from error
    return data


def verified(store: Store, path: str, copy: MemberCopy | SettingsCopy) -> Iterator[bytes]:
    """Yield a copy in parts; at its end, raise BackupError unless its size and checksum are those of the manifest."""
    size, sha256 = 0, hashlib.sha256()
    for part in store.read(path):
        size += len(part)
        sha256.update(part)
        yield part
    if (size, sha256.hexdigest()) != (copy.bytes, copy.sha256):
        raise BackupError(f"{path} in {store.url} is not what was written: its size or its SHA-256 differs")
