"""Dashboards, alerts and monitors of the charts, and that they match each other."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from charts.helm import CHARTS, OPERATOR, Helm, Json
from dashboards.alerts.all import ALERTS, RECORDS
from dashboards.all import BOARDS
from dashboards.build import json_of
from support import yamltext

RULES = CHARTS.parent / "dashboards" / "alerts" / "disque.rules.yaml"
MEGABYTE = 1 << 20


def test_dashboards_and_alerts_are_disabled_by_default(helm: Helm) -> None:
    objects = helm.template(OPERATOR)
    assert objects.of("PrometheusRule") == []
    assert objects.of("ConfigMap") == []


def test_configmaps_have_all_dashboards(helm: Helm) -> None:
    maps = helm.template(OPERATOR, {"dashboards": {"enabled": True}}).of("ConfigMap")
    assert len({item["metadata"]["name"] for item in maps}) == len(BOARDS)
    shown = {name: json.loads(text) for item in maps for name, text in item["data"].items()}
    assert shown == {board.file: json.loads(json_of(board)) for board in BOARDS}
    for item in maps:
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["namespace"] == "here"
        assert len(json.dumps(item)) < MEGABYTE / 4, "a ConfigMap, and a release with all of them, are limited to 1 MiB"


def test_chart_has_no_removed_dashboards() -> None:
    files = {path.name for path in (OPERATOR / "files" / "dashboards").iterdir()}
    assert files == {board.file for board in BOARDS}


def test_dashboards_have_the_configured_namespace_labels_and_annotations(helm: Helm) -> None:
    given = {"enabled": True, "namespace": "grafana", "labels": {"find": "me"}, "annotations": {"folder": "Disque"}}
    for item in helm.template(OPERATOR, {"dashboards": given}).of("ConfigMap"):
        assert item["metadata"]["namespace"] == "grafana"
        assert item["metadata"]["labels"]["find"] == "me"
        assert item["metadata"]["annotations"] == {"folder": "Disque"}


def rules(helm: Helm, **given: object) -> list[Json]:
    groups: list[Json] = helm.template(OPERATOR, {"alerts": {"enabled": True, **given}}).one("PrometheusRule")["spec"][
        "groups"
    ]
    return groups


def test_alerts_equal_the_rules_file(helm: Helm) -> None:
    assert rules(helm) == yamltext.load(RULES.read_text())["groups"]


def test_promtool_accepts_the_alerts(helm: Helm, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": rules(helm, runbookUrl="https://wiki.example/disque")}))
    done = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, check=False)
    assert f"SUCCESS: {len(ALERTS) + len(RECORDS)} rules found" in done.stdout, done.stderr


def test_alerts_can_be_left_out_and_linked_to_other_runbooks(helm: Helm) -> None:
    left = ["DisqueQueuePaused", "DisqueDown"]
    found = [
        rule
        for group in rules(helm, without=left, runbookUrl="https://wiki.example/disque")
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert [rule["alert"] for rule in found] == [alert.name for alert in ALERTS if alert.name not in left]
    assert {rule["annotations"]["runbook_url"] for rule in found} == {
        f"https://wiki.example/disque/{rule['alert']}.md" for rule in found
    }


def test_alerts_link_to_their_dashboard_in_grafana(helm: Helm) -> None:
    found = [rule for group in rules(helm, grafanaUrl="https://grafana.example") for rule in group["rules"]]
    for rule in found:
        if "alert" in rule:
            url = rule["annotations"]["dashboard_url"]
            board = rule["annotations"]["dashboard"]
            assert url.startswith(f"https://grafana.example/d/{board}?var-namespace={{{{ $labels.namespace")
            assert "runbook_url" in rule["annotations"]


def test_leaving_out_an_unknown_alert_is_an_error(helm: Helm) -> None:
    error = helm.error(OPERATOR, {"alerts": {"enabled": True, "without": ["DisqueDown", "DisqueUp"]}})
    assert "unknown alerts in alerts.without: DisqueUp; docs/runbooks lists all alerts" in error


@pytest.mark.parametrize(
    ("key", "kind", "source_kind"),
    [("podMonitor", "PodMonitor", "Deployment"), ("serviceMonitor", "ServiceMonitor", "Service")],
)
def test_operator_has_the_labels_that_alerts_and_dashboards_expect(
    helm: Helm, key: str, kind: str, source_kind: str
) -> None:
    objects = helm.template(OPERATOR, {"metrics": {key: {"enabled": True}}})
    monitor = objects.one(kind)["spec"]
    source = objects.one(source_kind)
    labels = (source["spec"]["template"] if source_kind == "Deployment" else source)["metadata"]["labels"]
    assert labels[monitor["jobLabel"]] == "disque-operator", 'up{job="disque-operator"}'
    (endpoint,) = monitor["endpoints" if kind == "ServiceMonitor" else "podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True, "the labels namespace and cluster are those of the metrics"
