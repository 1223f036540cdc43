"""`kubectl disque scale NAME REPLICAS`: another number of nodes."""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RefusedError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import drain_said, has_seen_spec, is_ready, status
from disque_operator.kubectl.waiting import wait, wait_options


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    parser.add_argument("replicas", type=int, help="how many nodes it is to have; `pause` and `hibernate` stop without")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Ask for it, and show how nodes come, or how their jobs go."""
    replicas: int = chosen.replicas
    kubectl.patch(chosen.name, {"spec": {"replicas": replicas}})
    if not chosen.wait:
        sys.stdout.write(f"{chosen.name}: {replicas} nodes are asked for\n")
        return Exit.OK

    def done(cluster: Json) -> bool:
        said = drain_said(cluster)
        # A pod that stays at this size was refused something else: a drain for maintenance, of now or just before.
        if has_seen_spec(cluster) and said.is_refused and (not said.pod or names.ordinal(said.pod) >= replicas):
            raise RefusedError(said.message)
        return is_ready(cluster) and status(cluster).get("replicas") == replicas

    wait(kubectl, chosen.name, done, chosen.timeout_s)
    sys.stdout.write(f"{chosen.name} has {replicas} nodes\n")
    return Exit.OK
