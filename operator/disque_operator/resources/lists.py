"""Which lists of Kubernetes are maps in truth: their entries are found by a key, their order means nothing.

The others are one value: they are replaced and compared as a whole. This is how server-side apply sees them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""By the name of the field that holds the list: the fields that are the key, as far as an entry has them."""


def key_of(field: str, entry: Any) -> str:
    """The key of an entry of the list `field`, empty where entries have none."""
    if field not in KEYS or not isinstance(entry, dict):
        return ""
    found = [str(entry[name]) for name in KEYS[field] if name in entry]
    return " ".join([*found, entry.get("protocol", "TCP")] if found and field == "ports" else found)
