"""The bus: members protect it in the mode of the spec, or in the one on the way to it that all of them can connect to.

A running cluster changes its mode in steps. Each is a new pod template, and pods are replaced one at a time. The mode
of the template follows from the modes of the pods: it is the nearest one to the spec with which a new pod can connect
to every pod that exists. So a change may begin, end or turn back at any time.

| pods | the spec wants `yes` | the spec wants `no` |
|---|---|---|
| none | `yes` | `no` |
| all `no` | `optional` | `no` |
| `no` and `optional` | `optional` | `no` |
| all `optional` | `yes` | `no` |
| `optional` and `yes` | `yes` | `optional` |
| all `yes` | `yes` | `optional` |
"""

from __future__ import annotations

from dataclasses import dataclass

from disque_operator.busmode import BusMode
from disque_operator.decisions import NOTHING, Decision, problem, progress
from disque_operator.members import ClusterView


@dataclass(frozen=True)
class BusDecision:
    """The mode for new pods."""

    mode: BusMode
    decision: Decision = NOTHING
    possible: bool = True
    """False if pods need a certificate that the spec takes away, so that no pod must be created or replaced."""


def decide(view: ClusterView) -> BusDecision:
    """Decide the mode for new pods."""
    spec = view.spec
    wanted = BusMode("yes" if spec.tls.enabled and spec.tls.bus else "no")
    found = {member.pod.bus for member in view.members}
    mode = next(one for one in (wanted, BusMode("optional")) if all(map(one.connects, found)))
    needed = {mode.tls, *(one.tls for one in found)}
    if not spec.tls.enabled and needed != {"no"}:
        text = (
            "members use TLS between each other, for which they need the certificate: set tls.enabled: true and "
            "tls.bus: false until no pod is left to replace, then tls.enabled: false"
        )
        return BusDecision(mode, Decision(notes=(problem("BusEncrypted", text),)), possible=False)
    if mode == wanted:
        return BusDecision(mode)
    text = "members accept each other with and without TLS until all of them do"
    return BusDecision(mode, Decision(notes=(progress("BusMode", text, "Upgrading"),)))
