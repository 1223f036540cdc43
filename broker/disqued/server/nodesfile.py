"""The cluster configuration file on disk: locked for the life of the process, read once, written through the host."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class NodesFileError(Exception):
    """The file can not be used; the text says why and what to do."""


def lock(path: Path) -> int:
    """Create the file if missing and lock it; returns the descriptor to keep open."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise NodesFileError(f"Can't open {path} in order to acquire a lock: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise NodesFileError(
            f"Sorry, the cluster configuration file {path} is already used by a different Disque node. "
            "Please make sure that different nodes use different cluster configuration files."
        ) from error
    return descriptor
