"""`kubectl disque scale NAME REPLICAS`: change the number of nodes."""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RequestRefusedError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import drain_condition, has_seen_spec, is_ready, status
from disque_operator.kubectl.waiting import wait, wait_options


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("replicas", type=int, help="desired number of nodes; to stop all nodes, use `hibernate`")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Change `spec.replicas`, and wait until the cluster has that size; show the progress of drains."""
    replicas: int = chosen.replicas
    size = "1 node" if replicas == 1 else f"{replicas} nodes"
    kubectl.patch(chosen.name, {"spec": {"replicas": replicas}})
    if not chosen.wait:
        sys.stdout.write(f"scaling {chosen.name} to {size}\n")
        return Exit.OK

    def done(cluster: Json) -> bool:
        drain = drain_condition(cluster)
        is_removed = not drain.pod or names.ordinal(drain.pod) >= replicas
        # A refusal for a pod that this size keeps is about something else: a drain for maintenance, now or earlier.
        if has_seen_spec(cluster) and drain.is_refused and is_removed:
            raise RequestRefusedError(drain.message)
        return is_ready(cluster) and status(cluster).get("replicas") == replicas

    wait(kubectl, chosen.name, done, chosen.timeout_s)
    sys.stdout.write(f"{chosen.name} scaled to {size}\n")
    return Exit.OK
