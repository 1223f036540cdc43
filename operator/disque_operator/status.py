"""The status of a cluster, for people and programs.

The status is made from scratch in every round. Its texts contain no numbers that change by themselves, so a status with
new texts is always worth writing; `status_writes` decides about changed counters. Some values are taken from the
previous status: transition times, the start of a drain, node IDs of members that do not answer, the previous image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from disque_operator import backups, bootstrap, names, ordered
from disque_operator.addresses import known
from disque_operator.apivalues import Json, timestamp
from disque_operator.conditions import condition, conditions, dated
from disque_operator.decisions import PHASES, Note, Phase
from disque_operator.disruption import safe_to_stop
from disque_operator.members import ClusterView, Member
from disque_operator.resources.encryption import client_port, secret_name
from disque_operator.status_fields import ClusterStatus

_JUST_BEGUN_S: Final = 60.0


def status(view: ClusterView, notes: Sequence[Note], drain: Json | None, available_image: str) -> Json:
    """Return the whole status. It equals the previous one if nothing has changed."""
    leading = next((note for phase in PHASES for note in notes if note.phase == phase), None)
    phase = _phase(view, leading)
    made = backups.last(view)
    of_queues = ordered.verdict(view)
    more = [of_queues.as_condition("OrderedReady")] if of_queues is not None else []
    found = conditions(view, notes) + _of_spec(view, notes, [*more, *backups.backed_up(view, made)])
    fields: Json = {
        "observedGeneration": view.spec.generation,
        "phase": phase,
        "message": leading.message if leading else str(found[0]["message"]),
        "replicas": view.expected,
        "readyReplicas": len([member for member in view.members if member.pod.ready]),
        "selector": ",".join(f"{name}={value}" for name, value in names.selector(view.spec.name).items()),
        "version": _version(view),
        **_images(view),
        "endpoint": f"{names.client_host(view.spec.name, view.spec.namespace)}:{client_port(view.spec)}",
        "binding": {"name": names.client_secret(view.spec.name)},
        "conditions": found,
        "members": [_member(view, member) for member in view.members],
        "jobs": {
            "registered": sum(broker.jobs for _, broker in view.loaded),
            "queued": sum(broker.queued for _, broker in view.loaded),
        },
    }
    if view.spec.auth.enabled:
        fields["secretName"] = names.client_secret(view.spec.name)
    if view.spec.tls.enabled and (certificate := _certificate(view)):
        fields["certificate"] = certificate
    if view.spec.exposure is not None:
        outside = [{"pod": pod.name, "address": address.for_clients()} for pod, address in known(view)]
        fields["exposure"] = {"addresses": outside}
    if made:
        fields["backup"] = made
    if restored := bootstrap.state(view):
        fields["bootstrap"] = restored
    if view.observed.operator:
        fields["operator"] = view.observed.operator
    if available_image:
        fields["availableImage"] = available_image
    if known_queues := ordered.state(view):
        fields["ordered"] = known_queues
    if drain is not None:
        fields["drain"] = drain
    return ClusterStatus.model_validate(fields).written()


def _certificate(view: ClusterView) -> Json:
    files = view.observed.tls
    if files is None or files.facts is None:
        return {}
    return {
        "secretName": secret_name(view.spec),
        "configMap": names.ca_config_map(view.spec.name),
        "issuer": files.facts.issuer,
        "expiresAt": timestamp(files.facts.ends_s),
        "authorities": files.trusted.count("BEGIN CERTIFICATE"),
    }


def _of_spec(view: ClusterView, notes: Sequence[Note], more: Sequence[Json]) -> list[Json]:
    wrong = [note.message for note in notes if note.topic == "SpecValid"]
    found = [
        condition(
            "SpecValid", not wrong, "Invalid" if wrong else "Valid", "; ".join(wrong) or "the spec can be applied"
        ),
        condition("ReconcileSuccess", True, "Done", "the last round succeeded"),
        *more,
    ]
    return dated(found, view.observed.status.get("conditions") or (), view.spec.generation, view.now_s)


def _phase(view: ClusterView, leading: Note | None) -> Phase:
    """Return the most important phase of all notes. A cluster that never was Running is Creating."""
    if leading is None:
        return "Running"
    is_new = view.observed.status.get("phase") in {None, "", "Creating"}
    return "Creating" if is_new and leading.phase in {"Healing", "Growing", "Applying"} else leading.phase


def _version(view: ClusterView) -> str:
    """Return the versions of the brokers that answer, or the previous ones if none does."""
    versions = sorted(
        {broker.version for member in view.members if (broker := member.broker) is not None and broker.version}
    )
    return ", ".join(versions) or str(view.observed.status.get("version") or "")


def _images(view: ClusterView) -> Json:
    """Return the image of the StatefulSet, and the last one before it that all pods had while one was ready."""
    before = view.observed.status
    image = view.stateful_set.image if view.stateful_set else before.get("image") or ""
    former = before.get("formerImage") or ""
    known = before.get("image") or ""
    if known and known != image:
        served = any(member.pod.ready for member in view.members)
        if served and all(member.pod.image == known for member in view.members):
            former = known
    return {"image": image} | ({"formerImage": former} if former and former != image else {})


def _state(member: Member) -> str:
    pod, broker = member.pod, member.broker
    if pod.terminating:
        return "stopping"
    if broker is None:
        starting = not pod.ready and (pod.phase == "Pending" or pod.age_s < _JUST_BEGUN_S)
        return "starting" if starting else "unreachable"
    if broker.loading:
        return "loading"
    if broker.leaving is not None:
        return "leaving"
    return "ready" if pod.ready else "starting"


def _member(view: ClusterView, member: Member) -> Json:
    pod, broker = member.pod, member.broker
    troubles = (
        pod.trouble,
        member.unreachable if broker is None and pod.ready else "",
        broker.refusing if broker else "",
    )
    entry: Json = {
        "pod": pod.name,
        "nodeId": (broker.node_id if broker else "") or view.remembered.get(pod.name, ""),
        "address": names.pod_host(view.spec.name, view.spec.namespace, pod.ordinal),
        "node": pod.node,
        "state": _state(member),
        "version": broker.version if broker else "",
        "jobs": broker.jobs if broker else 0,
        "queued": broker.queued if broker else 0,
        "queues": broker.queues if broker else 0,
        "usedMemory": broker.used_memory if broker else 0,
        "maxMemory": broker.max_memory if broker else 0,
        "leaving": broker is not None and broker.leaving is not None,
        "safeToStop": safe_to_stop(view, member),
        "message": next((trouble for trouble in troubles if trouble), ""),
    }
    return entry
