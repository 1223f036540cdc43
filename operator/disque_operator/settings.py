"""Directives that change at run time: CONFIG SET where CONFIG GET differs from the spec.

Values are compared, not texts (`64mb` is `67108864`). A directive that is removed from the spec gets its default again.
The zone of a pod is known only when Kubernetes has chosen its node, and the external address only when its service has
one, so they are set on the running broker, and again after each restart. Directives that a broker does not report are
not compared. Neither is `maxclients` if the spec does not set it, because a broker lowers it by itself to the limit of
open files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.addresses import announced
from disque_operator.decisions import Decision, progress
from disque_operator.members import ClusterView
from disque_operator.resources import same, settings

_LOWERED_BY_BROKERS: Final = "maxclients"
_HOST_NAME: Final = "cluster-announce-hostname"
_ZONE: Final = "cluster-zone"
_EXTERNAL: Final = "cluster-announce-external"


def decide(view: ClusterView) -> Decision:
    """Decide which directives to set."""
    commands = tuple(_differences(view))
    return Decision(commands, (progress("Settings", "setting directives on brokers", "Applying"),) if commands else ())


def _differences(view: ClusterView) -> Iterator[Command]:
    spec = view.spec
    wanted = dict(settings(spec))
    if _LOWERED_BY_BROKERS not in spec.config:
        wanted.pop(_LOWERED_BY_BROKERS, None)
    for member, broker in view.loaded:
        if member.pod.terminating:
            continue
        own = {_HOST_NAME: names.pod_host(spec.name, spec.namespace, member.pod.ordinal)}
        if member.pod.zone:
            own[_ZONE] = member.pod.zone
        own[_EXTERNAL] = announced(view, member.pod)
        for name, value in {**wanted, **own}.items():
            present = broker.config.get(name)
            if present is not None and not same(name, value, present):
                why = f"{name} is {present!r} instead of {value!r}"
                yield Command(member.name, broker.node_id, ("CONFIG", "SET", name, value), why)
