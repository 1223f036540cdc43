"""Checks an ADDJOB or ADDTO and creates the jobs.

The replication room places copies on other nodes, and the delivery room delivers the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.admission import addjob, addto, newid
from disqued.admission.counters import COUNTERS
from disqued.admission.metrics import METRICS
from disqued.admission.scheduled import AdmissionRoom
from disqued.core.runtime.subsystem import Subsystem

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    return [
        ("keys_remembered", int(state.lifecycle.keys.count)),
    ]


SUBSYSTEM = Subsystem(
    "admission",
    AdmissionRoom,
    (addjob.COMMAND, addto.COMMAND, newid.COMMAND),
    counters=COUNTERS,
    info=_info,
    metrics=METRICS,
)
