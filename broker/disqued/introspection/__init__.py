"""Answers questions about jobs and queues.

Whatever only looks belongs here. Nothing in this room changes a job, a queue or a counter, and nothing makes a queue
that is only asked about.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.introspection import jscan, qlen, qpeek, qscan, qstat, show

SUBSYSTEM = Subsystem(
    "introspection",
    commands=(show.COMMAND, qlen.COMMAND, qpeek.COMMAND, qstat.COMMAND, qscan.COMMAND, jscan.COMMAND),
)
