"""The configuration file of the nodes: the same one for all, what is a node's own stands on its command line."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.directives import lines
from disque_operator.resources.common import AUTH_PATH, CONFIG_FILE, child
from disque_operator.spec import Spec


def config_map(spec: Spec) -> Json:
    """The ConfigMap."""
    return child(spec, "v1", "ConfigMap", names.config_map(spec.name), {"data": {CONFIG_FILE: _text(spec)}})


def _text(spec: Spec) -> str:
    fixed = {
        "port": names.CLIENT_PORT,
        "http-port": names.HTTP_PORT,
        "cluster-name": names.cluster_name(spec.name, spec.namespace),
        "cluster-seeds": f"{names.members_service(spec.name)}.{spec.namespace}.svc",
        "shutdown-on-sigterm": "rewrite-aof",
        "aof-restart-mark": "yes",
    }
    return "\n".join(
        [
            f"# Changes are undone here: {names.KIND} {spec.name} takes directives in spec.config.",
            *(f"{name} {value}" for name, value in fixed.items()),
            *lines(spec),
            f"include {AUTH_PATH}/{CONFIG_FILE}",
            "",
        ]
    )
