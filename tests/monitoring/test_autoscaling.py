"""The samples for autoscaling read the right number: a short queue among longer ones, summed over a real cluster."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from dashboards.alerts.files import ROOT
from disque_operator import names
from disqued.testing.ports import free_port
from monitoring.queries import declared, names_in
from support.cluster import RealNode
from support.prometheus import Prometheus
from support.wires import WiredCluster, Wires

FOLDER = ROOT / "manifests" / "autoscaling"
PAGE = ROOT / "docs" / "howto" / "autoscaling.md"
QUEUE, CLUSTER, NAMESPACE = "mail", "jobs", "shop"
WAITING = (2, 3, 0)
"""Jobs of the queue on each member."""
SELECTOR = re.compile(r'(\w+)\{queue="([^"]*)"\}')


def sample(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))


def triggers(name: str) -> list[dict[str, str]]:
    return [trigger["metadata"] for trigger in sample(name)["spec"]["triggers"]]


@dataclass
class Stage:
    """A cluster whose members export two queues each, and a Prometheus that asks for one more by name."""

    nodes: list[RealNode]
    http_port: int
    prometheus: Prometheus

    def number(self, query: str) -> float:
        """Return the value of a query that has one series."""
        (series,) = self.prometheus.ask(query)
        return float(series["value"][1])


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    folder = tmp_path_factory.mktemp("autoscaling")
    port = free_port()
    directives = ("--http-port", str(port), "--metrics-queues", "2")
    with Wires() as wires, WiredCluster(folder, wires, len(WAITING), *directives) as cluster:
        for node, count in zip(cluster.nodes, WAITING, strict=True):
            for queue, length in ((QUEUE, count), ("long", 10), ("longer", 20)):
                for _ in range(length):
                    node.call("ADDJOB", queue, "body", 0, "REPLICATE", 1)
        job = {
            "job_name": "disque",
            "params": {"name": [QUEUE, "absent"]},
            "static_configs": [
                {
                    "targets": [f"{node.host}:{port}" for node in cluster.nodes],
                    "labels": {"namespace": NAMESPACE, "cluster": CLUSTER},
                }
            ],
        }
        plain = {**job, "job_name": "without-names", "params": {}, "metric_relabel_configs": RENAMED}
        with Prometheus(folder / "prometheus", [job, plain]) as prometheus:
            for series in ("disque_queue_jobs", "plain_queue_jobs"):
                scraped = f'count(count by (instance) ({series}{{queue="long"}})) == {len(WAITING)}'
                prometheus.until(lambda query=scraped: prometheus.has(query), f"{series} of all members")  # type: ignore[misc]
            yield Stage(cluster.nodes, port, prometheus)


RENAMED = [
    {
        "source_labels": ["__name__"],
        "regex": "disque_queue_(.*)",
        "target_label": "__name__",
        "replacement": "plain_queue_${1}",
    }
]


def test_short_queue_without_a_name_has_no_series(stage: Stage) -> None:
    assert stage.prometheus.ask(f'plain_queue_jobs{{queue="{QUEUE}"}}') == []


def test_queries_of_keda_count_the_queue_on_all_members(stage: Stage) -> None:
    length, age = (metadata["query"] for metadata in triggers("keda-prometheus"))
    assert stage.number(length) == sum(WAITING)
    assert stage.number(age) > 0
    assert stage.number(length.replace(QUEUE, "absent")) == 0, "an error, if there were no series"


def test_rule_of_the_adapter_counts_the_queue_on_all_members(stage: Stage) -> None:
    (rule,) = sample("prometheus-adapter")["rules"]["external"]
    (metric,) = sample("hpa")["spec"]["metrics"]
    wanted = metric["external"]["metric"]["selector"]["matchLabels"] | {"namespace": NAMESPACE}
    matchers = ",".join(f'{name}="{value}"' for name, value in wanted.items())
    query = rule["metricsQuery"].replace("<<.Series>>", "disque_queue_jobs").replace("<<.LabelMatchers>>", matchers)
    assert metric["external"]["metric"]["name"] == rule["name"]["as"]
    assert stage.number(query) == sum(WAITING)
    assert stage.prometheus.has(rule["seriesQuery"])


def value_at(location: str, page: str) -> float:
    """Return a value of a page as KEDA finds it: the first sample of the family with these labels."""
    found = SELECTOR.fullmatch(location)
    assert found is not None
    (value,) = [
        entry.value
        for family in text_string_to_metric_families(page)
        for entry in family.samples
        if (entry.name, entry.labels) == (found[1], {"queue": found[2]})
    ]
    return float(value)


def test_keda_adds_the_answers_of_all_members(stage: Stage) -> None:
    """KEDA replaces the host by the address of each endpoint, and keeps the path only."""
    (metadata,) = triggers("keda")
    url = urlsplit(metadata["url"])
    assert metadata["aggregationType"] == "sum"
    assert metadata["format"] == "prometheus"
    assert (url.hostname, url.port) == (f"{names.members_service(CLUSTER)}.{NAMESPACE}.svc", names.HTTP_PORT)
    assert url.query == "", "KEDA drops the query"
    answers = []
    for node in stage.nodes:
        with contextlib.closing(http.client.HTTPConnection(node.host, stage.http_port, timeout=30)) as connection:
            connection.request("GET", url.path)
            answers.append(value_at(metadata["valueLocation"], connection.getresponse().read().decode()))
    assert answers == list(WAITING)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_samples_belong_together(name: str) -> None:
    body = sample(name)
    if "kind" in body:
        assert body["metadata"]["name"] == "mail-workers"
    if body.get("kind") != "Deployment" and "spec" in body:
        assert body["spec"]["scaleTargetRef"]["name"] == "mail-workers"
    asked = {
        found for text in re.findall(r"(?:query|seriesQuery): (.*)", yaml.safe_dump(body)) for found in names_in(text)
    }
    assert asked <= declared().keys()


def test_page_links_to_all_samples() -> None:
    linked = set(re.findall(r"manifests/autoscaling/([\w-]+)\.yaml", PAGE.read_text()))
    assert linked == {path.stem for path in FOLDER.glob("*.yaml")}
