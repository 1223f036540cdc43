"""Restores a backup to the volumes of a new cluster, before its StatefulSet exists.

The volume claims of the members are created with the names that the StatefulSet uses, a Job for each member writes its
files, and then the StatefulSet finds the volumes. So nothing of the restore remains in the pods: a member that loses
its volume later joins as a new one, as always, and its jobs do not come a second time.

| observed | decision |
|---|---|
| the StatefulSet exists, or the status says that the restore is complete | it is over; delete the Jobs |
| nothing was found yet, and volumes of the cluster exist | do nothing and say so: they may hold jobs |
| nothing was found yet | a Job that finds the backup, and notes the number of members |
| that Job is complete | note the name of the backup and the number of members in the status, before anything else |
| they are noted | create the claims; then for each claim a Job that restores the member |
| a Job restored another claim than the present one | delete the Job |
| a Job failed | report why; delete it after a minute, so that it is made again |
| all Jobs are complete | create the StatefulSet |

All members restore the same backup, whatever `latest` becomes meanwhile, and a cluster whose number of members is
changed meanwhile gets the noted one first. If the status is lost, the Jobs that restore tell both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from disque_operator import names
from disque_operator.actions import Create, DeleteChild
from disque_operator.apivalues import Json, timestamp
from disque_operator.backupspec import FromBackup
from disque_operator.decisions import NOTHING, Decision, Note, problem, progress
from disque_operator.members import ClusterView
from disque_operator.resources.backups import Execution, find_job, restore_job, restored_claim
from disque_operator.runs import Run

RETRY_S: Final = 60.0
"""When a failed Job is made again, in seconds: what it needs may exist by then."""
_OURS: Final = (names.RUN_FIND, names.RUN_RESTORE)


@dataclass(frozen=True)
class Restore:
    """Whether members must not be created yet, and what to do."""

    waits: bool
    decision: Decision = NOTHING


@dataclass(frozen=True)
class _Backup:
    """The backup that is restored, and to how many members."""

    name: str
    members: int


def decide(view: ClusterView, run: Execution) -> Restore:
    """Decide the next step."""
    if view.spec.bootstrap is None:
        return Restore(False)
    if _is_over(view):
        return Restore(False, Decision(tuple(_deletions(_runs(view), "the restore is over"))))
    source = view.spec.bootstrap.from_backup
    found = _found(view)
    if found is None:
        return Restore(True, _find(view, run, source))
    if not _noted(view):
        return Restore(True, Decision(notes=(progress("FindingBackup", f"found backup {found.name}", "Creating"),)))
    if _is_restored(view, found):
        return Restore(False)
    actions = tuple(_restoring(view, run, source, found))
    return Restore(True, Decision(actions, _notes(view, "RestoringBackup", f"restoring backup {found.name}")))


def state(view: ClusterView) -> Json:
    """Return the field `bootstrap` of the status; empty without a bootstrap."""
    if view.spec.bootstrap is None:
        return {}
    before: Json = view.observed.status.get("bootstrap") or {}
    if "completedAt" in before:
        return before
    found = _found(view)
    noted: Json = {"backup": found.name, "members": found.members} if found else {}
    if found is not None and _is_restored(view, found):
        owned = (run.result.get("owns") or {} for run in _runs(view) if run.purpose == names.RUN_RESTORE)
        jobs = sum(int(counts.get("restored", 0)) for counts in owned)
        return noted | {"jobs": jobs, "completedAt": timestamp(view.now_s)}
    if view.stateful_set is not None:
        return noted | {"completedAt": timestamp(view.now_s)}
    former = str(before.get("message") or "") if bool(found) == _noted(view) else ""
    message = _failure(view) or former
    return noted | ({"message": message} if message else {})


def _is_over(view: ClusterView) -> bool:
    return view.stateful_set is not None or "completedAt" in (view.observed.status.get("bootstrap") or {})


def _noted(view: ClusterView) -> bool:
    return "backup" in (view.observed.status.get("bootstrap") or {})


def _runs(view: ClusterView) -> list[Run]:
    """Return the Jobs of this resource, not those of an earlier one with its name."""
    return [run for run in view.observed.runs if run.purpose in _OURS and run.owner == view.spec.uid]


def _found(view: ClusterView) -> _Backup | None:
    """Return what is noted in the status, or else in Jobs that restore, or else what was found."""
    noted: Json = view.observed.status.get("bootstrap") or {}
    if "backup" in noted:
        return _Backup(str(noted["backup"]), int(noted["members"]))
    runs = _runs(view)
    for run in runs:
        if run.purpose == names.RUN_RESTORE:
            return _Backup(run.notes[names.BACKUP_NAME], int(run.notes[names.MEMBERS]))
    for run in runs:
        if run.purpose == names.RUN_FIND and run.result:
            return _Backup(str(run.result["name"]), int(run.notes[names.MEMBERS]))
    return None


def _find(view: ClusterView, run: Execution, source: FromBackup) -> Decision:
    job = next((one for one in _runs(view) if one.purpose == names.RUN_FIND), None)
    if job is None and view.observed.volumes:
        claims = ", ".join(volume.name for volume in view.observed.volumes)
        text = (
            f"{claims} may hold jobs of an earlier cluster of this name, so the backup is not restored: delete the "
            "claims, or create the DisqueCluster without spec.bootstrap to use them"
        )
        return Decision(notes=(problem("VolumesExist", text),))
    notes = _notes(view, "FindingBackup", f"looking for backup {source.name} in {source.store.location}")
    if job is None:
        return Decision((Create(find_job(view.spec, run, source, view.spec.replicas), "it is not known"),), notes)
    lost = job.state == "Completed" and not job.awaits_result
    return Decision(tuple(_deletions([job], "its result is lost") if lost else _retries([job])), notes)


def _restoring(view: ClusterView, run: Execution, source: FromBackup, found: _Backup) -> Iterator[Create | DeleteChild]:
    jobs = {one.name: one for one in _runs(view)}
    # The volume of a store may be usable on one Kubernetes node only
    at_a_time = 1 if source.store.claim_name else found.members
    unfinished = 0
    for ordinal in range(found.members):
        claim = view.volumes.get(ordinal)
        job = jobs.get(names.restore_job(view.spec.name, ordinal))
        if claim is None:
            yield Create(restored_claim(view.spec, ordinal), "a backup is restored to it")
        elif job is not None and job.notes.get(names.CLAIM_UID) != claim.uid:
            yield from _deletions([job], "it restored another volume")
        elif job is not None:
            yield from _retries([job])
        elif unfinished < at_a_time and not claim.terminating:
            manifest = restore_job(view.spec, run, source, found.name, found.members, ordinal, claim.uid)
            yield Create(manifest, f"it restores {names.pod(view.spec.name, ordinal)}")
        unfinished += job is None or job.state != "Completed"


def _is_restored(view: ClusterView, found: _Backup) -> bool:
    """Return whether the present volume of each member is restored."""
    done = {
        (run.name, run.notes.get(names.CLAIM_UID))
        for run in _runs(view)
        if run.state == "Completed" and not run.awaits_result
    }
    claims = {ordinal: volume.uid for ordinal, volume in view.volumes.items() if not volume.terminating}
    return all(
        (names.restore_job(view.spec.name, ordinal), claims.get(ordinal, "")) in done
        for ordinal in range(found.members)
    )


def _failure(view: ClusterView) -> str:
    """Return why a Job failed or cannot run; empty if none did."""
    runs = (run for run in _runs(view) if run.state != "Completed")
    return next((f"{run.name}: {run.message}" for run in runs if run.message or run.state == "Failed"), "")


def _notes(view: ClusterView, reason: str, message: str) -> tuple[Note, ...]:
    """Return a note about the progress, and one about a failure until the Jobs that failed succeed."""
    ahead, failure = progress(reason, message, "Creating"), state(view).get("message")
    if not failure:
        return (ahead,)
    return (problem("RestoreFailed", f"{message} fails and is tried again: {failure}"), ahead)


def _retries(runs: Sequence[Run]) -> Iterator[DeleteChild]:
    return _deletions(
        [run for run in runs if run.state == "Failed" and run.ended_s_ago >= RETRY_S], "it is tried again"
    )


def _deletions(runs: Sequence[Run], why: str) -> Iterator[DeleteChild]:
    for run in runs:
        yield DeleteChild("Job", run.name, run.uid, why)
