"""The health of DisqueClusters in Argo CD: the script, run with Lua on the statuses that the planner reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from lupa.lua54 import LuaRuntime

from disque_operator.apivalues import Json
from disque_operator.spec import Upgrade, UpgradeWindow
from support.kubeworld.scenario import Scenario, a_spec

FILE: Final = Path(__file__).parents[2] / "manifests" / "argocd" / "health.yaml"
KEY: Final = "resource.customizations.health.disque.dev_DisqueCluster"


def health(status: Json | None, generation: int) -> tuple[str, str]:
    """Run the script as Argo CD does, with the object as the global `obj`."""
    lua = LuaRuntime()
    script = yaml.safe_load(FILE.read_text())["data"][KEY]
    body = {"metadata": {"generation": generation}} | ({"status": status} if status is not None else {})
    lua.globals().obj = lua.table_from(body, recursive=True)
    found: Any = lua.execute(script)
    return found.status, found.message


def of(scenario: Scenario) -> tuple[str, str]:
    return health(scenario.world.status, scenario.world.spec.generation)


def a_cluster(**fields: object) -> Scenario:
    scenario = Scenario(a_spec(**fields), load=False)
    scenario.settle()
    return scenario


def nothing(_scenario: Scenario) -> None:
    """Leave the cluster as it is."""


def image_missing(scenario: Scenario) -> None:
    scenario.world.edit(image="disque:missing")
    scenario.run(200)


def invalid(scenario: Scenario) -> None:
    scenario.world.edit(config={"colour": "red"})
    scenario.run(10)


def growing(scenario: Scenario) -> None:
    scenario.world.edit(replicas=5)
    scenario.until(lambda: len(scenario.world.pods) == 5)


def draining(scenario: Scenario) -> None:
    for _ in range(30):
        scenario.add()
    scenario.world.edit(replicas=2)
    scenario.until(lambda: "drain" in scenario.world.status)


def paused(scenario: Scenario) -> None:
    scenario.world.edit(paused=True)
    scenario.run(10)


def hibernated(scenario: Scenario) -> None:
    scenario.world.edit(hibernate=True)
    scenario.settle()


def waiting_for_an_update(scenario: Scenario) -> None:
    window = UpgradeWindow(days=("Monday",), start="01:00", end="01:30")
    scenario.world.edit(image=None, upgrade=Upgrade(window=window))
    scenario.world.default_image = "disque:2"
    scenario.settle()


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (nothing, "Healthy", "all 3 members are ready"),
        (image_missing, "Degraded", "disque:missing"),
        (invalid, "Degraded", "spec.config.colour"),
        (growing, "Progressing", ""),
        (draining, "Progressing", ""),
        (paused, "Suspended", "spec.paused"),
        (hibernated, "Suspended", ""),
        (waiting_for_an_update, "Healthy", "all 3 members are ready"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_health(change: Callable[[Scenario], None], status: str, words: str) -> None:
    scenario = a_cluster()
    change(scenario)
    found, message = of(scenario)
    assert (found, words in message) == (status, True), message


def test_new_cluster_is_progressing() -> None:
    assert health(None, 1)[0] == "Progressing"


def test_cluster_is_progressing_until_the_operator_has_seen_the_change() -> None:
    scenario = a_cluster()
    scenario.world.edit(replicas=5)
    assert of(scenario) == ("Progressing", "the operator has not processed this version of the spec yet")
