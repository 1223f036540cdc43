"""`kubectl disque drain NAME POD`: have a node hand its jobs to the others before something is done to its pod.

The pod gets an annotation, and the operator has its node leave until the annotation is gone, or a new pod has taken the
place of this one. Nothing is deleted, and no pod: who drains says what comes then.
"""

from __future__ import annotations

import argparse
import sys

from disque_operator import names
from disque_operator.kubectl.api import Kubectl, RefusedError
from disque_operator.kubectl.commands.cli import choose_pod
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import condition, member, refused
from disque_operator.kubectl.waiting import NotInTimeError, wait, wait_options
from disque_operator.spec import Json


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    parser.add_argument("pod", help="the pod")
    parser.add_argument("--undo", action="store_true", help="let it take jobs again")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Set or take away the annotation, and wait for its effect."""
    kubectl.cluster(chosen.name)
    pod = choose_pod(kubectl.pods(chosen.name), chosen.pod)
    _annotate(kubectl, pod, drain=not chosen.undo)
    if not chosen.wait:
        sys.stdout.write(f"{pod}: {'the end of the drain' if chosen.undo else 'a drain'} is asked for\n")
        return Exit.OK
    done = _serves if chosen.undo else _is_empty
    try:
        wait(kubectl, chosen.name, lambda cluster: done(cluster, pod), chosen.timeout_s)
    except NotInTimeError:
        raise
    except RefusedError:
        _annotate(kubectl, pod, drain=False)  # a drain that is refused now is not to begin when nobody expects it
        raise
    sys.stdout.write(f"{pod} takes jobs again\n" if chosen.undo else _advice(chosen.name, pod))
    return Exit.OK


def _annotate(kubectl: Kubectl, pod: str, *, drain: bool) -> None:
    kubectl.text("annotate", "--overwrite", "pod", pod, f"{names.DRAIN}=true" if drain else f"{names.DRAIN}-")


def _serves(cluster: Json, pod: str) -> bool:
    return not member(cluster, pod).get("leaving", False)


def _is_empty(cluster: Json, pod: str) -> bool:
    """Whether the operator says that it is. Raises RefusedError when it says that it will not be."""
    refused(cluster, f"{pod} ")
    said = condition(cluster, "Draining")
    return said.get("reason") == "Drained" and str(said.get("message")).startswith(f"{pod} ")


def _advice(name: str, pod: str) -> str:
    return (
        f"{pod} is empty and safe to stop. It takes jobs again when its pod has been replaced, or with:\n"
        f"  kubectl disque drain {name} {pod} --undo\n"
    )
