"""The Secret with the generated password of a user, and what the Secret of the cluster keeps about users and queues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.observed import Kept
from disque_operator.resources.binding import binding
from disque_operator.resources.common import manifest_digest
from disque_operator.spec import Spec

KEPT_KEY: Final = "declared.json"
"""The key of the Secret `names.auth_secret` with what is kept about users and queues."""


def user_secret(spec: Spec, resource: Json, user: str, password: str, trusted: str, *, owned: bool) -> Json:
    """Return the Secret with the password of a DisqueUser, and with what a client needs to connect."""
    metadata: Json = {
        "name": names.user_secret(resource["metadata"]["name"]),
        "namespace": spec.namespace,
        "labels": {**names.labels(spec.name), names.USER_LABEL: resource["metadata"]["name"]},
        "annotations": {},
    }
    if owned:
        metadata["ownerReferences"] = [
            {
                "apiVersion": names.API_VERSION,
                "kind": names.USER_KIND,
                "name": resource["metadata"]["name"],
                "uid": resource["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        **binding(spec, user, password, trusted),
    }
    metadata["annotations"][names.APPLIED] = manifest_digest(manifest)
    return manifest


def user_lines(kept: Mapping[str, Kept]) -> bytes:
    """Return the lines of the configuration file with the users that brokers have from their start on."""
    lines = [
        f"user {name} {entry.rules}\n" for name, entry in sorted(kept.items()) if entry.rules and not entry.removed_at
    ]
    return "".join(lines).encode()


def written(users: Mapping[str, Kept], queues: Mapping[str, Kept], schedules: Mapping[str, Kept]) -> bytes:
    """Return the value of KEPT_KEY; empty if nothing is kept."""
    kept = {"users": _entries(users), "queues": _entries(queues)}
    if schedules:
        kept["schedules"] = _entries(schedules)
    return json.dumps(kept, sort_keys=True).encode() if users or queues or schedules else b""


def _entries(kept: Mapping[str, Kept]) -> Json:
    return {
        name: {
            "uid": entry.uid,
            "retain": entry.retain,
            **({"rules": entry.rules} if entry.rules else {}),
            **({"removedAt": entry.removed_at} if entry.removed_at else {}),
            **({"settings": True} if entry.has_settings else {}),
            **({"ordered": True} if entry.ordered else {}),
            **({"dropsJobs": True} if entry.drops_jobs else {}),
        }
        for name, entry in kept.items()
    }
