"""Moves jobs to other queues: dead letters, MOVEJOB, REDRIVE."""

from disqued.core.runtime.subsystem import Subsystem
from disqued.moves import movejob, redrive
from disqued.moves.counters import COUNTERS
from disqued.moves.room import NAME, MovesRoom

SUBSYSTEM = Subsystem(
    NAME, MovesRoom, commands=(movejob.COMMAND, redrive.COMMAND), messages=(redrive.MESSAGE,), counters=COUNTERS
)
