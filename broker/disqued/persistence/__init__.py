"""Persistence: turns changes into records of the append-only file, and the file into jobs again.

The room accesses files only through `core.host.disk`: it starts work and does not wait for it. It makes no system call,
so the simulator runs the same code on a disk that is slow, full or loses unsynced data.
"""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.subsystem import Subsystem
from disqued.persistence.backupcmd import COMMAND as BACKUP
from disqued.persistence.bgrewriteaof import COMMAND as BGREWRITEAOF
from disqued.persistence.counters import MEASURES
from disqued.persistence.loadjob import COMMAND as LOADJOB
from disqued.persistence.metrics import METRICS
from disqued.persistence.room import NAME, PersistenceRoom

SUBSYSTEM: Final[Subsystem] = Subsystem(
    NAME, PersistenceRoom, commands=(BACKUP, BGREWRITEAOF, LOADJOB), measures=MEASURES, metrics=METRICS
)
