"""Persistence: turns changes into records of the append only file, and the file into jobs again.

The room sees files only through `core.disk`: it says what is to be written, and goes on. No system call is made here,
so that the simulator runs the same code on a disk that is slow, full or loses what was not synced.
"""

from __future__ import annotations

from typing import Final

from disqued.core.subsystem import Subsystem
from disqued.persistence.aof import cron
from disqued.persistence.bgrewriteaof import COMMAND as BGREWRITEAOF
from disqued.persistence.loadjob import COMMAND as LOADJOB
from disqued.persistence.metrics import METRICS

SUBSYSTEM: Final[Subsystem] = Subsystem("persistence", commands=(BGREWRITEAOF, LOADJOB), cron=cron, metrics=METRICS)
