"""`disque-check-aof --for-original FILE OUT`: writes a file that the original loads.

FILE is only read. OUT appears when it is complete and synced, and never replaces a file. Memory does not depend on the
size of the file.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import BinaryIO

from disqued.cli.aoffile import walk
from disqued.cli.exits import Exit
from disqued.persistence.check import fault_of, unknown_format
from disqued.persistence.fororiginal import Conversion
from disqued.persistence.parse import Damage


class _CannotConvert(Exception):
    """The file cannot be converted; the text says why and what to do."""


def convert_file(source: str, target: str) -> Exit:
    """Write a file for the original, print what was left out, and return the exit status."""
    conversion = Conversion()
    try:
        with open(source, "rb") as file:  # noqa: PTH123  a path as the user gave it
            _convert(file, Path(target), conversion)
    except _CannotConvert as error:
        return _end(str(error), Exit.REFUSED)
    except FileExistsError:
        return _end(f"{target} exists: name a new file", Exit.REFUSED)
    except OSError as error:
        return _end(f"Cannot convert {source}: {error.strerror} ({error.filename or target})", Exit.REFUSED)
    for line in conversion.report():
        sys.stdout.write(line + "\n")
    return _end(f"Written to {target}. {source} was not changed.", Exit.OK)


def _end(text: str, status: Exit) -> Exit:
    sys.stdout.write(text + "\n")
    return status


def _convert(file: BinaryIO, target: Path, conversion: Conversion) -> None:
    """Write the file under another name, then give it its name if no file has it."""
    if os.path.lexists(target):
        raise FileExistsError
    before = os.fstat(file.fileno())
    new = target.with_name(f"{target.name}.new-{os.getpid()}")
    try:
        with open(new, "xb") as out:  # noqa: PTH123  as above
            os.fchmod(out.fileno(), before.st_mode & 0o7777)
            with contextlib.suppress(PermissionError):  # only root can change the owner of a file
                os.fchown(out.fileno(), before.st_uid, before.st_gid)
            _write(file, before.st_size, out, conversion)
            out.flush()
            os.fsync(out.fileno())
        if os.fstat(file.fileno()).st_mtime_ns != before.st_mtime_ns:
            raise _CannotConvert("The file has changed: stop the server that writes to it. Nothing was written.")
        _name(new, target)
    finally:
        new.unlink(missing_ok=True)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(file: BinaryIO, size: int, out: BinaryIO, conversion: Conversion) -> None:
    for item in walk(file, size):
        refused = unknown_format(item)
        if refused:
            raise _CannotConvert(
                f"Cannot convert the file: {refused}. Use the disque-check-aof of the release that wrote it."
            )
        fault = fault_of(item)
        if fault is not None or isinstance(item, Damage):
            raise _CannotConvert(_damaged(fault))
        out.write(conversion.record(item))


def _damaged(fault: Damage | None) -> str:
    assert fault is not None  # damage is a fault
    return f"The file is damaged at byte {fault.offset}: {fault.why}. Repair it first, with disque-check-aof --fix."


def _name(new: Path, target: Path) -> None:
    """Give the file its name. Raises FileExistsError."""
    try:
        os.link(new, target)
    except FileExistsError:
        raise
    except OSError:  # this file system has no hard links
        if os.path.lexists(target):
            raise FileExistsError from None
        new.rename(target)
