"""The status is true: a change of the spec is not reported as complete before it is (`support.kubeworld.truth`)."""

from __future__ import annotations

from typing import Any

import pytest

from disque_operator.servicespec import ClientService
from disque_operator.spec import Storage, VolumeRetention
from support.kubeworld.scenario import Scenario, a_spec, check_settled
from support.kubeworld.truth import false_claims, not_in_effect
from support.kubeworld.values import condition

CHANGES: dict[str, dict[str, Any]] = {
    "the image": {"image": "disque:2"},
    "a directive that needs a restart": {"config": {"tcp-backlog": "100"}},
    "a directive that changes at run time": {"config": {"slowlog-max-len": "64"}},
    "more members": {"replicas": 5},
    "fewer members": {"replicas": 2},
    "the Service": {"service": ClientService(port=7000)},
    "the retention of claims": {"storage": Storage(retention=VolumeRetention(when_deleted="Delete"))},
}


@pytest.mark.parametrize("change", CHANGES)
def test_first_status_of_a_change_says_that_it_is_in_progress(change: str) -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    scenario.world.edit(**CHANGES[change])
    scenario.run(1)
    status = scenario.world.status
    assert status["observedGeneration"] == scenario.world.spec.generation
    assert condition(status, "Ready") == ("False", "ChangePending")
    assert "True" in {condition(status, "Progressing")[0], condition(status, "Draining")[0]}
    assert status["phase"] != "Running"
    scenario.settle()
    check_settled(scenario)


def test_password_rotation_is_ready_when_clients_have_the_new_password() -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    auth = scenario.world.spec.auth.model_copy(update={"rotation": 1})
    before = scenario.world.observe().passwords
    scenario.world.edit(auth=auth)
    scenario.run(1)
    assert condition(scenario.world.status, "Ready") == ("False", "ChangePending")
    scenario.until(lambda: condition(scenario.world.status, "Ready")[0] == "True", 60)
    after = scenario.world.observe().passwords
    assert before is not None
    assert after is not None
    assert after.current != before.current
    assert condition(scenario.world.status, "Progressing") == ("True", "PasswordRotation")


def test_rollout_is_in_progress_until_the_last_pod_is_replaced() -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    scenario.world.edit(image="disque:2")
    scenario.run(1)
    scenario.until(lambda: condition(scenario.world.status, "Ready")[0] == "True", 300)
    assert {pod.image for pod in scenario.world.pods.values()} == {"disque:2"}
    assert scenario.world.status["phase"] == "Running"


def test_status_that_claims_too_much_is_found() -> None:
    scenario = Scenario(a_spec(), load=False)
    scenario.settle()
    scenario.world.edit(image="disque:2")
    claim = scenario.world.status | {"observedGeneration": scenario.world.spec.generation}
    missing = not_in_effect(scenario.world)
    assert missing == "mail-0 runs disque:1"
    assert len(false_claims(claim, scenario.world.spec, missing)) == 3
