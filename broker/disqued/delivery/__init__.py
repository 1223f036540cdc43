"""Hands jobs to workers and puts the unfinished back in their queues.

Moving jobs between nodes belongs to federation, forgetting finished ones to acks.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.delivery import (
    claim,
    claimed,
    dequeue,
    enqueue,
    getjob,
    nack,
    pause,
    postpone,
    queued,
    willqueue,
    working,
)
from disqued.delivery.counters import COUNTERS, MEASURES
from disqued.delivery.metrics import QUEUE_METRICS
from disqued.delivery.room import NAME, DeliveryRoom

SUBSYSTEM = Subsystem(
    NAME,
    DeliveryRoom,
    (getjob.COMMAND, enqueue.COMMAND, nack.COMMAND, dequeue.COMMAND, working.COMMAND, pause.COMMAND),
    (
        enqueue.MESSAGE,
        queued.MESSAGE,
        willqueue.MESSAGE,
        working.MESSAGE,
        pause.MESSAGE,
        postpone.MESSAGE,
        claimed.MESSAGE,
    ),
    records=(pause.RECORD, postpone.RECORD, claim.RECORD),
    counters=COUNTERS,
    measures=MEASURES,
    queue_metrics=QUEUE_METRICS,
)
