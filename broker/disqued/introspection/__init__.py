"""Shows jobs and queues.

Commands that only read belong here. No command of this room changes a job, a queue or a counter, or creates a queue.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.introspection import jscan, qlen, qpeek, qscan, qstat, show

SUBSYSTEM = Subsystem(
    "introspection",
    commands=(show.COMMAND, qlen.COMMAND, qpeek.COMMAND, qstat.COMMAND, qscan.COMMAND, jscan.COMMAND),
)
