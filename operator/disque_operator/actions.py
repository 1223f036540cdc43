"""What `plan` may have done, as values. `act` does them in order and stops at the first that fails.

Each is safe to do twice, and safe to leave out: the next round looks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from disque_operator.apivalues import Json


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a manifest, with our field manager.

    A manifest for an object that was there has its `resourceVersion`: a conflict (409) means that it has changed since,
    and that the next round has to look again.
    """

    manifest: Json
    why: str


@dataclass(frozen=True)
class DeleteChild:
    """Delete an object that is not wanted any more, or a volume claim; only the one with this UID."""

    kind: str
    name: str
    uid: str
    why: str


@dataclass(frozen=True)
class DeletePod:
    """Have a pod replaced or gone: a controlled shutdown, its file says what was queued. Only the one with this UID."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True)
class Command:
    """A command to the broker in a pod. `act` refuses when the broker is not the expected one any more."""

    pod: str
    node_id: str
    words: tuple[str, ...]
    why: str
    secret: bool = False
    """Its words must not be logged."""


Action: TypeAlias = Apply | DeleteChild | DeletePod | Command
