"""A model of Jobs, of the pods that make and restore backups, and of the store of the backups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json, timestamp
from support.kubeworld.brokers import Bus, Disk
from support.kubeworld.objects import Api, InvariantError

DURATION_S: Final = 5.0


class JobController:
    """Runs Jobs: each has one pod, which completes or fails after a while."""

    def __init__(self, api: Api, bus: Bus, disks: dict[str, Disk]) -> None:
        self.backups: dict[str, dict[str, int]] = {}
        """The store: REPLICATE of each job, by the name of the backup, the oldest first."""
        self.failure = ""
        """Why pods fail at present; empty if they do not."""
        self.failing_name = ""
        """The Job that fails; empty for all."""
        self.reports = True
        """Whether pods still exist when their Job is complete."""
        self.restored: list[tuple[str, str]] = []
        """Which backup was written to which claim, each time."""
        self._api = api
        self._bus = bus
        self._disks = disks

    def schedule(self, cluster: str, now_s: float) -> str:
        """Create a Job as the CronJob does when it is time; return its name."""
        live = self._api.get("CronJob", names.cron_job(cluster))
        assert live is not None
        name = f"{names.cron_job(cluster)}-{self._api.serial()}"
        template = live["spec"]["jobTemplate"]
        metadata = {
            "name": name,
            "labels": template["metadata"]["labels"],
            "creationTimestamp": timestamp(now_s),
            "ownerReferences": [{"kind": "CronJob", "uid": live["metadata"]["uid"], "controller": True}],
        }
        self._api.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]})
        return name

    def step(self, now_s: float) -> bool:
        """Advance; return whether a Job has changed."""
        jobs = [item for (kind, _), item in self._api.objects.items() if kind == "Job"]
        due = [job for job in jobs if now_s >= job.get("due_s", 0.0)]
        for job in due:
            if job.setdefault("status", {}):
                job["due_s"] = float("inf")
                self._finish(job, now_s)
            else:
                job["status"]["startTime"] = timestamp(now_s)
                job["due_s"] = now_s + DURATION_S
            self._api.touch(job)
        return bool(due)

    def _finish(self, job: Json, now_s: float) -> None:
        name = job["metadata"]["name"]
        fails = self.failure if self.failing_name in {"", name} else ""
        said = {"error": fails} if fails else self._run(job, now_s)
        if "error" not in said:
            job["status"] |= {
                "completionTime": timestamp(now_s),
                "conditions": [{"type": "Complete", "status": "True"}],
            }
        else:
            failed = {"type": "Failed", "status": "True", "lastTransitionTime": timestamp(now_s)}
            job["status"]["conditions"] = [failed]
        if self.reports:
            self._api.put(_pod(job, said, now_s))

    def _run(self, job: Json, now_s: float) -> Json:
        """Run `disque-backup`; return what it reports."""
        words = job["spec"]["template"]["spec"]["containers"][0]["args"]
        match words:
            case ["create", _, "--cluster", cluster, *_]:
                jobs = {name: copies for disk in self._disks.values() for name, copies in disk.jobs.items()}
                name = f"{cluster}-{now_s:.0f}"
                self.backups[name] = {one: jobs[one] for one in jobs if one not in self._bus.acknowledged}
                return {"name": name, "jobs": len(self.backups[name]), "bytes": 100 * len(self.backups[name])}
            case ["find", _, "latest", *_]:
                return {"name": list(self.backups)[-1]} if self.backups else {"error": "there is no complete backup"}
            case ["find", _, name, *_]:
                return {"name": name} if name in self.backups else {"error": f"{name} does not exist"}
            case ["restore", _, name, "--nodes", nodes, "--node", number, *_]:
                return self._restore(name, nodes.split(","), int(number), _claim(job))
            case _:
                raise InvariantError(f"unknown arguments {words}")

    def _restore(self, name: str, nodes: list[str], number: int, claim: str) -> Json:
        """Write the files of a member: each job has one owner, and copies on the next members."""
        live = self._api.get("PersistentVolumeClaim", claim)
        assert live is not None
        live["status"] = {"phase": "Bound", "capacity": {"storage": live["spec"]["resources"]["requests"]["storage"]}}
        self._api.touch(live)
        uid = live["metadata"]["uid"]
        if uid in self._disks:
            return {"name": name, "node": number}
        ids = [f"restored-{name}-{node}" for node in range(len(nodes))]
        hosts = [address.partition(":")[0] for address in nodes]
        known = {ids[node]: hosts[node] for node in range(len(nodes)) if node != number}
        jobs = _share(self.backups[name], len(nodes), number)
        self._disks[uid] = Disk(ids[number], known=known, jobs=jobs)
        self.restored.append((name, claim))
        return {"name": name, "node": number, "owns": {"restored": len(jobs)}}


def _share(jobs: Mapping[str, int], count: int, number: int) -> dict[str, int]:
    return {
        job: copies
        for place, (job, copies) in enumerate(sorted(jobs.items()))
        if (number - place) % count < min(max(copies, 1), count)
    }


def _claim(job: Json) -> str:
    volumes = job["spec"]["template"]["spec"]["volumes"]
    [found] = [one["persistentVolumeClaim"]["claimName"] for one in volumes if one["name"] == names.DATA]
    return str(found)


def _pod(job: Json, said: Json, now_s: float) -> Json:
    name = job["metadata"]["name"]
    terminated = {"exitCode": 1 if "error" in said else 0, "message": json.dumps(said)}
    labels = {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-pod", "labels": labels, "creationTimestamp": timestamp(now_s)},
        "spec": {},
        "status": {"containerStatuses": [{"name": names.RUN_CONTAINER, "state": {"terminated": terminated}}]},
    }
