"""Forgets finished jobs, here and wherever else they may be."""

from disqued.acks import ackjob, deljob, fastack
from disqued.core.subsystem import Subsystem

SUBSYSTEM = Subsystem("acks", (ackjob.COMMAND, fastack.COMMAND, deljob.COMMAND))
