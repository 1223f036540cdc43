"""Counts and deletes the jobs of a queue over the whole cluster: QCOUNT, QPURGE, and how nodes add up figures.

A job is counted by the node on which it waits (`core.jobs.phases`), so the sum over all nodes counts it once.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.counts import countask, counted, qcount, qpurge
from disqued.counts.counters import COUNTERS
from disqued.counts.room import NAME, CountsRoom

SUBSYSTEM = Subsystem(
    NAME,
    CountsRoom,
    commands=(qcount.COMMAND, qpurge.COMMAND),
    messages=(countask.MESSAGE, counted.MESSAGE),
    counters=COUNTERS,
)
