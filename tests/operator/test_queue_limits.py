"""The limits of a DisqueQueue: its definition takes what brokers take, and refuses what they refuse."""

from __future__ import annotations

import re
from typing import Any

import pytest

from disque_operator.apivalues import Json
from disque_operator.queuespec import QueueFields
from disqued.core.queues.settings import SETTINGS, fault
from support import yamltext
from support.manifests import ROOT

DEFINITION = yamltext.load((ROOT / "manifests" / "crd" / "disquequeues.yaml").read_text())
SCHEMA: Json = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
FIELDS: Json = SCHEMA["properties"]["settings"]["properties"]


def takes(name: str, value: object) -> bool:
    """Whether an API server accepts the value of a setting."""
    field = FIELDS[name]
    if isinstance(value, str):
        return len(value) <= field["maxLength"] and re.search(field["pattern"], value) is not None
    return isinstance(value, int) and field["minimum"] <= value <= field["maximum"]


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": "10/s"},
        {"rate": "0.5/s", "burst": 1},
        {"rate": "0.001/d"},
        {"rate": "90/m", "burst": 1_000_000},
        {"rate": "999999.999999/h", "inflight": 1},
        {"inflight": 1_000_000},
    ],
)
def test_limits_that_the_definition_takes_are_valid_for_brokers(settings: dict[str, Any]) -> None:
    assert all(takes(name, value) for name, value in settings.items())
    found = QueueFields.model_validate({"clusterRef": {"name": "mail"}, "settings": settings}).settings
    assert found is not None
    assert set(found.values) == set(settings)
    for name, value in found.values.items():
        assert fault(SETTINGS[name.encode()], value.encode()) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("rate", value)
            for value in ("0/s", "0.0/s", "0.0009/s", "1000001/s", "10/w", "10/", "ten/s", "1e3/s", "-1/s")
        ],
        *[("burst", value) for value in (0, 1_000_001, 1.5)],
        *[("inflight", value) for value in (0, 1_000_001, 1.5)],
    ],
)
def test_limits_that_brokers_refuse_are_refused_by_the_definition(name: str, value: object) -> None:
    assert fault(SETTINGS[name.encode()], str(value).encode()) != ""
    assert not takes(name, value)


def test_rate_of_a_resource_has_a_unit() -> None:
    assert not takes("rate", "10")


@pytest.mark.parametrize("seconds", [1, 86_400])
def test_consumer_timeout_is_a_setting_of_the_broker(seconds: int) -> None:
    assert takes("consumerTimeoutSeconds", seconds)
    settings = {"consumerTimeoutSeconds": seconds}
    found = QueueFields.model_validate({"clusterRef": {"name": "mail"}, "settings": settings}).settings
    assert found is not None
    assert found.values == {"consumer-timeout": str(seconds)}
    assert fault(SETTINGS[b"consumer-timeout"], str(seconds).encode()) == ""


@pytest.mark.parametrize("seconds", [0, 86_401, 1.5])
def test_consumer_timeouts_that_brokers_refuse_are_refused_by_the_definition(seconds: float) -> None:
    assert fault(SETTINGS[b"consumer-timeout"], str(seconds).encode()) != ""
    assert not takes("consumerTimeoutSeconds", seconds)
