"""Moves the jobs of a leaving node to the nodes that stay."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.leaving.metrics import METRICS
from disqued.leaving.room import NAME, LeavingRoom, info

SUBSYSTEM = Subsystem(NAME, LeavingRoom, info=info, metrics=METRICS)
