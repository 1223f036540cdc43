"""Knows what becomes of jobs: keeps records of finished jobs, and answers and asks other nodes about them."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.fates import jobask, jobtold, result, waitjob
from disqued.fates.counters import COUNTERS
from disqued.fates.metrics import METRICS
from disqued.fates.onfile import RECORDS
from disqued.fates.room import NAME, FatesRoom

SUBSYSTEM = Subsystem(
    NAME,
    FatesRoom,
    commands=(result.COMMAND, waitjob.COMMAND),
    messages=(jobask.MESSAGE, jobtold.MESSAGE),
    records=RECORDS,
    counters=COUNTERS,
    metrics=METRICS,
)
