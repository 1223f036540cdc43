"""What interrupted programs left: temporary files of rewrites and backups are removed, half a restore is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from disqued.persistence.marker import UNFINISHED_RESTORE
from disqued.server import logs
from disqued.server.fatal import Fatal

_NAME: Final = re.compile(r"temp-rewriteaof-(?:bg-|marker-|backup-)?([0-9]{1,18})\.aof")


def remove_leftovers(directory: Path) -> None:
    """Remove temporary files of processes that have ended, and of an earlier one with this process ID."""
    for path in sorted(directory.glob("temp-rewriteaof-*.aof")):
        name = _NAME.fullmatch(path.name)
        if name is None or _is_alive(int(name[1])):
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logs.write("warning", f"Can't remove {path}, which an unfinished rewrite left: {error.strerror}")
        else:
            logs.write("notice", f"Removed {path.name}, which an unfinished rewrite of the append only file left")


def refuse_half_a_restore(directory: Path) -> None:
    """Raise Fatal if a restore of a backup to the directory was interrupted: jobs would be missing silently."""
    if (directory / UNFINISHED_RESTORE).exists():
        raise Fatal(
            f"The restore of a backup was interrupted: {directory} has the file {UNFINISHED_RESTORE}. "
            "Run disque-backup restore again, or empty the directory to start without the backup."
        )


def _is_alive(process_id: int) -> bool:
    """Whether another process has this ID."""
    if process_id in {0, os.getpid()}:
        return False
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
