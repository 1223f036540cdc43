"""`kubectl disque drain NAME POD`: have a node hand its jobs to the others before something is done to its pod.

The pod gets an annotation, and the operator has its node leave until the annotation is gone, or a new pod has taken the
place of this one. Nothing is deleted, and no pod: who drains says what comes then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RefusedError
from disque_operator.kubectl.commands.cli import choose_pod
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import DRAINED, drain_said, member, wanted_replicas
from disque_operator.kubectl.waiting import NotInTimeError, wait, wait_options


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", help="the cluster")
    parser.add_argument("pod", help="the pod")
    parser.add_argument("--undo", action="store_true", help="let it take jobs again")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Set or take away the annotation, and wait for its effect."""
    cluster = kubectl.cluster(chosen.name)
    pods = kubectl.pods(chosen.name)
    pod = choose_pod(pods, chosen.pod)
    is_new = not chosen.undo and not _is_annotated(pods, pod)
    if chosen.wait and is_new and not _is_settled(cluster, pod):
        wait(kubectl, chosen.name, lambda cluster: _is_settled(cluster, pod), chosen.timeout_s)
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


def _is_annotated(pods: Sequence[Json], pod: str) -> bool:
    found = next(each["metadata"] for each in pods if each["metadata"]["name"] == pod)
    return names.DRAIN in (found.get("annotations") or {})


def _is_settled(cluster: Json, pod: str) -> bool:
    """Whether the end of a former drain of this pod is told no more, so that what is told next is that of a new one."""
    said = drain_said(cluster)
    is_over = said.pod == pod and (said.is_refused or said.reason == DRAINED)
    return not is_over or names.ordinal(pod) >= wanted_replicas(cluster)  # a shrink has it drain as well


def _serves(cluster: Json, pod: str) -> bool:
    return not member(cluster, pod).get("leaving", False)


def _is_empty(cluster: Json, pod: str) -> bool:
    """Whether the operator says that it is. Raises RefusedError when it says that it will not be."""
    said = drain_said(cluster)
    if said.pod == pod and said.is_refused:
        raise RefusedError(said.message)
    return said.pod == pod and said.reason == DRAINED


def _advice(name: str, pod: str) -> str:
    return (
        f"{pod} is empty and safe to stop. It takes jobs again when its pod has been replaced, or with:\n"
        f"  kubectl disque drain {name} {pod} --undo\n"
    )
