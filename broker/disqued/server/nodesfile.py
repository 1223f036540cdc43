"""The cluster configuration file on disk: locked for the life of the process, read once, written in place.

Two servers with one file would be one node twice, so the lock is taken before anything is read, and the file is never
replaced by another one, which would not be locked. Nor is it ever empty or half a file while it is written, which a
killed process would leave behind: new text goes over the old one in one write, with empty lines up to the old length,
and is cut to its own length after that.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from disqued.membership.nodesconf import Saved, decode
from disqued.server.fatal import Fatal


class NodesFile:
    """The file at `path`, created if missing. Raises Fatal when it can not be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _lock(path)

    def load(self) -> Saved | None:
        """What was saved of this node and the others; None when the file is empty. Raises Fatal."""
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
        data = text.encode()
        with self.path.open("r+b", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            padded = data.ljust(before, b"\n")
            if file.write(padded) < len(padded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            file.truncate(len(data))
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
