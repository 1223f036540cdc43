"""`kubectl disque restart NAME`: a controlled restart of all nodes, one at a time, without lost or repeated jobs."""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import is_ready, now_utc
from disque_operator.kubectl.waiting import wait, wait_options


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Request the restart, and wait until each pod has been replaced."""
    former = _uids(kubectl, chosen.name)
    at = now_utc().isoformat(timespec="seconds")
    kubectl.patch(chosen.name, {"metadata": {"annotations": {names.RESTART_AT: at}}})
    if not chosen.wait:
        sys.stdout.write(f"restarting {chosen.name}\n")
        return Exit.OK

    def done(cluster: Json) -> bool:
        return is_ready(cluster) and not former & _uids(kubectl, chosen.name)

    wait(kubectl, chosen.name, done, chosen.timeout_s)
    sys.stdout.write(f"{chosen.name} restarted\n")
    return Exit.OK


def _uids(kubectl: Kubectl, name: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kubectl.pods(name)}
