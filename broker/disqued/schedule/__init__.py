"""Schedules: jobs that the cluster adds at given times (SCHEDULE)."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.schedule import runs, schedule
from disqued.schedule.counters import COUNTERS
from disqued.schedule.metrics import METRICS
from disqued.schedule.room import NAME, ScheduleRoom

SUBSYSTEM = Subsystem(NAME, ScheduleRoom, (schedule.COMMAND,), (runs.MESSAGE,), counters=COUNTERS, metrics=METRICS)
