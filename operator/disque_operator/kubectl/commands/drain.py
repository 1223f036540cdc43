"""`kubectl disque drain NAME POD`: transfer all jobs of a node to the other nodes before maintenance of its pod.

The command annotates the pod. The operator keeps the node drained until the annotation is removed or a new pod replaces
this one. Nothing is deleted, and the pod keeps running; the user decides what happens next.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RequestRefusedError
from disque_operator.kubectl.commands.cli import choose_pod
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.resource import DRAINED, desired_replicas, drain_condition, member
from disque_operator.kubectl.waiting import WaitTimeoutError, wait, wait_options


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("pod", help="name of the pod")
    parser.add_argument("--undo", action="store_true", help="end the drain; the node accepts jobs again")
    wait_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Set or remove the annotation, and wait for its effect."""
    cluster = kubectl.cluster(chosen.name)
    pods = kubectl.pods(chosen.name)
    pod = choose_pod(pods, chosen.pod)
    is_new = not chosen.undo and not _is_annotated(pods, pod)
    if chosen.wait and is_new and not _is_settled(cluster, pod):
        wait(kubectl, chosen.name, lambda cluster: _is_settled(cluster, pod), chosen.timeout_s)
    _annotate(kubectl, pod, drain=not chosen.undo)
    if not chosen.wait:
        sys.stdout.write(f"{'ending drain of' if chosen.undo else 'draining'} {pod}\n")
        return Exit.OK
    done = _accepts_jobs if chosen.undo else _is_drained
    try:
        wait(kubectl, chosen.name, lambda cluster: done(cluster, pod), chosen.timeout_s)
    except WaitTimeoutError:
        raise
    except RequestRefusedError:
        _annotate(kubectl, pod, drain=False)  # otherwise a refused drain could start later, when nobody expects it
        raise
    sys.stdout.write(f"{pod} accepts jobs again\n" if chosen.undo else _advice(chosen.name, pod))
    return Exit.OK


def _annotate(kubectl: Kubectl, pod: str, *, drain: bool) -> None:
    kubectl.text("annotate", "--overwrite", "pod", pod, f"{names.DRAIN}=true" if drain else f"{names.DRAIN}-")


def _is_annotated(pods: Sequence[Json], pod: str) -> bool:
    found = next(each["metadata"] for each in pods if each["metadata"]["name"] == pod)
    return names.DRAIN in (found.get("annotations") or {})


def _is_settled(cluster: Json, pod: str) -> bool:
    """Whether the status shows no result of an earlier drain of this pod; it would be taken for a new one."""
    draining = drain_condition(cluster)
    is_over = draining.pod == pod and (draining.is_refused or draining.reason == DRAINED)
    return not is_over or names.ordinal(pod) >= desired_replicas(cluster)  # scaling in drains this pod as well


def _accepts_jobs(cluster: Json, pod: str) -> bool:
    return not member(cluster, pod).get("leaving", False)


def _is_drained(cluster: Json, pod: str) -> bool:
    """Whether the drain of this pod has finished. Raises RequestRefusedError if the operator refused it."""
    draining = drain_condition(cluster)
    if draining.pod == pod and draining.is_refused:
        raise RequestRefusedError(draining.message)
    return draining.pod == pod and draining.reason == DRAINED


def _advice(name: str, pod: str) -> str:
    return (
        f"{pod} is drained and safe to stop. It accepts jobs again after its pod is replaced, or after:\n"
        f"  kubectl disque drain {name} {pod} --undo\n"
    )
