"""DisqueBackups: a Job for each makes one backup, and the status of the resource says what became of it.

| observed | phase and reason |
|---|---|
| the phase is Completed or Failed | nothing: a backup is made once |
| neither the resource nor the cluster names a store | Pending, NoStore |
| the cluster hibernates, or has no members yet | Pending, NoMembers |
| another backup runs, also a scheduled one | Pending, OtherBackup: members make one copy at a time |
| otherwise | create the Job |
| the Job runs | Running; the message says why an attempt failed |
| the Job is complete, and its result is read | Completed, with the name of the backup |
| the Job failed | Failed, with the reason |

The resource owns its Job. Deleting it deletes neither the backup nor anything else in the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError

from disque_operator import names
from disque_operator.actions import Create, WriteStatus
from disque_operator.apivalues import Json
from disque_operator.decisions import Decision
from disque_operator.declared import FINAL, Verdict, status_of
from disque_operator.members import ClusterView
from disque_operator.observed import Declared
from disque_operator.ondemandspec import BackupFields
from disque_operator.resources.backups import Execution, backup_job
from disque_operator.runs import Run

CONDITION: Final = "Completed"


def decide(view: ClusterView, run: Execution) -> Decision:
    """Decide the next step for the DisqueBackups of a cluster, the oldest first."""
    runs = {one.owner: one for one in view.observed.runs if one.purpose == names.RUN_BACKUP}
    making = (names.RUN_BACKUP, names.RUN_SCHEDULED)
    busy = any(one.state == "Running" for one in view.observed.runs if one.purpose in making)
    creates: list[Create] = []
    statuses: list[WriteStatus] = []
    for declared in view.observed.backups:
        resource = declared.resource
        if (resource.get("status") or {}).get("phase") in FINAL:
            continue
        job = runs.get(str(resource["metadata"]["uid"]))
        if job is not None:
            statuses += _report(view, declared, job)
            continue
        refused, fields = _refusal(view, declared, busy=busy)
        if fields is not None:
            creates.append(Create(backup_job(view.spec, run, resource, fields.store), "a DisqueBackup asks for it"))
            busy = True
        statuses += status_of(view, declared, {CONDITION: refused}, {"phase": "Pending", "message": refused.message})
    return Decision((*creates, *statuses))


def _refusal(view: ClusterView, declared: Declared, *, busy: bool) -> tuple[Verdict, BackupFields | None]:
    """Return what a resource without a Job waits for, and its fields if the Job can be created."""
    try:
        fields = BackupFields.model_validate(declared.resource.get("spec") or {})
    except ValidationError as error:
        return Verdict(False, "Invalid", f"the spec is invalid: {error.errors()[0]['msg']}"), None
    if fields.store is None and view.spec.backup is None:
        text = "neither spec.store nor spec.backup.store of the cluster says where backups are kept: set the latter"
        return Verdict(False, "NoStore", text), None
    if not view.members:
        return Verdict(False, "NoMembers", "the cluster has no members yet, or hibernates"), None
    if busy:
        return Verdict(False, "OtherBackup", "another backup of the cluster is made first"), None
    return Verdict(False, "Starting", "the Job is created"), fields


def _report(view: ClusterView, declared: Declared, job: Run) -> Iterator[WriteStatus]:
    more: Json = {"jobName": job.name} | ({"startTime": job.started_at} if job.started_at else {})
    if job.state == "Completed" and not job.awaits_result:
        name = str(job.result.get("name") or "")
        text = f"backup {name} is made" if name else f"the backup is made; kubectl logs job/{job.name} has its name"
        verdict = Verdict(True, "Completed", text)
        more |= {"phase": "Completed", "completionTime": job.ended_at}
        more |= {"backupName": name, "jobs": job.result.get("jobs", 0), "bytes": job.result.get("bytes", 0)}
    elif job.state == "Failed":
        verdict = Verdict(False, "Failed", job.message or f"see kubectl describe job {job.name}")
        more |= {"phase": "Failed", "completionTime": job.ended_at}
    else:
        last = f"; the last attempt failed: {job.message}" if job.message else ""
        verdict = Verdict(False, "Running", f"the backup is being made{last}")
        more |= {"phase": "Running"}
    yield from status_of(view, declared, {CONDITION: verdict}, more | {"message": verdict.message})
