"""Forgets finished jobs, here and wherever else they may be."""

from disqued.acks import ackjob, deljob, fastack, gotack, setack
from disqued.acks.figures import figures
from disqued.acks.metrics import METRICS
from disqued.acks.room import NAME, AcksRoom
from disqued.core.runtime.subsystem import Subsystem

SUBSYSTEM = Subsystem(
    NAME,
    AcksRoom,
    (ackjob.COMMAND, fastack.COMMAND, deljob.COMMAND),
    (setack.MESSAGE, gotack.MESSAGE, deljob.MESSAGE),
    info=figures,
    metrics=METRICS,
)
