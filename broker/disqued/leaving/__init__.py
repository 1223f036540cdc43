"""Hands the jobs of a leaving node to the nodes that stay."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.leaving.handoff import cron, info
from disqued.leaving.metrics import METRICS

SUBSYSTEM = Subsystem("leaving", cron=cron, info=info, metrics=METRICS)
