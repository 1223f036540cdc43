"""Hands jobs to workers and puts the unfinished back in their queues.

Moving jobs between nodes belongs to federation, forgetting finished ones to acks.
"""

from disqued.core.subsystem import Subsystem
from disqued.delivery import dequeue, enqueue, getjob, nack, pause, working

SUBSYSTEM = Subsystem(
    "delivery",
    (getjob.COMMAND, enqueue.COMMAND, nack.COMMAND, dequeue.COMMAND, working.COMMAND, pause.COMMAND),
)
