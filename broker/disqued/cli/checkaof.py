"""The command `disque-check-aof`: checks an append-only file, repairs it with `--fix`, or converts it for the original.

Texts and exit statuses are those of the original's tool. The original checks only the framing; this tool also decodes
the jobs, verifies their checksums, and finds the records after a damaged part. `--fix` truncates an incomplete end, as
in the original. In all other cases it writes the valid records to a new file, which replaces the damaged one, and keeps
the damaged one under another name. For `--for-original` see `cli.fororiginal`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from disqued.cli.exits import Exit, guarded

if TYPE_CHECKING:
    from disqued.persistence.check import Check

USAGE = "Usage: disque-check-aof [--fix] <file.aof>"
USAGE_CONVERT = "       disque-check-aof --for-original <file.aof> <new file.aof>"
MAX_SHOWN = 100
"""How many damaged parts are listed."""
COPY_BYTES = 1 << 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-check-aof` with these arguments (default: those of the process) and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: run(words), {})


def run(words: Sequence[str]) -> Exit:
    """Like `main`, but raises exceptions for errors."""
    match list(words):
        case []:
            return _end(f"{USAGE}\n{USAGE_CONVERT}")
        case [path]:
            return check_file(path, fix=False)
        case ["--fix", path]:
            return check_file(path, fix=True)
        case ["--for-original", source, target]:
            from disqued.cli.fororiginal import convert_file  # noqa: PLC0415  imports parts of the broker

            return convert_file(source, target)
        case [word, _]:
            return _end(f"Invalid argument: {word}")
        case _:
            return _end("Invalid arguments")


def _end(text: str, status: Exit = Exit.REFUSED) -> Exit:
    sys.stdout.write(text + "\n")
    return status


def check_file(path: str, *, fix: bool) -> Exit:
    """Check one file, and repair it with `fix` if the user agrees."""
    try:
        file = open(path, "r+b" if fix else "rb")  # noqa: SIM115, PTH123  closed below; only the open may fail with this error
    except OSError:
        return _end(f"Cannot open file: {path}")
    with file:
        before = os.fstat(file.fileno())
        if before.st_size == 0:
            return _end(f"Empty file: {path}")
        check = _check(file, before.st_size)
        if check.refused:
            return _end(
                f"Cannot check the file: {check.refused}. Use the disque-check-aof of the release that wrote it."
            )
        _report(file, before.st_size, check)
        if not check.faults:
            return _end("AOF is valid", Exit.OK)
        if not fix:
            return _end("AOF is not valid")
        return _Repair(Path(path), file, before, check).run()


def _check(file: BinaryIO, size: int) -> Check:
    from disqued.cli.aoffile import walk  # noqa: PLC0415  imports parts of the broker
    from disqued.persistence.check import Check  # noqa: PLC0415  the same

    check = Check()
    for item in walk(file, size):
        check.take(item)
    return check


def _report(file: BinaryIO, size: int, check: Check) -> None:
    """Print the result of the check."""
    from disqued.persistence.check import framing_fault  # noqa: PLC0415  imports parts of the broker

    say = sys.stdout.write
    faults = check.faults
    alone = len(faults) == 1 and faults[0].end == size
    if not alone:
        for fault in faults[:MAX_SHOWN]:
            say(f"Damage from byte {fault.offset} to {fault.end}, {fault.end - fault.offset} bytes: {fault.why}\n")
        if len(faults) > MAX_SHOWN:
            say(f"... and {len(faults) - MAX_SHOWN} more\n")
    if faults:
        text = framing_fault(lambda offset, count: os.pread(file.fileno(), count, offset), check.ok_up_to, size)
        if text or alone:
            say((text or f"0x{check.ok_up_to:16x}: {faults[0].why}") + "\n")
    say(f"Records: {check.records} valid, {check.jobs} of them jobs, {check.sums} with a correct checksum\n")
    say(f"AOF analyzed: size={size}, ok_up_to={check.ok_up_to}, diff={size - check.ok_up_to}\n")


class _Repair:
    """Repairs one file."""

    def __init__(self, path: Path, file: BinaryIO, before: os.stat_result, check: Check) -> None:
        self._path = path.resolve()  # a symbolic link stays a link
        self._file = file
        self._before = before
        self._check = check
        self._kept = self._path.with_name(f"{self._path.name}.damaged-{int(time.time())}")

    def run(self) -> Exit:
        size = self._before.st_size
        parts = self._check.sound_parts()
        left = sum(end - begin for begin, end in parts)
        torn = self._check.is_torn_only
        cut_off = torn or parts in ([], [(0, left)])
        if cut_off:
            text = f"This will shrink the AOF from {size} bytes, with {size - left} bytes, to {left} bytes"
        else:
            text = f"This will rewrite the AOF without {size - left} of its {size} bytes, which are damaged"
        sys.stdout.write(text + "\n")
        if not torn:
            sys.stdout.write(f"The current file will be kept as {self._kept.name}\n")
        sys.stdout.write("Continue? [y/N]: ")
        sys.stdout.flush()
        if sys.stdin.readline()[:1].lower() != "y":
            return _end("Aborting...")
        if self._has_changed():
            return _end("The file has changed: stop the server that writes to it. The file was not repaired.")
        try:
            if torn:
                self._file.truncate(left)
                os.fsync(self._file.fileno())
            else:
                self._rewrite(parts)
        except OSError as error:
            return _end(f"Failed to {'truncate' if cut_off else 'repair'} AOF: {error.strerror}")
        return _end(f"Successfully {'truncated' if cut_off else 'repaired'} AOF", Exit.OK)

    def _has_changed(self) -> bool:
        now = self._path.stat()
        before = self._before
        return (now.st_ino, now.st_size, now.st_mtime_ns) != (before.st_ino, before.st_size, before.st_mtime_ns)

    def _rewrite(self, parts: list[tuple[int, int]]) -> None:
        """Replace the damaged file with a new one that has only these parts; one of the two always has the name."""
        path = self._path
        new = path.with_name(f"{path.name}.new-{os.getpid()}")
        try:
            with open(new, "xb") as file:  # noqa: PTH123  as below
                os.fchmod(file.fileno(), self._before.st_mode & 0o7777)
                with contextlib.suppress(PermissionError):  # only root can change the owner of a file
                    os.fchown(file.fileno(), self._before.st_uid, self._before.st_gid)
                for begin, end in parts:
                    self._copy(begin, end, file)
                file.flush()
                os.fsync(file.fileno())
            self._keep()
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _keep(self) -> None:
        """Keep the damaged file under a second name."""
        try:
            os.link(self._path, self._kept)
        except FileExistsError:
            raise
        except OSError:  # this file system has no hard links
            shutil.copy2(self._path, self._kept)

    def _copy(self, begin: int, end: int, file: BinaryIO) -> None:
        self._file.seek(begin)
        while begin < end:
            chunk = self._file.read(min(COPY_BYTES, end - begin))
            if not chunk:
                raise OSError(errno.EIO, "the file became shorter")
            file.write(chunk)
            begin += len(chunk)


if __name__ == "__main__":
    sys.exit(main())
