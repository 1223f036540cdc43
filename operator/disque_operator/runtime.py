"""The parts of a running operator put together, and the tasks in which they run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from disque_operator import names, observe
from disque_operator.apivalues import Json
from disque_operator.kube import NOT_FOUND, Kube, KubeError
from disque_operator.lease import Lease
from disque_operator.metrics import Metrics
from disque_operator.observe import Address
from disque_operator.options import Options
from disque_operator.queue import Queue
from disque_operator.reconcile import ROUND_S, Planner, Reconciler
from disque_operator.watches import WatchTracker

STUCK_S: Final = 2 * ROUND_S
"""A round, or a cluster that waits for one, for so long: something hangs."""
STOP_S: Final = 5.0

_LOG: Final = logging.getLogger(__name__)


class NotInstalledError(Exception):
    """The cluster does not know the resource."""


def boottime_s() -> float:
    """A clock that never jumps, and goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Runtime:
    """One operator. `failed` is told when it can not go on."""

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
        self.reconciler = Reconciler(
            self.kube,
            self.lease,
            self.metrics,
            plan,
            image=options.image,
            identity=options.identity,
            operator_namespace=operator_namespace,
            clock=boottime_s,
            address=address,
        )
        rng = random.Random()  # noqa: S311 (spreads load, keeps no secret)
        self.queue = Queue(self.reconciler.round, workers=options.workers, rng=rng, clock=boottime_s)
        self.watches = WatchTracker(self.queue.wake, self.reconciler.changed)
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
        """See that there is something to work on.

        Raises:
            NotInstalledError: the resource is not there, and who installs it has to be told.
            KubeError: the API server can not be reached, or lets us see nothing.
        """
        await self._list()

    def start(self) -> None:
        """Begin to work."""
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
        """End: first the rounds, then the Lease is given back. Safe to do twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await asyncio.gather(task, return_exceptions=True)
        await self.kube.close()
        stop_metrics, self._stop_metrics = self._stop_metrics, lambda: None
        await asyncio.to_thread(stop_metrics)

    async def _lead(self) -> None:
        """Work while the Lease is ours."""
        while True:
            await self.lease.gained()
            for key in self.queue.keys:  # somebody else may have acted
                self.reconciler.changed(key)
                self.queue.wake(key)
            rounds = asyncio.create_task(self.queue.run(), name="rounds")
            try:
                await self.lease.lost()
                _LOG.warning("the Lease is lost: this operator does nothing until it has it again")
            finally:
                rounds.cancel()
                await asyncio.gather(rounds, return_exceptions=True)
                for key in self.queue.keys:  # who acts now says how they are
                    self.metrics.clear(*key)

    async def _resync(self) -> None:
        """Look now and then for what was not told."""
        while True:
            await asyncio.sleep(self.options.resync_s)
            try:
                await self._list()
            except KubeError as error:
                _LOG.warning("the clusters could not be listed: %s", error)
            self._listed_s = boottime_s()

    async def _list(self) -> None:
        try:
            lists = [await self.kube.list(names.KIND, namespace) for namespace in self.options.namespaces or (None,)]
        except KubeError as error:
            if error.status != NOT_FOUND:
                raise
            raise NotInstalledError(f"{names.PLURAL}.{names.GROUP} is not installed: apply manifests/crd") from error
        self.watches.listed([cluster for clusters in lists for cluster in clusters])

    def problems(self) -> list[str]:
        """Why this process should be started again; none while it is alive. An API server that is away is no reason."""
        checks = (
            (self.lease.held and self.queue.overdue_s() > STUCK_S, "clusters wait for rounds that do not come"),
            (self.queue.running_s() > STUCK_S, "a round does not end"),
            (
                boottime_s() - self._listed_s > 3 * self.options.resync_s + STUCK_S,
                "the clusters are not listed any more",
            ),
            (bool(self.watches.missed), self.watches.missed),
        )
        return [text for is_so, text in checks if is_so]

    def on_event(self, kind: str, body: Json, *, is_gone: bool) -> None:
        """A watch told of an object."""
        self.metrics.event(kind)
        if kind == names.KIND:
            self.watches.cluster(body, is_gone=is_gone)
        else:
            self.watches.child(body)
