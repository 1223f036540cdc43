"""Checks an ADDJOB and creates the job.

How copies are placed on other nodes belongs to replication, how the job is delivered to delivery.
"""

from disqued.admission import addjob
from disqued.admission.metrics import METRICS
from disqued.core.subsystem import Subsystem

SUBSYSTEM = Subsystem("admission", (addjob.COMMAND,), metrics=METRICS)
