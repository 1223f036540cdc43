"""Leader election: only the holder of a Lease acts, as long as it renews the Lease in time.

Wall clocks are not trusted. A waiting operator measures the duration with its own clock, from the last change of the
Lease that it observed. The holder measures from before it sent its last renewal, and stops before the duration is over.
Between the two are DURATION_S - STOP_S seconds for requests in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kube import CONFLICT, NOT_FOUND, KubeError

DURATION_S: Final = 15.0
STOP_S: Final = 10.0
"""How long the holder acts after it started its last renewal."""
RENEW_S: Final = 4.0
RETRY_S: Final = 1.0

_LOG: Final = logging.getLogger(__name__)


class Store(Protocol):
    """The part of `kube.Kube` that a lease needs."""

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """Return the Lease."""

    async def create(self, kind: str, namespace: str, body: Json) -> Json:
        """Create the Lease."""

    async def replace(self, kind: str, namespace: str, body: Json) -> Json:
        """Replace the Lease."""


class Lease:
    """Whether this process may act. `clock` must be monotonic and include the time that the host is suspended."""

    def __init__(
        self,
        store: Store,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._now = now
        self._until_s = float("-inf")
        self._lease: Json | None = None
        """The Lease as last observed."""
        self._seen_s = 0.0
        """When it was observed to change."""
        self._changed = asyncio.Event()

    @property
    def remaining_s(self) -> float:
        """Return for how many seconds this process may act; 0 or less if it may not."""
        return self._until_s - self._clock()

    @property
    def held(self) -> bool:
        """Return whether this process may act now."""
        return self.remaining_s > 0

    @property
    def holder(self) -> str:
        """Return the last known holder; empty if there is none."""
        return str(_spec(self._lease).get("holderIdentity") or "") if self._lease else ""

    async def acquired(self) -> None:
        """Wait until this process may act."""
        while not self.held:
            self._changed.clear()
            await self._changed.wait()

    async def lost(self) -> None:
        """Wait until this process may no longer act."""
        while True:
            left_s = self.remaining_s
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)

    async def run(self) -> None:
        """Acquire the Lease when it is free and renew it, until cancelled; then release it."""
        try:
            while True:
                await self._try()
                await asyncio.sleep(RENEW_S if self.held else RETRY_S)
        finally:
            await asyncio.shield(self._release())

    async def _try(self) -> None:
        began_s = self._clock()
        try:
            async with asyncio.timeout(RENEW_S):
                renewed = await self._renew()
        except (KubeError, TimeoutError) as error:
            _LOG.warning("lease renewal failed: %s", str(error) or "timeout")
            self._lease = None if isinstance(error, KubeError) and error.status == CONFLICT else self._lease
            return
        if renewed:
            if not self.held:
                _LOG.info("lease acquired", extra={"identity": self._identity})
            self._until_s = began_s + STOP_S
            self._changed.set()

    async def _renew(self) -> bool:
        """Renew the last known version. If it has changed, read the Lease and acquire it if it is free or ours."""
        if self.held and self._lease is not None:
            try:
                self._observe(await self._put(self._lease))
            except KubeError as error:
                if error.status not in {CONFLICT, NOT_FOUND}:
                    raise
            else:
                return True
        return await self._acquire()

    async def _acquire(self) -> bool:
        found = await self._store.get("Lease", self._namespace, self._name)
        if found is None:
            self._observe(await self._store.create("Lease", self._namespace, self._body(None, self._identity)))
            return True
        self._observe(found)
        if self._is_taken(found):
            self._until_s = float("-inf")
            return False
        self._observe(await self._put(found))
        return True

    async def _put(self, before: Json) -> Json:
        return await self._store.replace("Lease", self._namespace, self._body(before, self._identity))

    def _observe(self, lease: Json) -> None:
        if self._lease is None or _version(lease) != _version(self._lease):
            self._seen_s = self._clock()
        self._lease = lease

    def _is_taken(self, lease: Json) -> bool:
        spec = _spec(lease)
        if spec.get("holderIdentity") in {None, "", self._identity}:
            return False
        return self._clock() < self._seen_s + max(DURATION_S, float(spec.get("leaseDurationSeconds") or 0))

    def _body(self, before: Json | None, holder: str) -> Json:
        spec = _spec(before) if before is not None else {}
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes_holder = spec.get("holderIdentity") != holder
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": before["metadata"] if before is not None else self._metadata(),
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(DURATION_S),
                "acquireTime": now if changes_holder else spec.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (changes_holder and before is not None),
            },
        }

    def _metadata(self) -> Json:
        labels = {"app.kubernetes.io/managed-by": names.MANAGER}
        return {"name": self._name, "namespace": self._namespace, "labels": labels}

    async def _release(self) -> None:
        """Release the Lease, so that another operator need not wait for the duration."""
        if not self.held or self._lease is None:
            return
        self._until_s = float("-inf")
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(RENEW_S):
                await self._store.replace("Lease", self._namespace, self._body(self._lease, ""))


def _spec(lease: Json) -> Json:
    spec: Json = lease.get("spec") or {}
    return spec


def _version(lease: Json) -> object:
    return lease["metadata"].get("resourceVersion")
