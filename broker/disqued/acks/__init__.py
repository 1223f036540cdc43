"""Forgets finished jobs, here and wherever else they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.acks import ackjob, deljob, fastack, gotack, setack, setrec
from disqued.acks.counters import COUNTERS
from disqued.acks.room import NAME, AcksRoom
from disqued.core.runtime.subsystem import Subsystem

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    return [("acked_jobs", state.lifecycle.acked_jobs)]


SUBSYSTEM = Subsystem(
    NAME,
    AcksRoom,
    commands=(ackjob.COMMAND, fastack.COMMAND, deljob.COMMAND),
    messages=(
        setack.MESSAGE,
        gotack.MESSAGE,
        deljob.MESSAGE,
        setack.LIST,
        gotack.LIST,
        deljob.LIST,
        setrec.MESSAGE,
    ),
    counters=COUNTERS,
    info=_info,
)
