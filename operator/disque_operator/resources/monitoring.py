"""The PodMonitor, with which the Prometheus Operator scrapes each broker."""

from __future__ import annotations

from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.certificate_files import AUTHORITY
from disque_operator.resources import encryption
from disque_operator.resources.common import child
from disque_operator.spec import Spec

_LABELS: Final = [
    {"sourceLabels": ["__meta_kubernetes_pod_label_disque_dev_cluster"], "targetLabel": "cluster"},
    {"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "instance"},
]
"""Dashboards and alerts identify a cluster and its nodes by these labels. A replaced pod is the same node."""


def pod_monitor(spec: Spec) -> Json | None:
    """Return the PodMonitor; None if the spec does not enable it."""
    monitor = spec.monitoring.pod_monitor
    if not monitor.enabled:
        return None
    endpoint: Json = {"port": "http", "path": "/metrics", "relabelings": _LABELS}
    if encryption.http_scheme(spec) == "HTTPS":
        authorities = {"name": names.ca_config_map(spec.name), "key": AUTHORITY}
        host = f"{names.client_service(spec.name)}.{spec.namespace}.svc"
        endpoint |= {"scheme": "https", "tlsConfig": {"ca": {"configMap": authorities}, "serverName": host}}
    if monitor.interval:
        endpoint["interval"] = monitor.interval
    if monitor.queues:
        endpoint["params"] = {"name": list(monitor.queues)}
    if monitor.secret_name:
        endpoint["basicAuth"] = {part: {"name": monitor.secret_name, "key": part} for part in ("username", "password")}
    body = {
        "jobLabel": "app.kubernetes.io/name",
        "selector": {"matchLabels": names.selector(spec.name)},
        "podMetricsEndpoints": [endpoint],
    }
    name = names.pod_monitor(spec.name)
    return child(spec, "monitoring.coreos.com/v1", "PodMonitor", name, {"spec": body}, labels=monitor.labels)
