"""Counts the jobs of a queue over the whole cluster: QCOUNT, and the messages by which the nodes add up what they have.

A job is counted by the node on which it waits (`core.jobs.phases`), so the sum over all nodes counts it once.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.counts import countask, counted, qcount
from disqued.counts.room import NAME, CountsRoom

SUBSYSTEM = Subsystem(NAME, CountsRoom, commands=(qcount.COMMAND,), messages=(countask.MESSAGE, counted.MESSAGE))
