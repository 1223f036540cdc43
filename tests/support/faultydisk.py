"""A disk on which a test can inject faults: intercepts the system calls that the server makes for its files.

Before each call, a server of `ForkServer(faulty_disk=True)` reads the file `faults` in its directory, which a test
writes with `FaultyDisk`: for each kind of call an error to raise, or seconds to wait before the call. For each
completed sync the server appends a line to the file `synced`; `lose_power` removes what was not synced.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from disqued.server import files

CONTROL: Final = "faults"
SYNCED: Final = "synced"
WRITE: Final = "write"
SYNC: Final = "sync"
LOOK_S: Final = 0.01


class FaultyDisk:
    """Injects faults on the disk of one server, through its directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / CONTROL
        self._rules: dict[str, Any] = {}

    def _write(self) -> None:
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(self._rules))
        beside.replace(self._path)

    def fail(self, *calls: str, error: int = errno.EIO) -> None:
        """Make calls fail from now on."""
        self._rules.update({call: {"error": error} for call in calls})
        self._write()

    def slow(self, *calls: str, seconds: float) -> None:
        """Delay calls from now on; calls in progress are not affected."""
        self._rules.update({call: {"seconds": seconds} for call in calls})
        self._write()

    def hang(self, *calls: str) -> None:
        """Block calls until `repair`."""
        self.slow(*calls, seconds=1e9)

    def repair(self) -> None:
        """Remove all faults."""
        self._rules.clear()
        self._write()


def _rule(call: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(Path(CONTROL).read_text()).get(call, {})
    except FileNotFoundError:
        return {}
    return found


def _inject(call: str) -> None:
    """Wait as long as the test says, or fail."""
    rule = _rule(call)
    if "seconds" in rule:
        end_s = time.monotonic() + rule["seconds"]
        while time.monotonic() < end_s and _rule(call) == rule:
            time.sleep(LOOK_S)
        rule = _rule(call)
    if "error" in rule:
        raise OSError(rule["error"], os.strerror(rule["error"]))


class _FaultyCalls:
    """Stands in for `os` in `disqued.server.files`."""

    def __init__(self) -> None:
        self._synced = -1

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def writev(self, descriptor: int, data: Sequence[bytes]) -> int:
        _inject(WRITE)
        return os.writev(descriptor, data)

    def fdatasync(self, descriptor: int) -> None:
        """Sync, and record how much of which file; the line is short enough to be written atomically."""
        _inject(SYNC)
        began_s = time.monotonic()
        before = os.fstat(descriptor)
        os.fdatasync(descriptor)
        if self._synced < 0:
            self._synced = os.open(SYNCED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(self._synced, b"%d %d %.6f\n" % (before.st_ino, before.st_size, began_s))

    fsync = fdatasync


def install() -> None:
    """Intercept the file calls of the server, in this process and those that it forks."""
    calls = _FaultyCalls()
    vars(files).update(os=calls, sync_data=calls.fdatasync)


@dataclass(frozen=True)
class Synced:
    """How much of a file is certainly on disk."""

    size: int
    began_s: float
    """When the sync began, on the monotonic clock: everything answered before that had been written by then."""


def last_sync(path: Path) -> Synced:
    """The last sync of a file of such a server."""
    status = path.stat()
    found = Synced(0, 0.0)
    notes = path.parent / SYNCED
    for line in notes.read_text().splitlines() if notes.exists() else ():
        number, size, began_s = line.split()
        if int(number) == status.st_ino:
            found = Synced(min(int(size), status.st_size), float(began_s))
    return found


def lose_power(path: Path, chance: Random) -> Synced:
    """Do to a file what a power loss does: from a random point on, unsynced data is missing or zeros.

    Call it only after the server was killed. Returns what was synced.
    """
    synced = last_sync(path)
    data = path.read_bytes()
    left = chance.choice((synced.size, chance.randint(synced.size, len(data))))
    zeros = chance.choice((0, len(data) - left))
    path.write_bytes(data[:left] + bytes(zeros))
    return synced
