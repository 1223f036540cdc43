"""Removal of temporary files that interrupted rewrites and backups of the append-only file left."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from disqued.server import logs

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
