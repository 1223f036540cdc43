"""The `spec` of a `DisqueBackup`: one backup of a cluster, made when the resource is created."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from disque_operator.backupspec import BackupStore
from disque_operator.sections import Section, rule, rules
from disque_operator.userspec import ClusterReference


class BackupFields(Section):
    """The desired backup."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self == oldSelf", "spec cannot be changed: a backup is made once, so create another DisqueBackup"),
        )
    )

    cluster_ref: ClusterReference
    store: BackupStore | None = Field(
        default=None, description="Where the backup is kept. Defaults to `backup.store` of the cluster."
    )
