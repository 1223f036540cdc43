"""Moves queued jobs to the nodes whose clients wait for them."""

from disqued.core.subsystem import Subsystem

SUBSYSTEM = Subsystem("federation")
