"""Which backups are deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from disqued.backup.manifest import load_all

if TYPE_CHECKING:
    from disqued.backup.manifest import Manifest
    from disqued.backup.store import Store

DAY_S: Final = 86_400.0
UNFINISHED_S: Final = DAY_S
"""A backup without a manifest, to which nothing was written for this long, was given up."""
_COPY: Final = re.compile(r"[^/]+/[0-9a-f]{40}\.aof")
"""The path of a copy of a member. A folder with anything else is that of others, such as a store below this one."""


@dataclass(frozen=True)
class Retention:
    """How many backups are kept, and for how long. The latest is kept in any case."""

    count: int | None = None
    days: int | None = None

    def expired(self, backups: Sequence[Manifest], now_s: float) -> list[str]:
        """The names of the backups that are deleted, of those of one schedule of one cluster."""
        newest_first = sorted(backups, key=lambda backup: backup.started_at, reverse=True)
        return [
            backup.name
            for place, backup in enumerate(newest_first)
            if place > 0
            and (
                (self.count is not None and place >= self.count)
                or (self.days is not None and now_s - backup.started_at > self.days * DAY_S)
            )
        ]


def unfinished(objects: Mapping[str, float]) -> dict[str, float]:
    """The backups without a manifest, with the time at which something was written last."""
    others = {_folder(path) for path in objects if not _COPY.fullmatch(path)}
    last: dict[str, float] = {}
    for path, written_s in objects.items():
        name = _folder(path)
        if name not in others:
            last[name] = max(written_s, last.get(name, 0.0))
    return last


def _folder(path: str) -> str:
    return path.partition("/")[0]


def prune(store: Store, cluster: str, schedule: str, retention: Retention, now_s: float) -> list[str]:
    """Delete the expired backups of one schedule of a cluster, and those that were given up; return their names."""
    objects = store.objects()
    made = [backup for backup in load_all(store, objects) if (backup.cluster, backup.schedule) == (cluster, schedule)]
    names = retention.expired(made, now_s)
    names += [name for name, written_s in unfinished(objects).items() if now_s - written_s > UNFINISHED_S]
    for name in names:
        paths = [path for path in objects if path.rpartition("/")[0] == name]
        store.delete(sorted(paths, key=lambda path: not path.endswith(".json")))
    return names
