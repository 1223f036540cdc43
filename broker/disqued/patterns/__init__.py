"""Patterns of queues that clients wait for (GETJOB FROMPATTERN), told to the other nodes, which name their queues.

The patterns themselves are in `core.queues.patterns`. Jobs then move as for a client that waits for the queue.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.patterns import patterns, queuename
from disqued.patterns.room import NAME, PatternsRoom

SUBSYSTEM = Subsystem(NAME, PatternsRoom, messages=(patterns.MESSAGE, queuename.MESSAGE))
