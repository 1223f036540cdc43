"""One operator acts: the holder of a Lease, as long as it has renewed it in time.

Nobody's wall clock is trusted. Who waits counts the duration by its own clock, from when it saw the last change of the
Lease. Who holds counts from before it sent its last renewal, and stops well before that duration is over: between the
end of the one and the start of the other lie DURATION_S - STOP_S seconds for requests that are on their way.
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
"""Since its last renewal began, the holder acts for so long."""
RENEW_S: Final = 4.0
RETRY_S: Final = 1.0

_LOG: Final = logging.getLogger(__name__)


class Store(Protocol):
    """The part of `kube.Kube` that a lease needs."""

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """The Lease."""

    async def create(self, kind: str, namespace: str, body: Json) -> Json:
        """A first one."""

    async def replace(self, kind: str, namespace: str, body: Json) -> Json:
        """A newer one."""


class Lease:
    """Whether this process may act. `clock` must go on while the machine sleeps, and never jump."""

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
        """As it was seen last."""
        self._seen_s = 0.0
        """When it was seen to change."""
        self._changed = asyncio.Event()

    @property
    def remaining_s(self) -> float:
        """For so long this process may act; 0 or less when it may not."""
        return self._until_s - self._clock()

    @property
    def held(self) -> bool:
        """Whether it may act now."""
        return self.remaining_s > 0

    @property
    def holder(self) -> str:
        """Who holds it, as far as is known."""
        return str(_spec(self._lease).get("holderIdentity") or "") if self._lease else ""

    async def gained(self) -> None:
        """Wait until this process may act."""
        while not self.held:
            self._changed.clear()
            await self._changed.wait()

    async def lost(self) -> None:
        """Wait until it may not any more."""
        while True:
            left_s = self.remaining_s
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)

    async def run(self) -> None:
        """Take the Lease when it is free, and renew it, until cancelled; then give it back."""
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
            _LOG.warning("the Lease could not be renewed: %s", str(error) or "no answer in time")
            self._lease = None if isinstance(error, KubeError) and error.status == CONFLICT else self._lease
            return
        if renewed:
            if not self.held:
                _LOG.info("this operator acts from now on", extra={"identity": self._identity})
            self._until_s = began_s + STOP_S
            self._changed.set()

    async def _renew(self) -> bool:
        """A write over what we wrote last; if that is not there any more a look, and a write if it is ours or free."""
        if self.held and self._lease is not None:
            try:
                self._see(await self._put(self._lease))
            except KubeError as error:
                if error.status not in {CONFLICT, NOT_FOUND}:
                    raise
            else:
                return True
        return await self._take()

    async def _take(self) -> bool:
        found = await self._store.get("Lease", self._namespace, self._name)
        if found is None:
            self._see(await self._store.create("Lease", self._namespace, self._body(None, self._identity)))
            return True
        self._see(found)
        if self._is_taken(found):
            self._until_s = float("-inf")
            return False
        self._see(await self._put(found))
        return True

    async def _put(self, before: Json) -> Json:
        return await self._store.replace("Lease", self._namespace, self._body(before, self._identity))

    def _see(self, lease: Json) -> None:
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
        changes_hands = spec.get("holderIdentity") != holder
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": before["metadata"] if before is not None else self._metadata(),
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(DURATION_S),
                "acquireTime": now if changes_hands else spec.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (changes_hands and before is not None),
            },
        }

    def _metadata(self) -> Json:
        labels = {"app.kubernetes.io/managed-by": names.MANAGER}
        return {"name": self._name, "namespace": self._namespace, "labels": labels}

    async def _release(self) -> None:
        """Let the next one begin at once; if that fails, it waits for the duration."""
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
