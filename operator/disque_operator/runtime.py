"""Assembles the parts of a running operator, and runs their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import kopf

from disque_operator import names, observe
from disque_operator.apivalues import Json
from disque_operator.budgets import BudgetTracker
from disque_operator.indexes import Indexes
from disque_operator.kube import KINDS, NOT_FOUND, Kube, KubeError
from disque_operator.lease import Lease
from disque_operator.metrics import Metrics
from disque_operator.observe import LISTED, Address
from disque_operator.options import Options
from disque_operator.queue import Key, Queue
from disque_operator.reconcile import ROUND_S, Planner, Reconciler
from disque_operator.references import References
from disque_operator.turns import Turns
from disque_operator.watches import WatchTracker

STUCK_S: Final = 2 * ROUND_S
"""How long a round, or the wait for one, may take before the liveness probe fails, in seconds."""
STOP_S: Final = 5.0

_LOG: Final = logging.getLogger(__name__)


class NotInstalledError(Exception):
    """The CustomResourceDefinition is not installed."""


def boottime_s() -> float:
    """Return a monotonic time in seconds that includes the time that the host is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Runtime:
    """One operator. `failed` is called with the error if a task fails."""

    def __init__(
        self,
        options: Options,
        configuration: Any,
        plan: Planner,
        *,
        operator_namespace: str,
        failed: Callable[[BaseException], None],
        address: Address = observe.pod_address,
    ) -> None:
        self.options = options
        self.metrics = Metrics()
        self.kube = Kube(configuration, self.metrics.request)
        self.lease = Lease(
            self.kube,
            namespace=options.lease_namespace,
            name=options.lease,
            identity=options.identity,
            clock=boottime_s,
        )
        self.watches = WatchTracker(self._stale)
        self.indexes = Indexes(self.watches.is_gone)
        self._budgets = BudgetTracker(self.kube, lambda: self.queue.keys, self._stale)
        self._turns = Turns(lambda: self.queue.keys)
        rng = random.Random()  # noqa: S311 (spreads load, keeps no secret)
        self.references = References(self.kube, self._stale, rng)
        self.reconciler = Reconciler(
            self.kube,
            self.indexes,
            self.lease,
            self.metrics,
            plan,
            turns=self._turns,
            image=options.image,
            identity=options.identity,
            operator=f"{options.lease_namespace}/{options.lease}",
            operator_namespace=operator_namespace,
            privileged=options.pod_templates == "privileged",
            clock=boottime_s,
            address=address,
            refer=self.references.refer,
        )
        self.queue = Queue(self.reconciler.round, workers=options.workers, rng=rng, clock=boottime_s)
        self.metrics.watch(
            queue=lambda: float(self.queue.waiting),
            overdue_s=lambda: max(0.0, self.queue.overdue_s()),
            lease=lambda: float(self.lease.held),
        )
        self._failed = failed
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_metrics: Callable[[], None] = lambda: None
        self._listed_s = boottime_s()

    async def check(self) -> None:
        """Check that the operator can list its resources.

        Raises:
            NotInstalledError: The CustomResourceDefinition is not installed.
            KubeError: The API server is unreachable or denies access.
        """
        for kind in (names.KIND, *names.DECLARED):
            try:
                await self._list(kind)
            except KubeError as error:
                if error.status != NOT_FOUND:
                    raise
                raise NotInstalledError(
                    f"CustomResourceDefinition {KINDS[kind].plural}.{names.GROUP} is not installed: apply manifests/crd"
                ) from error

    def start(self, clusters: kopf.Index[Key, Json], children: kopf.Index[Key, Json]) -> None:
        """Start all tasks. The indexes contain what kopf's watches report."""
        self.indexes.attach(clusters, children)
        if self.options.metrics_port:
            self._stop_metrics = self.metrics.serve(self.options.metrics_port)
        mains = {"rounds": self._lead(), "resync": self._resync(), "lease": self.lease.run()}
        self._tasks = [self._task(name, main) for name, main in mains.items()]

    def _task(self, name: str, main: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(main, name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    async def stop(self) -> None:
        """Stop the rounds, then release the Lease. Idempotent."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await asyncio.gather(task, return_exceptions=True)
        await self.references.stop()
        await self.kube.close()
        stop_metrics, self._stop_metrics = self._stop_metrics, lambda: None
        await asyncio.to_thread(stop_metrics)

    async def _lead(self) -> None:
        """Run rounds while this process holds the Lease."""
        while True:
            await self.lease.acquired()
            self._turns.reset()
            for key in self.queue.keys:  # another operator may have acted
                self._stale(key)
            rounds = asyncio.create_task(self.queue.run(), name="rounds")
            try:
                await self.lease.lost()
                _LOG.warning("lease lost: reconciliation stops until it is acquired again")
            finally:
                rounds.cancel()
                await asyncio.gather(rounds, return_exceptions=True)
                for key in self.queue.keys:  # the new holder reports their state
                    self.metrics.clear(*key)

    async def _resync(self) -> None:
        """List all objects periodically, to find changes that no watch reported."""
        while True:
            await asyncio.sleep(self.options.resync_s)
            try:
                await self.check()
                for kind in LISTED:
                    await self._list(kind)
                await self._budgets.list(self.options.namespaces or (None,))
            except KubeError as error:
                _LOG.warning("listing objects failed: %s", error)
            self._listed_s = boottime_s()

    async def _list(self, kind: str) -> None:
        ours = (names.KIND, *names.DECLARED)
        labels = names.CLUSTER_LABEL if kind not in ours else ""
        found: list[Json] = []
        for namespace in self.options.namespaces or (None,):
            found += await self.kube.list(kind, namespace, labels=labels, only_metadata=kind not in names.DECLARED)
        self.watches.listed(kind, found)

    def _stale(self, key: Key) -> None:
        """Read a cluster from the API server soon, because the indexes may be outdated."""
        self.reconciler.changed(key)
        self.queue.wake(key)

    def problems(self) -> list[str]:
        """Return why this process must be restarted; empty if it is alive. An unreachable API server is no reason."""
        checks = (
            (self.lease.held and self.queue.overdue_s() > STUCK_S, "due clusters are not processed"),
            (self.queue.running_s() > STUCK_S, "a round hangs"),
            (
                boottime_s() - self._listed_s > 3 * self.options.resync_s + STUCK_S,
                "objects are not listed",
            ),
            (bool(self.watches.missed), self.watches.missed),
        )
        return [text for is_so, text in checks if is_so]

    def reported(self, kind: str, body: Json, *, is_gone: bool) -> None:
        """Handle a watch event."""
        self.metrics.event(kind)
        self.watches.reported(kind, body, is_gone=is_gone)
