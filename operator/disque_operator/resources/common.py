"""What all manifests have in common: who they belong to, and how it is seen that they are not asked for any more."""

from __future__ import annotations

import hashlib
import json

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.spec import Spec

DATA_PATH = "/data"
CONFIG_PATH = "/etc/disque"
AUTH_PATH = "/etc/disque-auth"
CONFIG_FILE = "disque.conf"
"""In both of the latter: the second is included by the first."""


def child(spec: Spec, api_version: str, kind: str, name: str, body: Json, annotations: Json | None = None) -> Json:
    """A manifest of an object that belongs to the resource: it goes when the resource goes."""
    manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": spec.namespace,
            "labels": names.labels(spec.name),
            "annotations": annotations or {},
            "ownerReferences": [owner(spec)],
        },
        **body,
    }
    manifest["metadata"]["annotations"] |= {names.APPLIED: _digest(manifest)}
    return manifest


def owner(spec: Spec) -> Json:
    """The owner reference to the resource. It does not block the resource's deletion."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": spec.name,
        "uid": spec.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _digest(manifest: Json) -> str:
    """Of everything but secrets, of which only the names count: values are compared anyway."""
    told = manifest | {"data": sorted(manifest["data"])} if manifest["kind"] == "Secret" else manifest
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
