"""The file operations of the append-only file, as system calls that block until the disk responds."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Final, TypeAlias

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork

IOV_MAX: Final = os.sysconf("SC_IOV_MAX")
"""How many pieces one write accepts."""
PRIVATE: Final = 0o600
"""The permissions of files with the data of clients."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""The file system has no hard links, or none for this file and this user."""
NO_DIRECTORY_SYNC: Final = (errno.EINVAL, errno.EBADF)
"""The file system syncs its directories itself."""
CLOSED: Final = -1
AHEAD: Final = bytes(256 << 10)
"""What is written behind the end of a file that is opened with `ahead`."""

FREED_BYTES: Final = 8 << 20
FREED_EVERY_S: Final = 0.002
"""A file that was replaced leaves the page cache in parts of this size, with a pause after each."""

sync_data: Final = getattr(os, "fdatasync", os.fsync)
"""Syncs without the timestamps of the file where the system supports it."""


def open_private(path: Path, flags: int) -> int:
    """Open a file that only its owner may use: permissions of others are removed, those of the owner stay."""
    descriptor = os.open(path, flags, PRIVATE)
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & ~stat.S_IRWXU:
        with contextlib.suppress(PermissionError):  # the file belongs to another user, who decides
            os.fchmod(descriptor, mode & stat.S_IRWXU)
    return descriptor


class OpenFile:
    """An open file, or the name of a file."""

    def __init__(self, name: str) -> None:
        self.path = Path(name).absolute()
        """Absolute, so it stays valid when the working directory changes."""
        self.descriptor = CLOSED
        self.new = False
        """Whether a power loss may lose its name, because the directory was not synced since."""
        self.surplus_from: int | None = None
        """The offset of the remains of a failed write; None if there are none."""
        self.ahead = False
        """Whether there may be zeros behind its end."""
        self.end = 0
        """Where a file with `ahead` ends."""
        self.zeros_to = 0
        """Up to where zeros follow."""

    @contextlib.contextmanager
    def borrow(self) -> Iterator[int]:
        """A descriptor. A file that is not open is opened while the context lasts."""
        if self.descriptor != CLOSED:
            yield self.descriptor
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        descriptor, self.descriptor = self.descriptor, CLOSED
        if descriptor != CLOSED:
            if self.ahead:
                with contextlib.suppress(OSError):  # zeros do no harm
                    os.ftruncate(descriptor, self.end)
                self.ahead = False
            os.close(descriptor)

    def cut_surplus(self, descriptor: int) -> None:
        """Remove the remains of a failed write."""
        if self.surplus_from is not None:
            os.ftruncate(descriptor, self.surplus_from)
            self.zeros_to = self.surplus_from
            self.surplus_from = None

    def sync_name(self) -> None:
        """Make sure that a power loss does not lose the name of the file."""
        if self.new:
            sync_directory(self.path.parent)
            self.new = False


def do(work: DiskWork, file: OpenFile, other: OpenFile | None) -> None:
    """Do work on a file and record its error; `other` is the file to replace."""
    try:
        if other is not None:
            replace(file, other, work.other)
        else:
            ACTIONS[work.verb](work, file)
    except OSError as error:
        work.error = error.strerror or str(error)
        work.full = error.errno in FULL
        work.missing = error.errno == errno.ENOENT


def open_file(work: DiskWork, file: OpenFile) -> None:
    """OPEN."""
    if file.descriptor == CLOSED:
        file.path = Path(work.name).absolute()
        file.surplus_from = None
        flags = os.O_RDWR | os.O_CREAT if work.ahead else os.O_RDWR | os.O_CREAT | os.O_APPEND
        file.descriptor = open_private(file.path, flags)
        file.new = True  # it may have existed, but then syncing its directory again does no harm
        file.ahead = work.ahead
        file.end = file.zeros_to = os.fstat(file.descriptor).st_size
    work.size = file_bytes(file, file.descriptor)


def file_bytes(file: OpenFile, descriptor: int) -> int:
    """Where the file ends, without zeros behind that."""
    return file.end if file.ahead else os.fstat(descriptor).st_size


def append(work: DiskWork, file: OpenFile) -> None:
    """APPEND."""
    if file.descriptor == CLOSED:
        with file.borrow() as descriptor:
            write(work.data, file, descriptor)
    else:  # once per turn of the event loop: a context costs as much as the system call
        write(work.data, file, file.descriptor)


def write(waiting: list[bytes], file: OpenFile, descriptor: int) -> None:
    """Write all of the data at the end of the file, or nothing.

    A file with `ahead` gets zeros behind it when the last ones are used up. PostgreSQL fills its log files with zeros
    for the same reason: as size and blocks of the file stay the same, a sync writes data and no journal.
    """
    file.cut_surplus(descriptor)
    ahead = file.ahead
    size = sum(map(len, waiting))
    if ahead and file.end + size > file.zeros_to:
        waiting = [*waiting, AHEAD]
    written = 0
    try:
        while written < size:
            part = waiting[:IOV_MAX]
            count = os.pwritev(descriptor, part, file.end + written) if ahead else os.writev(descriptor, part)
            written += count
            waiting = behind(waiting, count)
    except OSError:
        if written:
            file.surplus_from = file.end if ahead else os.fstat(descriptor).st_size - written
            with contextlib.suppress(OSError):  # the next write tries again first
                file.cut_surplus(descriptor)
        raise
    if ahead:
        file.zeros_to = max(file.zeros_to, file.end + written)
        file.end += size


def behind(data: list[bytes], count: int) -> list[bytes]:
    """The rest of the pieces after `count` bytes are written."""
    for number, piece in enumerate(data):
        if count < len(piece):
            return [piece[count:], *data[number + 1 :]]
        count -= len(piece)
    return []


def sync(_work: DiskWork, file: OpenFile) -> None:
    """SYNC."""
    if file.descriptor == CLOSED:
        with file.borrow() as descriptor:
            sync_data(descriptor)
    else:
        sync_data(file.descriptor)
    file.sync_name()


def replace(file: OpenFile, other: OpenFile, name: str) -> None:
    """REPLACE: rename the file; work on the other file continues with this one."""
    with file.borrow() as descriptor:
        file.cut_surplus(descriptor)
        os.fsync(descriptor)
    path = file.path.with_name(name)
    file.path.replace(path)
    replaced, other.descriptor, file.descriptor = other.descriptor, file.descriptor, CLOSED
    other.path = path
    other.surplus_from = None
    other.new = True
    if replaced != CLOSED:  # freeing a large file is slow, and replies wait for this thread
        Thread(target=close_in_parts, args=(replaced,), daemon=True, name="close").start()
    other.sync_name()


def close_in_parts(descriptor: int) -> None:
    """Close a large file that was replaced.

    The kernel frees its pages in the cache then, and an event loop on the same core waits: 10 ms for 200 MB. So these
    leave the cache in parts before that. Other names and readers of the file keep their content.
    """
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):  # the file system refuses the advice
            for offset in range(0, os.fstat(descriptor).st_size, FREED_BYTES):
                os.posix_fadvise(descriptor, offset, FREED_BYTES, os.POSIX_FADV_DONTNEED)
                time.sleep(FREED_EVERY_S)
    os.close(descriptor)


def remove(_work: DiskWork, file: OpenFile) -> None:
    """REMOVE."""
    file.close()
    file.path.unlink(missing_ok=True)


def read(work: DiskWork, file: OpenFile) -> None:
    """READ. A file that is not open needs no write permission."""
    if file.descriptor != CLOSED:
        read_from(file.descriptor, work, file)
        return
    with file.path.open("rb") as opened:
        read_from(opened.fileno(), work, file)


def read_from(descriptor: int, work: DiskWork, file: OpenFile) -> None:
    """Read the requested range, or up to the end of the file."""
    left, offset = work.size, work.offset
    if file.ahead:
        left = min(left, file.end - offset)
    while left > 0 and (data := os.pread(descriptor, left, offset)):
        work.data.append(data)
        offset += len(data)
        left -= len(data)
    work.file_bytes = file_bytes(file, descriptor)


def truncate(work: DiskWork, file: OpenFile) -> None:
    """TRUNCATE."""
    with file.borrow() as descriptor:
        os.ftruncate(descriptor, work.size)
        file.surplus_from = None
        file.end = file.zeros_to = work.size
        os.fsync(descriptor)


def keep(work: DiskWork, file: OpenFile) -> None:
    """KEEP."""
    path = file.path.with_name(work.other)
    try:
        path.hardlink_to(file.path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        copy(file.path, path)
    sync_directory(path.parent)


def copy(source: Path, path: Path) -> None:
    """Copy a file to a new name. If the disk is full, no partial copy is left."""
    new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with source.open("rb") as original, os.fdopen(new, "wb") as other:
        try:
            shutil.copyfileobj(original, other)
            other.flush()
            os.fsync(other.fileno())
        except OSError:
            path.unlink()
            raise


def close(_work: DiskWork, file: OpenFile) -> None:
    """CLOSE."""
    file.close()


def list_names(work: DiskWork, file: OpenFile) -> None:
    """LIST."""
    prefix = file.path.name
    with os.scandir(file.path.parent) as entries:
        work.data = sorted(
            os.fsencode(entry.name) for entry in entries if entry.name.startswith(prefix) and entry.is_file()
        )


def sync_directory(path: Path) -> None:
    """Make sure that the names in a directory survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


Action: TypeAlias = Callable[[DiskWork, OpenFile], None]

ACTIONS: Final[dict[int, Action]] = {
    disk.OPEN: open_file,
    disk.APPEND: append,
    disk.SYNC: sync,
    disk.REMOVE: remove,
    disk.READ: read,
    disk.TRUNCATE: truncate,
    disk.KEEP: keep,
    disk.CLOSE: close,
    disk.LIST: list_names,
}
