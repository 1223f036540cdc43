"""Scheduled backups: the CronJob that makes them, what the status says about the last one, and the condition BackedUp.

The operator makes no backup itself and reads no store. It learns the result from the pod of the last Job; the status
keeps it, because Jobs and pods are removed after a while.

| the schedule | the last backup that was made | a later attempt failed | BackedUp |
|---|---|---|---|
| suspended, or the cluster hibernates | any | any | False, Suspended |
| active | longer ago than `backup.maxAgeSeconds`, or none for that time | any | False, TooOld |
| active | none, but the schedule is new | no | False, NoneYet |
| active | recent, or the schedule is new | yes | True if there is a recent one, LastFailed |
| active | recent, but old ones cannot be deleted | no | True, NotPruned |
| active | recent | no | True, Recent |

The name and size of a backup are read when its Job is seen to be complete; if the pod is gone by then, only the time is
known.
"""

from __future__ import annotations

from collections.abc import Iterable

from disque_operator import children, names
from disque_operator.apivalues import Json, condition_of, seconds
from disque_operator.backupspec import Backup
from disque_operator.conditions import condition
from disque_operator.decisions import Decision
from disque_operator.members import ClusterView
from disque_operator.resources.backups import Execution, cron_job
from disque_operator.runs import Run

CONDITION = "BackedUp"


def decide(view: ClusterView, run: Execution) -> Decision:
    """Decide about the CronJob. It comes late in a round: the API server may reject its schedule."""
    return children.optional(view, "CronJob", names.cron_job(view.spec.name), cron_job(view.spec, run))


def last(view: ClusterView) -> Json:
    """Return the field `backup` of the status; empty if no backup was attempted."""
    if view.spec.backup is None:
        return {}
    before: Json = view.observed.status.get("backup") or {}
    runs = [run for run in view.observed.runs if run.purpose == names.RUN_SCHEDULED]
    found = _success(before, (run for run in runs if run.state == "Completed"))
    failure = _failure(before, (run for run in runs if run.state == "Failed"))
    later = failure.get("lastFailureTime", "") > found.get("lastSuccessTime", "")
    return found | (failure if later else {})


def _success(before: Json, completed: Iterable[Run]) -> Json:
    fields = ("lastSuccessTime", "lastName", "lastJobs", "lastBytes", "pruneError")
    found = {name: before[name] for name in fields if name in before}
    newest = max(completed, key=lambda run: run.ended_at, default=None)
    if newest is None or newest.ended_at < found.get("lastSuccessTime", ""):
        return found
    if not newest.result:  # the pod is gone, or was listed before the Job
        return found if newest.ended_at == found.get("lastSuccessTime") else {"lastSuccessTime": newest.ended_at}
    said = newest.result
    made: Json = {
        "lastSuccessTime": newest.ended_at,
        "lastName": str(said.get("name", "")),
        "lastJobs": said.get("jobs", 0),
        "lastBytes": said.get("bytes", 0),
    }
    return made | ({"pruneError": str(said["prune_error"])} if said.get("prune_error") else {})


def _failure(before: Json, failed: Iterable[Run]) -> Json:
    found: Json = {name: before[name] for name in ("lastFailureTime", "lastFailureMessage") if name in before}
    newest = max(failed, key=lambda run: run.ended_at, default=None)
    if newest is None or newest.ended_at <= found.get("lastFailureTime", ""):
        return found
    text = newest.message or f"see kubectl describe job {newest.name}"
    return {"lastFailureTime": newest.ended_at, "lastFailureMessage": text}


def backed_up(view: ClusterView, made: Json) -> tuple[Json, ...]:
    """Return the condition BackedUp; none without a schedule. `made` is the field `backup` of the status."""
    backup = view.spec.backup
    if backup is None or backup.schedule is None:
        return ()
    return (_condition(view, backup, made),)


def _condition(view: ClusterView, backup: Backup, made: Json) -> Json:
    at, name = made.get("lastSuccessTime", ""), made.get("lastName", "")
    which = f"the last backup is {name or f'that of {at}'}" if at else "no backup was made yet"
    failure = f"the last attempt failed: {made['lastFailureMessage']}" if "lastFailureMessage" in made else ""
    if backup.suspend or view.spec.hibernate:
        why = "spec.backup.suspend is true" if backup.suspend else "the cluster hibernates"
        return condition(CONDITION, False, "Suspended", f"{why}; {which}")
    if view.now_s - _since_s(view, at) > backup.max_age_s:
        text = f"for longer than spec.backup.maxAgeSeconds no backup was made; {failure or which}"
        return condition(CONDITION, False, "TooOld", text)
    if failure:
        return condition(CONDITION, bool(at), "LastFailed", f"{failure}; {which}")
    if not at:
        return condition(CONDITION, False, "NoneYet", which)
    if "pruneError" in made:
        return condition(CONDITION, True, "NotPruned", f"{which}; old ones cannot be deleted: {made['pruneError']}")
    return condition(CONDITION, True, "Recent", which)


def _since_s(view: ClusterView, at: str) -> float:
    """Return the time of the last backup, or from when on there was none."""
    if at:
        return seconds(at)
    before = condition_of(view.observed.status, CONDITION)
    return seconds(before["lastTransitionTime"]) if before else view.now_s
