"""`kubectl disque pause | resume | hibernate | wake NAME`: switches of the spec."""

from __future__ import annotations

import argparse
import sys

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import has_seen_spec, is_ready, status
from disque_operator.kubectl.waiting import Done, wait, wait_options


def _is_paused(cluster: Json) -> bool:
    return status(cluster).get("phase") == "Paused"


def _goes_on(cluster: Json) -> bool:
    return not _is_paused(cluster)


def _hibernates(cluster: Json) -> bool:
    return status(cluster).get("phase") == "Hibernated"


SWITCHES: dict[str, tuple[str, bool, Done, str]] = {
    "pause": ("paused", True, _is_paused, "is paused: the operator looks on and does nothing"),
    "resume": ("paused", False, _goes_on, "is looked after again"),
    "hibernate": ("hibernate", True, _hibernates, "is stopped, with its jobs on its volumes"),
    "wake": ("hibernate", False, is_ready, "serves again"),
}
"""The field of the spec, its value, what the status shows when that is done, and what is said then."""


def options(parser: argparse.ArgumentParser) -> None:
    """Their arguments."""
    parser.add_argument("name", help="the cluster")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Set the switch and wait for its effect."""
    field, value, done, sentence = SWITCHES[chosen.command]
    kubectl.patch(chosen.name, {"spec": {field: value}})
    if not chosen.wait:
        sys.stdout.write(f"{chosen.name}: {chosen.command} is asked for\n")
        return Exit.OK
    wait(kubectl, chosen.name, lambda cluster: has_seen_spec(cluster) and done(cluster), chosen.timeout_s)
    sys.stdout.write(f"{chosen.name} {sentence}\n")
    return Exit.OK
