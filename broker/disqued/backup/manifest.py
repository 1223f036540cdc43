"""The manifest of a backup: what it consists of. It is written last, so a backup without one is incomplete."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from disqued.backup.errors import BackupError
from disqued.backup.store import Store

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SETTINGS: Final = "queues.conf"
LATEST: Final = "latest"
"""Instead of a name: the complete backup that began last."""


@dataclass(frozen=True)
class MemberCopy:
    """The copy of the jobs of one member."""

    id: str
    """The ID of the node."""
    address: str
    object: str
    """Its name in the folder of the backup."""
    bytes: int
    sha256: str


@dataclass(frozen=True)
class SettingsCopy:
    """The settings of queues and the marks of purges, merged from all members."""

    object: str
    """Its name in the folder of the backup."""
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A complete backup."""

    name: str
    cluster: str
    schedule: str
    """What made it: backups of one schedule are deleted together; empty for one on demand."""
    started_at: float
    completed_at: float
    version: str
    """The version of the program that made it."""
    jobs: int
    """Unfinished jobs, each counted once."""
    members: tuple[MemberCopy, ...] = field(default_factory=tuple)
    settings: SettingsCopy | None = None
    """None in backups of earlier releases, which have none."""

    @property
    def size_bytes(self) -> int:
        """The size of all copies."""
        return sum(member.bytes for member in self.members) + (0 if self.settings is None else self.settings.bytes)

    def path(self, copy: MemberCopy | SettingsCopy) -> str:
        """Where a copy is in the store."""
        return f"{self.name}/{copy.object}"

    def encode(self) -> bytes:
        """The manifest as it is stored."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2).encode() + b"\n"


def decode(data: bytes, path: str) -> Manifest:
    """Parse a manifest."""
    try:
        fields: dict[str, Any] = json.loads(data)
        found = fields.pop("format")
        if found != FORMAT:
            raise BackupError(f"{path} has format {found}, this version reads format {FORMAT}")
        members = tuple(MemberCopy(**member) for member in fields.pop("members"))
        settings = fields.pop("settings", None)
        return Manifest(**fields, members=members, settings=None if settings is None else SettingsCopy(**settings))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackupError(f"{path} is not a manifest: {error}") from error


def load(store: Store, name: str) -> Manifest:
    """Read the manifest of a backup, or of the one that began last."""
    if name == LATEST:
        complete = load_all(store, store.objects())
        if not complete:
            raise BackupError(f"{store.url} has no complete backup")
        return max(complete, key=lambda manifest: manifest.started_at)
    path = f"{name}/{MANIFEST}"
    return decode(b"".join(store.read(path)), path)


def load_all(store: Store, objects: Iterable[str]) -> list[Manifest]:
    """Read the manifests of all complete backups. Those of a store below this one are not among them."""
    places = (path.rpartition("/") for path in sorted(objects))
    return [load(store, folder) for folder, _, name in places if name == MANIFEST and folder and "/" not in folder]
