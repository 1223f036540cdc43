"""`kubectl disque pause | resume | hibernate | wake NAME`: set a boolean field of the spec."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import has_seen_spec, is_ready, status
from disque_operator.kubectl.waiting import Done, wait, wait_options


def _is_paused(cluster: Json) -> bool:
    return status(cluster).get("phase") == "Paused"


def _is_resumed(cluster: Json) -> bool:
    return not _is_paused(cluster)


def _is_hibernated(cluster: Json) -> bool:
    return status(cluster).get("phase") == "Hibernated"


@dataclass(frozen=True)
class Switch:
    """A command: the field of the spec and its value, when the change is complete, and the messages."""

    field: str
    value: bool
    done: Done
    started: str
    finished: str


SWITCHES = {
    "pause": Switch("paused", True, _is_paused, "pausing {}", "{} paused; the operator makes no changes"),
    "resume": Switch("paused", False, _is_resumed, "resuming {}", "{} resumed"),
    "hibernate": Switch(
        "hibernate", True, _is_hibernated, "hibernating {}", "{} hibernated; its volumes keep its jobs"
    ),
    "wake": Switch("hibernate", False, is_ready, "waking {}", "{} is running again"),
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the commands."""
    parser.add_argument("name", help="name of the cluster")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Set the field and wait for its effect."""
    switch = SWITCHES[chosen.command]
    kubectl.patch(chosen.name, {"spec": {switch.field: switch.value}})
    if not chosen.wait:
        sys.stdout.write(f"{switch.started.format(chosen.name)}\n")
        return Exit.OK
    wait(kubectl, chosen.name, lambda cluster: has_seen_spec(cluster) and switch.done(cluster), chosen.timeout_s)
    sys.stdout.write(f"{switch.finished.format(chosen.name)}\n")
    return Exit.OK
