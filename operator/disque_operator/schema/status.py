"""The schema of the status. It fixes no words: what a later operator writes must not be refused."""

from __future__ import annotations

from disque_operator.spec import Json


def status() -> Json:
    """The schema of the field."""
    return _object(
        "What the operator saw last, and what it is doing.",
        {
            "observedGeneration": _number("The generation of the resource that this is about."),
            "phase": _text(
                "Creating, Running, Growing, Draining, Upgrading, Healing, Paused, Hibernating, Hibernated or Degraded."
            ),
            "message": _text("In a sentence: what is being waited for, or what to do."),
            "replicas": _number("Pods that there are."),
            "readyReplicas": _number("Pods that serve clients."),
            "selector": _text("The labels of the pods, for `kubectl scale` and autoscalers."),
            "version": _text("The version of the brokers; several, with commas between them, while they differ."),
            "image": _text("The image of the pods."),
            "formerImage": _text("The image before the last change, to go back to."),
            "endpoint": _text("Where clients connect: host:port of the client service."),
            "secretName": _text("The Secret with the key `password`; empty without a password."),
            "conditions": _conditions(),
            "members": _members(),
            "jobs": _object(
                "Jobs of the whole cluster.",
                {
                    "registered": _number("Jobs in the memory of all members, each copy counted."),
                    "queued": _number("Jobs that wait in queues for a worker."),
                },
            ),
            "drain": _object(
                "The member that hands over its jobs; missing when none does.",
                {
                    "pod": _text("Its pod."),
                    "nodeId": _text("Its node ID."),
                    "jobsLeft": _number("Jobs still to go."),
                    "rate": _decimal("Jobs per second."),
                    "secondsLeft": _decimal("At that rate; -1 while nothing moves."),
                    "secondsElapsed": _decimal("Since it began."),
                    "waitsFor": _text("Why jobs stay; empty while all is well."),
                    "startedAt": _time("When it began."),
                },
            ),
        },
    )


def _conditions() -> Json:
    condition = _object(
        "One question and its answer.",
        {
            "type": _text(
                "Ready, ClusterFormed, AllMembersReachable, Progressing, Draining, Degraded, ReconcileSuccess or "
                "SpecValid."
            ),
            "status": {"description": "The answer.", "type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": _text("Why, in a word for programs."),
            "message": _text("Why, in a sentence, and what to do."),
            "lastTransitionTime": _time("When the answer changed."),
            "observedGeneration": _number("The generation of the resource that this is about."),
        },
    )
    return {
        "description": "What is true of the cluster.",
        "type": "array",
        "items": condition | {"required": ["type", "status", "reason", "message", "lastTransitionTime"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }


def _members() -> Json:
    member = _object(
        "A member of the cluster.",
        {
            "pod": _text("Its pod."),
            "nodeId": _text("Its node ID; the last known one when it does not answer."),
            "address": _text("The name under which the others reach it."),
            "machine": _text("The Kubernetes node on which it runs."),
            "state": _text("starting, loading, ready, leaving, unreachable or stopping."),
            "version": _text("The version of its broker."),
            "jobs": _number("Jobs in its memory."),
            "queued": _number("Jobs in its queues."),
            "queues": _number("Queues it has."),
            "usedMemory": _number("Bytes that its jobs use."),
            "maxMemory": _number("Bytes that they may use."),
            "leaving": _boolean("Whether it hands its jobs over."),
            "safeToStop": _boolean("Whether no job would be lost or wait if its pod went now."),
            "message": _text("What is the matter with it; empty when nothing is."),
        },
    )
    return {
        "description": "Each member, by the ordinals of the pods.",
        "type": "array",
        "items": member | {"required": ["pod"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["pod"],
    }


def _object(description: str, properties: Json) -> Json:
    return {"description": description, "type": "object", "properties": properties}


def _text(description: str) -> Json:
    return {"description": description, "type": "string"}


def _number(description: str) -> Json:
    return {"description": description, "type": "integer", "format": "int64"}


def _decimal(description: str) -> Json:
    return {"description": description, "type": "number"}


def _boolean(description: str) -> Json:
    return {"description": description, "type": "boolean"}


def _time(description: str) -> Json:
    return {"description": description, "type": "string", "format": "date-time"}
