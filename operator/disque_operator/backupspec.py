"""`spec.backup` and `spec.bootstrap` of a `DisqueCluster`: where backups are, when they are made, and restoring one."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from disque_operator.sections import Name, Resources, Section, rule, rules

BACKUPS_PATH: Final = "/backups"
"""Where pods mount the volume claim of a store."""
_DAY_S: Final = 86400
_CRON_FIELD: Final = r"[0-9A-Za-z*/,?-]+"
_CRON: Final = (
    rf"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|{_CRON_FIELD}( +{_CRON_FIELD}){{4}})$"  # no TZ=
)
_IN_CLAIM: Final = f"file://{BACKUPS_PATH}"
BackupName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=253)]


class BackupStore(Section):
    """Where backups are."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.url) || has(self.claimName)",
                "store.url or store.claimName is missing: name an object store such as s3://BUCKET/PREFIX, or a claim",
            ),
            rule(
                "!has(self.url) || has(self.claimName) || "
                "self.url.matches('^(s3|s3a|gs|az|azure|abfs|abfss|adl|https)://.+')",
                "store.url must be the URL of an object store, such as s3://BUCKET/PREFIX, gs://BUCKET or "
                "az://CONTAINER; for a directory set store.claimName",
            ),
            rule(
                "!has(self.url) || !has(self.claimName) || "
                f"self.url == '{_IN_CLAIM}' || self.url.startsWith('{_IN_CLAIM}/')",
                f"with store.claimName, store.url must be {_IN_CLAIM} or below it, where the claim is mounted",
            ),
        )
    )

    url: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        default=None,
        description="URL of an object store, such as `s3://BUCKET/PREFIX`. With `claimName`, a directory on the claim, "
        f"such as `{_IN_CLAIM}/mails`; default `{_IN_CLAIM}`.",
    )
    secret_name: Name | None = Field(
        default=None,
        description="A Secret whose entries become environment variables, such as `AWS_ACCESS_KEY_ID`, "
        "`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.",
    )
    claim_name: Name | None = Field(
        default=None,
        description="A volume claim of yours in the same namespace that keeps the backups, instead of an object store.",
    )

    @property
    def location(self) -> str:
        """Return the URL that `disque-backup` gets."""
        return self.url or _IN_CLAIM


class Backup(Section):
    """Backups of the jobs of all members."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.schedule) || (!has(self.timeZone) && !has(self.days) && !self.suspend)",
                "backup.timeZone, backup.days and backup.suspend have no effect without backup.schedule: set it, or "
                "remove them",
            ),
        )
    )

    store: BackupStore
    schedule: Annotated[str, Field(max_length=128, pattern=_CRON)] | None = Field(
        default=None,
        description="When backups are made, in the format of cron, for example `0 2 * * *`. By default, only for each "
        "DisqueBackup.",
    )
    time_zone: Annotated[str, Field(max_length=64, min_length=1)] | None = Field(
        default=None, description="Time zone of the schedule by its name, for example `Europe/Berlin`. Default: UTC."
    )
    suspend: bool = Field(default=False, description="Make no scheduled backups for now.")
    days: Annotated[int, Field(ge=1, le=36500)] | None = Field(
        default=None,
        description="How many days scheduled backups are kept. The latest is always kept. By default, all are.",
    )
    max_age_s: Annotated[int, Field(ge=60, le=366 * _DAY_S)] = Field(
        default=2 * _DAY_S,
        description="When the condition BackedUp becomes False, in seconds since the last scheduled backup.",
    )
    timeout_s: Annotated[int, Field(ge=60, le=7 * _DAY_S)] = Field(
        default=6 * 3600, description="How long a backup with its retries may take, in seconds."
    )
    resources: Resources = Field(
        default={"requests": {"cpu": "100m", "memory": "256Mi"}},
        description="CPU and memory of the pods that make backups. They keep the IDs of all jobs in memory. "
        "Default: requests of 100m CPU and 256Mi.",
    )


class FromBackup(Section):
    """A backup that a new cluster is made of."""

    store: BackupStore
    name: BackupName = Field(
        default="latest",
        description="Name of the backup. With `latest`, the operator looks once which one that is, before it restores: "
        "the latest in the store, whichever cluster it is of.",
    )
    at_most_once: Literal["Drop", "Queue"] = Field(
        default="Drop",
        description="What happens to jobs with RETRY 0 that waited in a queue. Drop: they are left out, because a "
        "worker may have had them after the backup. Queue: they are queued, and may be delivered twice.",
    )


class Bootstrap(Section):
    """What a new cluster begins with."""

    from_backup: FromBackup
