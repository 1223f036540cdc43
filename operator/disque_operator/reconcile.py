"""A reconciliation round of one cluster: observe, plan, execute, write status and events.

At rest, a round reads the objects that watches have reported (`indexes`): it costs one query to each broker and no
requests to the API server. But no round acts on them: if the plan has actions, events, or a status with new texts, the
objects are read from the API server and the plan is made again. Counters alone are written at once, because a status is
written only over the version of the cluster that it was made from.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from disque_operator import logs, names, observe
from disque_operator.apivalues import Json, condition_of
from disque_operator.decisions import IDLE_S, SOON_S, Event, Plan
from disque_operator.declared import without_cluster
from disque_operator.executor import ExecutorContext, FailedError, LostError, Permit, StaleError, execute, permitted
from disque_operator.indexes import Indexes
from disque_operator.kube import CONFLICT, NOT_FOUND, Kube, KubeError
from disque_operator.metrics import Metrics
from disque_operator.nodes import Nodes
from disque_operator.observe import Address, Objects, Observation
from disque_operator.observed import Observed
from disque_operator.ownership import ForeignError, Ownership
from disque_operator.platforms import Platforms
from disque_operator.posting import EventPoster
from disque_operator.queue import SETTLE_S, Key
from disque_operator.references import referenced_secrets
from disque_operator.reverts import Reverts
from disque_operator.spec import Spec, parse
from disque_operator.status_writes import FAILURE, failed, is_worth_writing
from disque_operator.turns import Turns

ROUND_S: Final = 90.0
"""Timeout of a round, in seconds."""
CONFLICT_LONGEST_S: Final = 10.0
DEGRADED_S: Final = 60.0
"""How often a degraded cluster is read: what it waits for may have no watch."""
PASSWORD_BYTES: Final = 24

_LOG: Final = logging.getLogger(__name__)

Planner: TypeAlias = Callable[[Spec, Observed, float, str], Plan]


@dataclass
class _Cache:
    """What is kept about a cluster between rounds. It can be lost at any time."""

    stale: bool = True
    """Whether the next round must read the API server: the indexes may be outdated, or something is in progress."""
    cluster: Json | None = None
    """The cluster as it was read or written last."""
    objects: Objects | None = None
    """The objects as they were read last."""
    degraded: bool = False
    """Whether somebody must act."""
    read_s: float = float("-inf")
    written_s: float = float("-inf")
    conflicts: int = 0
    """How many consecutive rounds ended because an object had changed."""


@dataclass(frozen=True)
class _Snapshot:
    cluster: Json
    spec: Spec
    seen: Observation
    plan: Plan

    @property
    def status(self) -> Json:
        """Return the present status."""
        return self.seen.observed.status


class Reconciler:
    """Runs rounds of all clusters. `clock` is monotonic, `now` is the time of day.

    `refer` is called with the names of the Secrets of users that a cluster refers to.
    """

    def __init__(
        self,
        kube: Kube,
        indexes: Indexes,
        permit: Permit,
        metrics: Metrics,
        plan: Planner,
        *,
        turns: Turns,
        image: str,
        identity: str,
        operator: str,
        operator_namespace: str,
        privileged: bool,
        clock: Callable[[], float],
        address: Address = observe.pod_address,
        refer: Callable[[Key, frozenset[str]], None] = lambda _key, _names: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = kube
        self._indexes = indexes
        self._refer = refer
        self._nodes = Nodes(kube, clock)
        self._permit = permit
        self._metrics = metrics
        self._plan = plan
        self._turns = turns
        self._image = image
        self._events = EventPoster(kube, identity=identity, clock=clock, now=now)
        self._ownership = Ownership(kube, permit, self._events, me=operator, clock=clock)
        self._operator = operator
        self._operator_namespace = operator_namespace
        self._platforms = Platforms(kube, clock)
        self._privileged = privileged
        self._clock = clock
        self._address = address
        self._now = now
        self._reverts = Reverts(clock, metrics.revert)
        self._caches: dict[Key, _Cache] = {}

    def changed(self, key: Key) -> None:
        """Read the API server in the next round, because the indexes may be outdated."""
        if key in self._caches:
            self._caches[key].stale = True

    async def round(self, key: Key) -> float | None:
        """Run a round; return the seconds until the next one, or None if the cluster does not exist.

        Raises if the round fails, after reporting it.
        """
        namespace, name = key
        began_s = self._clock()
        cache = self._caches.setdefault(key, _Cache())
        is_failed = True
        try:
            async with asyncio.timeout(ROUND_S):
                again_s = await self._round(key, cache)
            is_failed = False
        except asyncio.CancelledError:
            is_failed = False
            raise
        except ForeignError as foreign:
            is_failed = False
            cache.stale = True
            again_s = foreign.again_s
            self._turns.report(key, "none")
            self._metrics.clear(namespace, name)
        except Exception as error:
            cache.stale = True
            self._turns.failed(key)
            expected = isinstance(error, KubeError | FailedError | TimeoutError)
            why = str(error) or "timeout"
            logs.about(*key).error("round failed: %s", why, exc_info=None if expected else error)
            await self._publish_failure(cache, error)
            raise
        finally:
            self._metrics.round(namespace, name, self._clock() - began_s, failed=is_failed)
        if again_s is None:
            del self._caches[key]
            self._turns.forget(key)
            self._metrics.forget(namespace, name)
            self._events.forget(key)
            self._reverts.forget(key)
            self._refer(key, frozenset())
            self._ownership.forget(key)
        return again_s

    async def _round(self, key: Key, cache: _Cache) -> float | None:
        cluster = self._indexes.cluster(key)
        is_old = cache.stale or (cache.degraded and self._clock() - cache.read_s > DEGRADED_S)
        if is_old or cluster is None or cache.objects is None or not self._ownership.acts_on(cluster):
            snapshot = await self._read(key, cache)
        else:
            objects = self._reported(key, cache.objects)
            if parse(cluster).storage.ephemeral:  # no watch reports a cordoned node, and other members are evicted
                objects = await self._with_nodes(objects)
            snapshot = await self._observe(cluster, objects)
            if snapshot is not None and _does_anything(snapshot):
                snapshot = await self._read(key, cache)
        if snapshot is None:
            await self._report_without_cluster(*key)
            return None
        cache.stale |= bool(snapshot.plan.actions) or snapshot.plan.again_s <= SOON_S
        cache.degraded = snapshot.plan.again_s < IDLE_S
        return await self._carry_out(snapshot, cache)

    async def _read(self, key: Key, cache: _Cache) -> _Snapshot | None:
        """Observe and plan from the API server; return None if the cluster does not exist or is being deleted."""
        cache.stale = False  # not later: a change that is reported from now on may be missed by this round
        cache.cluster = await self._kube.get(names.KIND, *key)
        if cache.cluster is None:
            return None
        cache.cluster = await self._ownership.acquire(key, cache.cluster)
        spec = parse(cache.cluster)
        objects = await observe.read_objects(self._kube, spec, await self._platforms.current())
        cache.objects = await self._with_nodes(objects)
        self._refer(key, referenced_secrets(spec) | observe.secrets_of_users(cache.objects))
        cache.read_s = self._clock()
        return await self._observe(cache.cluster, cache.objects)

    def _reported(self, key: Key, last: Objects) -> Objects:
        """Return the objects as watches reported them. Others, which have no watch, are those that were read last."""
        others = {name: item for name, item in last.by_name.items() if not _is_watched(item)}
        return replace(last, by_name=others | self._indexes.children(key))

    async def _with_nodes(self, objects: Objects) -> Objects:
        return replace(objects, nodes=await self._nodes.read(observe.nodes_of(objects)))

    async def _observe(self, cluster: Json, objects: Objects) -> _Snapshot | None:
        """Observe and plan; return None if the cluster is being deleted."""
        if "deletionTimestamp" in cluster["metadata"]:
            return None
        spec = parse(cluster)
        key = (spec.namespace, spec.name)
        platform = await self._platforms.at_rest(spec)
        now_s = self._now().timestamp()
        seen = await observe.observe_cluster(spec, cluster.get("status") or {}, objects, now_s, self._address)
        observed = replace(
            seen.observed,
            operator=self._operator,
            default_image=self._image,
            waits_for=self._turns.ahead_of(key),
            reverts=self._reverts.of(key),
            operator_namespace=self._operator_namespace,
            platform=platform,
            privileged=self._privileged,
        )
        seen = replace(seen, observed=observed)
        plan = self._plan(spec, seen.observed, now_s, secrets.token_urlsafe(PASSWORD_BYTES))
        self._turns.report(key, plan.turn)  # nothing was awaited since `ahead_of`, so no other cluster took the turn
        return _Snapshot(cluster, spec, seen, plan)

    async def _report_without_cluster(self, namespace: str, name: str) -> None:
        """Report in the status of DisqueUsers and DisqueQueues that their cluster does not exist."""
        for kind in names.DECLARED:
            for resource in await observe.read_declared(self._kube, kind, namespace, name):
                status = without_cluster(resource, self._now().timestamp())
                if status != (resource.get("status") or {}):
                    with contextlib.suppress(LostError):
                        async with permitted(self._permit):
                            await self._kube.write_status(resource, status)

    async def _carry_out(self, snapshot: _Snapshot, cache: _Cache) -> float:
        """Execute the plan and write the status; return the seconds until the next round."""
        namespace, name = snapshot.spec.namespace, snapshot.spec.name
        log = logs.about(namespace, name)
        context = ExecutorContext(
            self._kube,
            self._permit,
            namespace,
            snapshot.seen.connections,
            log,
            self._metrics.command,
            functools.partial(self._reverts.applied, (namespace, name)),
        )
        status, events, problem = snapshot.plan.status, list(snapshot.plan.events), None
        try:
            try:
                await execute(snapshot.plan.actions, context)
            except FailedError as error:
                problem = error
                status = self._failed(status, snapshot.status, error.reason, str(error), snapshot.spec.generation)
                events += self._failure_event(snapshot.status, error.reason, str(error))
            await self._publish(snapshot.cluster, snapshot.status, status, events, cache)
        except LostError:
            log.warning("lease lost: round aborted")
            return SOON_S
        except StaleError as stale:
            log.info("object has changed, observing again: %s", stale)
            cache.stale = True
            cache.conflicts += 1
            return min(SETTLE_S * 2.0**cache.conflicts, CONFLICT_LONGEST_S)
        cache.conflicts = 0
        if problem is not None:
            raise problem
        return snapshot.plan.again_s

    # --- status -------------------------------------------------------------------------------------------------------

    async def _publish(self, cluster: Json, old: Json, status: Json, events: list[Event], cache: _Cache) -> None:
        """Write the status if it differs enough, then post the events: losing an event is better than repeating it.

        Raises:
            LostError: The Lease has expired.
            StaleError: The cluster has changed since it was observed.
        """
        metadata = cluster["metadata"]
        async with permitted(self._permit):
            if events or is_worth_writing(old, status, self._clock() - cache.written_s):
                try:
                    cache.cluster = await self._kube.write_status(cluster, status)
                except KubeError as error:
                    if error.status == CONFLICT:
                        raise StaleError(f"status: {error}") from error
                    if error.status != NOT_FOUND:
                        raise
                    return  # it was deleted in the meantime
                cache.written_s = self._clock()
            paused = bool((cluster.get("spec") or {}).get("paused"))
            self._metrics.cluster(metadata["namespace"], metadata["name"], status, paused=paused)
            await self._events.post(cluster, events)

    async def _publish_failure(self, cache: _Cache, error: Exception) -> None:
        """Report in the status that a round failed before it wrote the status. Errors are only logged."""
        cluster = cache.cluster
        if cluster is None or isinstance(error, FailedError):
            return
        old: Json = cluster.get("status") or {}
        reason = "ApiServerError" if isinstance(error, KubeError) else "InternalError"
        message = f"{type(error).__name__}: {error}" if reason == "InternalError" else str(error)
        status = self._failed(old, old, reason, message, cluster["metadata"].get("generation", 0))
        try:
            async with asyncio.timeout(ROUND_S):
                await self._publish(cluster, old, status, self._failure_event(old, reason, message), cache)
        except (KubeError, LostError, StaleError, TimeoutError) as write_error:
            _LOG.warning("writing the status of a failed round failed: %s", write_error)

    def _failed(self, status: Json, old: Json, reason: str, message: str, generation: int) -> Json:
        return failed(status, old, reason, message, generation, self._now().strftime("%Y-%m-%dT%H:%M:%SZ"))

    def _failure_event(self, old: Json, reason: str, message: str) -> list[Event]:
        """Return an event, unless the condition already has this reason."""
        before = condition_of(old, FAILURE)
        is_known = before.get("status") == "False" and before.get("reason") == reason
        return [] if is_known else [Event("Warning", reason, message)]


def _is_watched(item: Json) -> bool:
    labelled = item["kind"] in observe.LISTED and names.CLUSTER_LABEL in (item["metadata"].get("labels") or {})
    return labelled or item["kind"] in names.DECLARED


def _does_anything(snapshot: _Snapshot) -> bool:
    """Return whether the plan changes or says anything, beside counters."""
    plan = snapshot.plan
    return bool(plan.actions or plan.events) or is_worth_writing(snapshot.status, plan.status, since_s=0.0)
