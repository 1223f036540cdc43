"""Prometheus discovers the pods of brokers and operator with the documented configuration, and dashboards have data."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from dashboards import uids
from dashboards.all import BOARDS
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.settings import ROOT
from monitoring.queries import with_choices
from support.prometheus import Prometheus

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("kubectl")), reason="prometheus or kubectl is not installed"
)

PAGE: Final = (ROOT / "docs" / "howto" / "monitoring.md").read_text(encoding="utf-8")
API_SERVER_PROXY: Final = [
    {
        "source_labels": ["__meta_kubernetes_namespace", "__meta_kubernetes_pod_name", "__address__"],
        "regex": r"([^;]+);([^;]+);.*:(\d+)",
        "replacement": "/api/v1/namespaces/$1/pods/$2:$3/proxy/metrics",
        "target_label": "__metrics_path__",
    }
]
"""Relabeling that reads pods through the API server, because this Prometheus runs outside the cluster."""


@contextlib.contextmanager
def api_server() -> Iterator[str]:
    """Run a proxy to the API server that needs no authentication; yields its address."""
    with subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stdout is not None
            (address,) = re.findall(r"127\.0\.0\.1:\d+", proxy.stdout.readline())
            yield address
        finally:
            proxy.terminate()


def meta(kind: str, texts: Json) -> Json:
    """Return the labels that Prometheus makes from labels or annotations of a pod."""
    return {f"__meta_kubernetes_pod_{kind}_{re.sub(r'[^a-zA-Z0-9_]', '_', name)}": text for name, text in texts.items()}


def discovered(pods: list[Json]) -> Iterator[Json]:
    """Yield the targets of `role: pod`, one for each port; Debian builds Prometheus without this discovery."""
    for pod in pods:
        about = pod["metadata"]
        labels = {
            "__meta_kubernetes_namespace": about["namespace"],
            "__meta_kubernetes_pod_name": about["name"],
            **meta("label", about["labels"]),
            **meta("annotation", about["annotations"]),
        }
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", ()):
                address = f"{pod['status']['podIP']}:{port['containerPort']}"
                named = {"__meta_kubernetes_pod_container_port_name": port["name"]}
                yield {"targets": [address], "labels": labels | named}


def documented_job(pods: list[Json], address: str) -> Json:
    """Return the scrape job of the page, for these pods, read through the API server."""
    [block] = [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kubernetes_sd_configs" in block]
    [job] = yaml.safe_load(block)["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    job["static_configs"] = list(discovered(pods))
    job["relabel_configs"] += [*API_SERVER_PROXY, {"target_label": "__address__", "replacement": address}]
    return dict(job)


def test_prometheus_discovers_pods_and_dashboards_have_data(
    cluster: DisqueCluster, kube: Kube, load: Load, operator: Json, tmp_path: Path
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    of = f'namespace="{cluster.namespace}",cluster="{cluster.name}"'
    members = {f"{cluster.name}-{number}" for number in range(3)}
    pods = [*cluster.pods(), *kube.all("Pod", operator["metadata"]["namespace"])]
    with (
        load,
        api_server() as address,
        Prometheus(tmp_path / "prometheus", [documented_job(pods, address)]) as prometheus,
    ):

        def instances(query: str) -> set[str]:
            return {series["metric"].get("instance", "") for series in prometheus.ask(query)}

        prometheus.until(lambda: instances(f'up{{job="disque",{of}}} == 1') == members, "every member is scraped")
        prometheus.until(partial(prometheus.has, 'up{job="disque-operator"} == 1'), "the operator is scraped")
        assert instances(f"disque_cluster_size{{{of}}} == 3") == members
        addresses = {series["metric"]["address"] for series in prometheus.ask(f"disque_cluster_link_up{{{of}}}")}
        assert {address.partition(".")[0] for address in addresses} == members
        ready = f'disque_operator_cluster_condition{{{of},condition="Ready"}} == 1'
        prometheus.until(partial(prometheus.has, ready), "the operator reports the cluster")

        [overview] = [board for board in BOARDS if board.uid == uids.OVERVIEW]
        panels = [panel for panel in overview.panels() if not panel.empty]  # the others may have no data
        queries = {(panel.title, with_choices(target.expr)) for panel in panels for target in panel.queries}
        for title, query in sorted(queries):
            prometheus.until(partial(prometheus.has, query), f"{title} has data: {query}")
