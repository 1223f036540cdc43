"""Helm rejects invalid values, with an error that names the value and the problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from charts.helm import CLUSTER, OPERATOR, Helm, Json


@pytest.mark.parametrize(
    ("chart", "values", "message"),
    [
        (CLUSTER, {"replica": 3}, "at '': additional properties 'replica' not allowed"),
        (CLUSTER, {"storage": {"sise": "1Gi"}}, "at '/storage': additional properties 'sise' not allowed"),
        (CLUSTER, {"test": {"enable": True}}, "at '/test': additional properties 'enable' not allowed"),
        (CLUSTER, {"replicas": "three"}, "at '/replicas': got string, want null or integer"),
        (CLUSTER, {"minReplicas": 0}, "at '/minReplicas': minimum: got 0, want 1"),
        (CLUSTER, {"config": {"slowlog-max-len": 10}}, "at '/config/slowlog-max-len': got number, want null or string"),
        (CLUSTER, {"drain": {"onTimeout": "Stop"}}, "at '/drain/onTimeout': value must be one of"),
        (CLUSTER, {"paused": "yes please"}, "at '/paused': got string, want null or boolean"),
        (CLUSTER, {"test": {"timeoutSeconds": "1m"}}, "at '/test/timeoutSeconds': got string, want null or integer"),
        (OPERATOR, {"replica": 3}, "at '': additional properties 'replica' not allowed"),
        (OPERATOR, {"image": {"name": "x"}}, "at '/image': additional properties 'name' not allowed"),
        (OPERATOR, {"image": {"pullPolicy": "Often"}}, "at '/image/pullPolicy': value must be one of"),
        (OPERATOR, {"watch": {"namespaces": "mail"}}, "at '/watch/namespaces': got string, want null or array"),
        (OPERATOR, {"log": {"level": "loud"}}, "at '/log/level': value must be one of"),
    ],
)
def test_invalid_values_are_rejected(helm: Helm, chart: Path, values: Json, message: str) -> None:
    assert message in helm.error(chart, values)


@pytest.mark.parametrize("chart", [OPERATOR, CLUSTER], ids=lambda chart: chart.name)
def test_global_values_are_accepted(helm: Helm, chart: Path) -> None:
    assert helm.template(chart, {"global": {"storageClass": "fast"}}).all == helm.template(chart).all
