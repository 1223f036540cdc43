"""`kubectl disque cli NAME [word ...]`: the command line `disque`, connected to a node through the API server."""

from __future__ import annotations

import argparse
import os
from importlib import import_module

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RefusedError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.forward import LOOPBACK, forwarded
from disque_operator.kubectl.members import PASSWORD_VARIABLE, accepted, passwords


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("--pod", help="the pod of the node (default: the first that serves)")
    parser.add_argument("name", help="the cluster")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="what `disque` is to do, with its own options")


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Forward a port of the node and run `disque` with it; the exit status is that of `disque`."""
    secrets = passwords(kubectl, kubectl.cluster(chosen.name))
    with forwarded(kubectl, choose_pod(kubectl.pods(chosen.name), chosen.pod), names.CLIENT_PORT) as port:
        os.environ |= {"DISQUE_HOST": LOOPBACK, "DISQUE_PORT": str(port)}
        if password := accepted(port, secrets):
            os.environ[PASSWORD_VARIABLE] = password
        words = chosen.words[1:] if chosen.words[:1] == ["--"] else chosen.words
        status: int = import_module("disqued.cli.main").main(words)
        return next(each for each in Exit if each.value == status)


def choose_pod(pods: list[Json], wanted: str | None) -> str:
    """The pod of that name, or the first that is ready.

    Raises:
        RefusedError: there is none.
    """
    found = [pod["metadata"]["name"] for pod in pods if _is_meant(pod, wanted)]
    if not found:
        have = ", ".join(pod["metadata"]["name"] for pod in pods) or "none"
        raise RefusedError(f"No pod {wanted}; there are: {have}" if wanted else f"No pod is ready; there are: {have}")
    return str(found[0])


def _is_meant(pod: Json, wanted: str | None) -> bool:
    if wanted is not None:
        return bool(pod["metadata"]["name"] == wanted)
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
