"""The cluster configuration file on disk: locked for the life of the process, read once, written in place.

Two servers with one file would run the same node twice, so the lock is taken before anything is read, and the file is
never replaced by another one, which would not be locked. It is never empty or incomplete either, so a killed process
leaves a valid file: new text overwrites the old text in one write, padded with empty lines to the old length, and then
the file is truncated.

The first save of a process is synced, with the name of the file, before the node tells anyone its ID. Otherwise a power
loss could take the file and leave an append-only file, and the node would return as a new one with the jobs of another.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from disqued.membership.nodesconf import Saved, decode
from disqued.server.fatal import Fatal
from disqued.server.files import open_private, sync_directory


class NodesFile:
    """The file at `path`, created if missing.

    Raises:
        Fatal: it cannot be opened or locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock(path)
        self._lasting = False
        """Whether a power loss leaves the file, with the ID of this node."""

    def load(self) -> Saved | None:
        """The saved state of this node and the others; None if the file is empty.

        Raises:
            Fatal: the file is corrupted.
        """
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
        """Replace the contents, and sync them to disk if `sync` or if this is the first time.

        Raises:
            OSError: the file cannot be written.
        """
        data = text.encode()
        with self.path.open("r+b", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            padded = data.ljust(before, b"\n")
            if file.write(padded) < len(padded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            file.truncate(len(data))
            if sync or not self._lasting:
                os.fsync(file.fileno())
        if not self._lasting:
            sync_directory(self.path.parent)
            self._lasting = True

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def _lock(path: Path) -> int:
    """Create the file if missing and lock it; returns the descriptor that holds the lock."""
    try:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
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
            "Give each server its own file, with cluster-config-file or dir."
        ) from error
    return descriptor
