"""The cluster configuration file on disk: locked for the life of the process, read once, written in place.

Two servers with one file would be one node twice, so the lock is taken before anything is read, and the file is never
replaced by another one, which would not be locked.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from disqued.membership.nodesconf import decode
from disqued.server.fatal import Fatal


class NodesFile:
    """The file at `path`, created if missing. Raises Fatal when it can not be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock(path)

    def load(self) -> tuple[bytes, bool] | None:
        """This node's ID and whether it is leaving; None when the file is empty. Raises Fatal."""
        text = self.path.read_text(encoding="utf-8", errors="replace")
        if not text.strip():
            return None
        try:
            return decode(text)
        except ValueError as error:
            raise Fatal(
                f"Unrecoverable error: corrupted cluster config file {self.path}, {error}. "
                "Repair it, or remove it to start as a new node."
            ) from error

    def save(self, text: str, *, sync: bool) -> None:
        """Replace the contents, down to the disk if `sync`. Raises OSError."""
        with self.path.open("r+b") as file:
            file.write(text.encode())
            file.truncate()
            file.flush()
            if sync:
                os.fsync(file.fileno())

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._lock)


def _lock(path: Path) -> int:
    """Create the file if missing and lock it; returns the descriptor that holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Fatal(f"Can't open the cluster config file {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            raise Fatal(f"Can't lock the cluster config file {path}: {error.strerror}") from error
        raise Fatal(
            f"The cluster config file {path} is in use by another server. "
            "Give each server a file of its own, with cluster-config-file or dir."
        ) from error
    return descriptor
