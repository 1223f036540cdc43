"""Directives that change while a node runs: CONFIG SET where CONFIG GET says something else than the spec.

Compared are values, not texts (`64mb` is `67108864`). A directive that was taken out of the spec has its default back.
Not compared: what a node does not tell, and `maxclients` that nobody asked for, which a node lowers by itself where it
may not open as many files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.decisions import Decision, progress
from disque_operator.members import ClusterView
from disque_operator.resources import same, settings

_LOWERED_BY_NODES: Final = "maxclients"
_HOST_NAME: Final = "cluster-announce-hostname"


def decide(view: ClusterView) -> Decision:
    """What has to be set."""
    commands = tuple(_differences(view))
    return Decision(commands, (progress("Settings", "directives are set", "Healing"),) if commands else ())


def _differences(view: ClusterView) -> Iterator[Command]:
    spec = view.spec
    wanted = dict(settings(spec))
    if _LOWERED_BY_NODES not in spec.config:
        wanted.pop(_LOWERED_BY_NODES, None)
    for member, broker in view.loaded:
        if member.pod.terminating:
            continue
        host = names.pod_host(spec.name, spec.namespace, member.pod.ordinal)
        for name, value in {**wanted, _HOST_NAME: host}.items():
            there = broker.config.get(name)
            if there is not None and not same(name, value, there):
                why = f"{name} is {there!r} and is to be {value!r}"
                yield Command(member.name, broker.node_id, ("CONFIG", "SET", name, value), why)
