"""The pods that make and restore backups: a CronJob, Jobs, and the volume claims of members that are restored.

Each pod runs `disque-backup` of the broker's image, without privileges and without a token. It reports its result in
the termination message of its container, which the operator reads: so it needs no right in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.backupspec import BACKUPS_PATH, Backup, BackupStore, FromBackup
from disque_operator.certificate_files import AUTHORITY, CERTIFICATE, KEY
from disque_operator.observed import Platform
from disque_operator.resources.common import DATA_PATH, child
from disque_operator.resources.encryption import TLS_PATH, client_port, secret_name, serves_plain, serves_tls
from disque_operator.resources.pod_template import UNPRIVILEGED, placement, security
from disque_operator.resources.workload import claim_template
from disque_operator.spec import Spec

SCHEDULE: Final = "scheduled"
"""The schedule in the manifest of a backup: `prune` deletes only backups of the same one."""
MISSED_S: Final = 3600
"""How late a scheduled backup may begin, in seconds, for example because the controller did not run."""
KEPT_JOBS: Final = 3
RETRIES: Final = 2
RESTORE_RETRIES: Final = 3
_RESULT: Final = "/dev/termination-log"
_PASSWORD_PATH: Final = "/etc/disque-password"  # noqa: S105  a path
_PASSWORD_KEY: Final = "password"  # noqa: S105  a key of a Secret
_CA_PATH: Final = "/etc/disque-ca"


@dataclass(frozen=True)
class Execution:
    """With what pods run."""

    image: str
    platform: Platform


@dataclass(frozen=True)
class _Part:
    """Variables and volumes of a pod for one purpose."""

    env: tuple[Json, ...] = ()
    env_from: tuple[Json, ...] = ()
    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()


def cron_job(spec: Spec, run: Execution) -> Json | None:
    """Return the CronJob that makes backups; None without a schedule."""
    backup = spec.backup
    if backup is None or backup.schedule is None:
        return None
    prune = ["--prune-days", str(backup.days)] if backup.days is not None else []
    body: Json = {
        "schedule": backup.schedule,
        "suspend": backup.suspend or spec.hibernate,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": MISSED_S,
        "successfulJobsHistoryLimit": KEPT_JOBS,
        "failedJobsHistoryLimit": KEPT_JOBS,
        "jobTemplate": {
            "metadata": {"labels": names.run_labels(spec.name, names.RUN_SCHEDULED)},
            "spec": _making(spec, run, backup.store, names.RUN_SCHEDULED, ["--schedule", SCHEDULE, *prune]),
        },
    }
    if backup.time_zone is not None:
        body["timeZone"] = backup.time_zone
    return child(spec, "batch/v1", "CronJob", names.cron_job(spec.name), {"spec": body})


def backup_job(spec: Spec, run: Execution, resource: Json, store: BackupStore | None) -> Json:
    """Return the Job of a DisqueBackup. `store` is that of the resource; by default that of the cluster."""
    where = store or (spec.backup.store if spec.backup else None)
    assert where is not None  # `ondemand` checks it
    metadata = resource["metadata"]
    body = _making(spec, run, where, names.RUN_BACKUP, [])
    manifest = _owned(spec, names.backup_job(metadata["name"]), names.RUN_BACKUP, body, {})
    manifest["metadata"]["ownerReferences"] = [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.BACKUP_KIND,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]
    return manifest


def find_job(spec: Spec, run: Execution, source: FromBackup, members: int) -> Json:
    """Return the Job that finds the backup of which a cluster is made. It notes how many members the cluster gets."""
    store = _store(source.store, read_only=True)
    body = _job(_pod(spec, run, names.RUN_FIND, ["find", source.store.location, source.name], spec.resources, store))
    return _owned(spec, names.find_job(spec.name), names.RUN_FIND, body, {names.MEMBERS: str(members)})


def restore_job(
    spec: Spec, run: Execution, source: FromBackup, backup: str, members: int, ordinal: int, claim_uid: str
) -> Json:
    """Return the Job that writes the files of a member to its volume, which no broker has used."""
    port = names.CLIENT_PORT if serves_plain(spec) else names.TLS_PORT
    nodes = [f"{names.pod_host(spec.name, spec.namespace, one)}:{port}@{names.BUS_PORT}" for one in range(members)]
    words = [
        *("restore", source.store.location, backup, "--nodes", ",".join(nodes), "--node", str(ordinal)),
        *("--into", DATA_PATH, "--identity", spec.uid, "--at-most-once", source.at_most_once.lower(), "--once"),
    ]
    data = _claim(names.DATA, names.volume_claim(spec.name, ordinal), DATA_PATH)
    store = _store(source.store, read_only=True)
    pod = _pod(spec, run, names.RUN_RESTORE, words, spec.resources, store, data)
    pod["spec"] |= placement(spec, names.runs_selector(spec.name))
    notes = {names.BACKUP_NAME: backup, names.MEMBERS: str(members), names.CLAIM_UID: claim_uid}
    return _owned(spec, names.restore_job(spec.name, ordinal), names.RUN_RESTORE, _job(pod), notes)


def restored_claim(spec: Spec, ordinal: int) -> Json:
    """Return the volume claim of a member to which a backup is restored, as the StatefulSet would create it."""
    claim = claim_template(spec)
    name = names.volume_claim(spec.name, ordinal)
    return claim | {"metadata": claim["metadata"] | {"name": name, "namespace": spec.namespace}}


def _making(spec: Spec, run: Execution, store: BackupStore, label: str, words: list[str]) -> Json:
    """Return the spec of a Job that makes a backup."""
    settings = spec.backup or Backup(store=store)
    words = ["create", store.location, "--cluster", names.backups_of(spec.name, spec.namespace), *words]
    pod = _pod(spec, run, label, words, settings.resources, _store(store, read_only=False), _connection(spec))
    return _job(pod) | {"backoffLimit": RETRIES, "activeDeadlineSeconds": settings.timeout_s}


def _owned(spec: Spec, name: str, label: str, body: Json, annotations: Json) -> Json:
    manifest = child(spec, "batch/v1", "Job", name, {"spec": body}, annotations)
    manifest["metadata"]["labels"] = names.run_labels(spec.name, label)
    return manifest


def _job(pod: Json) -> Json:
    return {"backoffLimit": RESTORE_RETRIES, "template": pod}


def _pod(spec: Spec, run: Execution, label: str, words: list[str], resources: Json, *parts: _Part) -> Json:
    """Return the template of a pod. Each attempt is a pod of its own, whose message stays."""
    container: Json = {
        "name": names.RUN_CONTAINER,
        "image": run.image,
        "command": ["disque-backup"],
        "args": [*words, "--result", _RESULT],
        "resources": resources,
        "terminationMessagePath": _RESULT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": UNPRIVILEGED,
    }
    if spec.image_pull_policy:
        container["imagePullPolicy"] = spec.image_pull_policy
    collected = {
        "env": [entry for part in parts for entry in part.env],
        "envFrom": [entry for part in parts for entry in part.env_from],
        "volumeMounts": [entry for part in parts for entry in part.mounts],
    }
    container |= {name: value for name, value in collected.items() if value}
    pod: Json = {
        "serviceAccountName": names.service_account(spec.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": security(run.platform),
        "containers": [container],
        "volumes": [entry for part in parts for entry in part.volumes],
        "tolerations": list(spec.tolerations),
        "nodeSelector": dict(spec.node_selector),
        "imagePullSecrets": [{"name": secret.name} for secret in spec.image_pull_secrets],
    }
    return {
        "metadata": {"labels": names.run_labels(spec.name, label)},
        "spec": {name: value for name, value in pod.items() if value != [] and value != {}},
    }


def _store(store: BackupStore, *, read_only: bool) -> _Part:
    env_from = ({"secretRef": {"name": store.secret_name}},) if store.secret_name else ()
    if store.claim_name is None:
        return _Part(env_from=env_from)
    claim = _claim("backups", store.claim_name, BACKUPS_PATH, read_only=read_only)
    return _Part(env_from=env_from, volumes=claim.volumes, mounts=claim.mounts)


def _claim(volume: str, name: str, path: str, *, read_only: bool = False) -> _Part:
    mount: Json = {"name": volume, "mountPath": path}
    return _Part(
        volumes=({"name": volume, "persistentVolumeClaim": {"claimName": name}},),
        mounts=(mount | {"readOnly": True} if read_only else mount,),
    )


def _connection(spec: Spec) -> _Part:
    """Return what a client needs: the address of the service, the password, and the authority that it trusts."""
    env = {"DISQUE_HOST": names.client_host(spec.name, spec.namespace), "DISQUE_PORT": str(client_port(spec))}
    volumes: list[Json] = []
    mounts: list[Json] = []

    def mount(name: str, path: str, source: Json) -> None:
        volumes.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": path, "readOnly": True})

    if spec.auth.enabled:
        env["DISQUE_PASSWORD_FILE"] = f"{_PASSWORD_PATH}/{_PASSWORD_KEY}"
        only = [{"key": _PASSWORD_KEY, "path": _PASSWORD_KEY}]
        mount("password", _PASSWORD_PATH, {"secret": {"secretName": names.client_secret(spec.name), "items": only}})
    if serves_tls(spec):
        env |= {"DISQUE_TLS": "yes", "DISQUE_CACERT": f"{_CA_PATH}/{AUTHORITY}"}
        mount("ca", _CA_PATH, {"configMap": {"name": names.ca_config_map(spec.name)}})
        if spec.tls.client_certificates != "Disabled":
            env |= {"DISQUE_CERT": f"{TLS_PATH}/{CERTIFICATE}", "DISQUE_KEY": f"{TLS_PATH}/{KEY}"}
            mount("certificate", TLS_PATH, {"secret": {"secretName": secret_name(spec)}})
    return _Part(tuple(_variables(env)), (), tuple(volumes), tuple(mounts))


def _variables(env: dict[str, str]) -> Iterator[Json]:
    for name, value in env.items():
        yield {"name": name, "value": value}
