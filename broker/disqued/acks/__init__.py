"""Forgets finished jobs, here and wherever else they may be."""

from disqued.acks import ackjob, deljob, fastack, gc, gotack, setack
from disqued.acks.figures import figures
from disqued.acks.metrics import METRICS
from disqued.core.runtime.subsystem import Subsystem

SUBSYSTEM = Subsystem(
    "acks",
    (ackjob.COMMAND, fastack.COMMAND, deljob.COMMAND),
    (setack.MESSAGE, gotack.MESSAGE, deljob.MESSAGE),
    cron=gc.visit,
    info=figures,
    metrics=METRICS,
)
