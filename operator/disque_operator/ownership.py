"""Which operator acts on a cluster, if the namespaces of two installations overlap.

An installation is known by its Lease, `NAMESPACE/NAME`. Before it does anything for a cluster, it writes this name to
`status.operator`. The write fails if the cluster has changed since it was read, so only one of two succeeds.

| `status.operator` | annotation names.OPERATOR | the operator |
|---|---|---|
| its own name | none, or its own name | acts |
| none | none, or its own name | claims the cluster, then acts |
| its own name | another name | releases the cluster |
| another name | its own name | claims the cluster when the other one had enough time to release it: it does not run |
| anything else | | does nothing, and says so once |

An operator that runs reads the annotation before each round with actions, and releases a cluster between two rounds.
One that cannot read it cannot renew its Lease either, and stops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, Literal

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.decisions import SOON_S, Event
from disque_operator.executor import LostError, Permit, permitted
from disque_operator.kube import CONFLICT, Kube, KubeError
from disque_operator.posting import EventPoster
from disque_operator.queue import Key

TAKE_OVER_S: Final = 120.0
"""How long the other operator has to release a cluster, in seconds: longer than a round takes."""
WAIT_S: Final = 10.0
IGNORED_S: Final = 300.0
"""Seconds until the next round while another operator acts. Watches report a changed annotation earlier."""

Step = Literal["act", "claim", "release", "take over", "ignore"]


class ForeignError(Exception):
    """Another operator acts on the cluster. `again_s` is when to look again."""

    def __init__(self, again_s: float) -> None:
        super().__init__()
        self.again_s = again_s


def step(cluster: Json, me: str) -> Step:
    """Return what the operator `me` must do, by the table above."""
    owner = (cluster.get("status") or {}).get("operator") or ""
    assigned = (cluster["metadata"].get("annotations") or {}).get(names.OPERATOR) or ""
    if assigned in {"", me}:
        if owner in {"", me}:
            return "act" if owner else "claim"
        return "take over" if assigned else "ignore"
    return "release" if owner == me else "ignore"


class Ownership:
    """Claims and releases clusters for the operator `me`. `clock` is monotonic."""

    def __init__(self, kube: Kube, permit: Permit, events: EventPoster, *, me: str, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._permit = permit
        self._events = events
        self._me = me
        self._clock = clock
        self._waits_since_s: dict[Key, float] = {}
        """Since when another operator does not release a cluster."""
        self._ignored: dict[Key, str] = {}
        """The owner that was reported for a cluster."""

    def acts_on(self, cluster: Json) -> bool:
        """Return whether this operator acts on a cluster, as far as the object shows."""
        return step(cluster, self._me) == "act"

    async def acquire(self, key: Key, cluster: Json) -> Json:
        """Return the cluster if this operator acts on it, claimed if nobody did.

        Raises:
            ForeignError: Another operator acts on it, or it has changed since it was read.
        """
        now = step(cluster, self._me)
        if now == "take over":
            since_s = self._waits_since_s.setdefault(key, self._clock())
            if self._clock() - since_s < TAKE_OVER_S:
                raise ForeignError(WAIT_S)
        else:
            self._waits_since_s.pop(key, None)
        if now in {"claim", "take over"}:
            cluster = await self._write(cluster, self._me)
        if now == "release":
            await self._write(cluster, None)
        if now in {"release", "ignore"}:
            await self._report(key, cluster)
            raise ForeignError(IGNORED_S)
        self.forget(key)
        return cluster

    def forget(self, key: Key) -> None:
        """Forget what is known of a cluster."""
        self._waits_since_s.pop(key, None)
        self._ignored.pop(key, None)

    async def _write(self, cluster: Json, owner: str | None) -> Json:
        status = {name: value for name, value in (cluster.get("status") or {}).items() if name != "operator"}
        try:
            async with permitted(self._permit):
                return await self._kube.write_status(cluster, status | ({"operator": owner} if owner else {}))
        except LostError:
            raise ForeignError(SOON_S) from None
        except KubeError as error:
            if error.status == CONFLICT:
                raise ForeignError(SOON_S) from error
            raise

    async def _report(self, key: Key, cluster: Json) -> None:
        """Say once that this operator ignores a cluster, and how to change that."""
        assigned = (cluster["metadata"].get("annotations") or {}).get(names.OPERATOR)
        owner = assigned or cluster["status"]["operator"]
        if self._ignored.get(key) == owner:
            return
        self._ignored[key] = owner
        text = (
            f"operator {self._me} ignores this cluster, because operator {owner} acts on it. To hand it over: "
            f"kubectl annotate dq {key[1]} --overwrite {names.OPERATOR}={self._me}"
        )
        with contextlib.suppress(LostError):
            async with permitted(self._permit):
                await self._events.post(cluster, [Event("Warning", "OtherOperator", text)])
