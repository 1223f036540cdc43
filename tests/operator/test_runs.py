"""Jobs as the API server describes them: their state, the result of their last pod, and why a pod fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.runs import Run, runs_of

NOW_S = 1_800_000_000.0
LATER = "2027-01-15T07:59:00Z"
COMPLETE = {
    "startTime": "2027-01-15T07:58:00Z",
    "completionTime": LATER,
    "conditions": [{"type": "Complete", "status": "True"}],
}
FAILED = {
    "conditions": [
        {
            "type": "Failed",
            "status": "True",
            "lastTransitionTime": LATER,
            "message": "Job was active longer than specified deadline",
        }
    ]
}


def job(status: Json) -> Json:
    labels = {names.RUN_LABEL: names.RUN_SCHEDULED}
    return {"kind": "Job", "metadata": {"name": "made", "uid": "u", "labels": labels}, "status": status}


def pod(created: str, **status: Any) -> Json:
    labels = {"batch.kubernetes.io/job-name": "made"}
    return {"kind": "Pod", "metadata": {"name": created, "labels": labels, "creationTimestamp": created}, **status}


def ended(created: str, exit_code: int, message: str) -> Json:
    state = {"terminated": {"exitCode": exit_code, "message": message, "reason": "Error"}}
    sidecar = {"name": "proxy", "state": {"terminated": {"exitCode": 0, "message": "{}"}}}
    return pod(created, status={"containerStatuses": [sidecar, {"name": names.RUN_CONTAINER, "state": state}]})


def run(status: Json, *pods: Json) -> Run:
    objects = {(item["kind"], item["metadata"]["name"]): item for item in (job(status), *pods)}
    [found] = runs_of(objects, NOW_S)
    return found


def test_completed_job_has_the_result_of_the_attempt_that_succeeded() -> None:
    first = ended("2027-01-15T07:58:00Z", 1, json.dumps({"error": "cannot connect"}))
    found = run(COMPLETE, first, ended("2027-01-15T07:58:30Z", 0, json.dumps({"name": "b", "jobs": 3})))
    assert (found.state, found.purpose, found.ended_at) == ("Completed", names.RUN_SCHEDULED, LATER)
    assert found.result == {"name": "b", "jobs": 3}
    assert found.message == ""
    assert found.ended_s_ago == 60.0


def test_result_of_a_completed_job_is_awaited_for_a_while() -> None:
    recently = {**COMPLETE, "completionTime": "2027-01-15T07:59:50Z"}
    assert run(recently).awaits_result
    assert not run(COMPLETE).awaits_result
    assert not run({}).awaits_result


WAITING = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s3" not found'}}
PULLING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("status", "pods", "message"),
    [
        (FAILED, (), "Job was active longer than specified deadline"),
        (FAILED, (ended("a", 1, '{"error": "access denied"}'),), "access denied"),
        ({}, (ended("a", 1, "Traceback:\n  File x\nValueError: no room\n"),), "ValueError: no room"),
        ({}, (ended("a", 137, ""),), "Error"),
        ({}, (ended("a", 1, '{"error": "first"}'), ended("b", 1, '{"error": "second"}')), "second"),
        (
            {},
            (pod("a", status={"containerStatuses": [{"name": names.RUN_CONTAINER, "state": WAITING}]}),),
            'CreateContainerConfigError: secret "s3" not found',
        ),
        ({}, (pod("a", status={"containerStatuses": [{"name": names.RUN_CONTAINER, "state": PULLING}]}),), ""),
        (
            {},
            (pod("a", status={"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}),),
            "no room",
        ),
        ({}, (pod("a"),), ""),
    ],
)
def test_message_says_why_the_last_attempt_failed_or_does_not_start(
    status: Json, pods: tuple[Json, ...], message: str
) -> None:
    assert run(status, *pods).message == message
