"""The Jobs that make and restore backups, as values, and what their pods report in their termination messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from disque_operator import names
from disque_operator.apivalues import Json, condition_of, seconds

State: TypeAlias = Literal["Running", "Completed", "Failed"]
_JOB_NAME: Final = "batch.kubernetes.io/job-name"
"""The label by which Kubernetes finds the pods of a Job."""
_HARMLESS: Final = ("", "ContainerCreating", "PodInitializing")
_LONGEST_MESSAGE: Final = 500
_REPORT_S: Final = 30.0
"""How long a completed Job may lack its result, in seconds: the pod may have been listed before the Job."""


@dataclass(frozen=True)
class Run:
    """A Job."""

    name: str
    uid: str
    purpose: str
    """Its label names.RUN_LABEL."""
    state: State
    started_at: str = ""
    ended_at: str = ""
    ended_s_ago: float = 0.0
    result: Json = field(default_factory=dict)
    """What a pod that completed reported; empty if there is none."""
    message: str = ""
    """Why its last attempt failed, or cannot start."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Its annotations."""
    owner: str = ""
    """The UID of the resource or the CronJob that controls it."""

    @property
    def awaits_result(self) -> bool:
        """Return whether its result may still be read."""
        return self.state == "Completed" and not self.result and self.ended_s_ago < _REPORT_S


def runs_of(objects: Mapping[tuple[str, str], Json], now_s: float) -> tuple[Run, ...]:
    """Return the Jobs of a cluster, by name."""
    pods: dict[str, list[Json]] = {}
    for (kind, _), item in objects.items():
        job = (item["metadata"].get("labels") or {}).get(_JOB_NAME)
        if kind == "Pod" and job:
            pods.setdefault(job, []).append(item)
    jobs = sorted((name, item) for (kind, name), item in objects.items() if kind == "Job")
    return tuple(_run(item, pods.get(name, ()), now_s) for name, item in jobs)


def _run(job: Json, pods: Sequence[Json], now_s: float) -> Run:
    metadata, status = job["metadata"], job.get("status") or {}
    failed = condition_of(status, "Failed")
    has_failed = failed.get("status") == "True"
    completed = condition_of(status, "Complete").get("status") == "True"
    state: State = "Failed" if has_failed else "Completed" if completed else "Running"
    ended_at = str((failed.get("lastTransitionTime") if has_failed else status.get("completionTime")) or "")
    in_order = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)
    texts = [text for pod in in_order if (text := _message(pod))]
    results = [found for pod in in_order if _exit_status(pod) == 0 and (found := _parsed(_said(pod)))]
    message = (texts[0] if texts else str(failed.get("message") or "")) if state != "Completed" else ""
    return Run(
        metadata["name"],
        metadata["uid"],
        (metadata.get("labels") or {}).get(names.RUN_LABEL, ""),
        state,
        str(status.get("startTime") or ""),
        ended_at,
        max(0.0, now_s - seconds(ended_at)) if ended_at else 0.0,
        results[0] if results and state == "Completed" else {},
        " ".join(message.split())[:_LONGEST_MESSAGE],
        metadata.get("annotations") or {},
        next((one["uid"] for one in metadata.get("ownerReferences") or () if one.get("controller")), ""),
    )


def _container(pod: Json) -> Json:
    found: list[Json] = (pod.get("status") or {}).get("containerStatuses") or []
    state: Json = next((one.get("state") or {} for one in found if one["name"] == names.RUN_CONTAINER), {})
    return state


def _exit_status(pod: Json) -> int | None:
    found: int | None = (_container(pod).get("terminated") or {}).get("exitCode")
    return found


def _said(pod: Json) -> str:
    return str((_container(pod).get("terminated") or {}).get("message") or "").strip()


def _parsed(text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _message(pod: Json) -> str:
    """Return why a pod failed or cannot start; empty if it does neither."""
    state = _container(pod)
    terminated, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if terminated.get("exitCode"):
        said = _said(pod)
        lines = [line.strip() for line in said.splitlines() if line.strip()] or [""]
        return str(_parsed(said).get("error") or lines[-1] or terminated.get("reason") or "failed")
    if waiting.get("reason", "") not in _HARMLESS:
        return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    scheduled = condition_of(pod.get("status") or {}, "PodScheduled")
    return str(scheduled.get("message") or "") if scheduled.get("status") == "False" else ""
