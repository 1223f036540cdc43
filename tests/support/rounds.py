"""Rounds of one cluster over HTTP with a small API server: the plan is given, and watches report when told to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from disque_operator import names
from disque_operator.actions import Action, Apply
from disque_operator.apivalues import Json
from disque_operator.decisions import IDLE_S, Event, Plan
from disque_operator.executor import FailedError
from disque_operator.indexes import Indexes, entry
from disque_operator.kube import Kube
from disque_operator.metrics import Metrics
from disque_operator.observed import Observed, Pod
from disque_operator.queue import Key
from disque_operator.reconcile import Reconciler
from disque_operator.references import References
from disque_operator.spec import Spec
from disque_operator.turns import Turns
from support.apiserver import ApiServer, serving

KEY = ("ns", "c")
CLUSTER = f"/apis/{names.API_VERSION}/namespaces/ns/{names.PLURAL}/c"
CONFIG = "/api/v1/namespaces/ns/configmaps/c-config"
POD = "/api/v1/namespaces/ns/pods/c-0"
OWN_SECRET = "/api/v1/namespaces/ns/secrets/own"
RUNNING: Json = {"podIP": "127.0.0.1", "phase": "Running"}
STATUS: Json = {
    "phase": "Running",
    "operator": "operators/lease",
    "conditions": [{"type": "ReconcileSuccess", "status": "True", "reason": "Done"}],
}


@dataclass
class Permit:
    remaining_s: float = 1000.0


@dataclass
class Harness:
    """A reconciler with its environment and the plan it gets."""

    server: ApiServer
    kube: Kube
    metrics: Metrics
    permit: Permit = field(default_factory=Permit)
    now_s: float = 1000.0
    actions: Callable[[Observed], tuple[Action, ...]] = lambda _observed: ()
    events: tuple[Event, ...] = ()
    status: Json = field(default_factory=lambda: STATUS)
    again_s: float = IDLE_S
    seen: list[Observed] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether a watch of a Secret reported a change."""

    def __post_init__(self) -> None:
        self.server.put(CLUSTER, {"kind": names.KIND, "spec": {}, "status": STATUS})
        self.indexes = Indexes(lambda _body: False)
        self.references = References(self.kube, self._changed, random.Random(1))
        self.subject = Reconciler(
            self.kube,
            self.indexes,
            self.permit,
            self.metrics,
            self._plan,
            turns=Turns(lambda: [KEY]),
            image="disqued:test",
            identity="me",
            operator="operators/lease",
            operator_namespace="operators",
            privileged=False,
            clock=lambda: self.now_s,
            address=self._address,
            refer=self.references.refer,
        )

    def _plan(self, spec: Spec, observed: Observed, _now_s: float, _password: str) -> Plan:
        assert spec.image is None
        assert observed.default_image == "disqued:test"
        assert observed.operator_namespace == "operators"
        self.seen.append(observed)
        actions = self.actions(observed)
        return Plan(actions, self.status, self.events if observed.status != self.status else (), self.again_s)

    def _changed(self, key: Key) -> None:
        self.subject.changed(key)
        self.woken.set()

    def _address(self, pod: Pod) -> str:
        return self.addresses[pod.name]

    async def round(self, after_s: float = 30.0) -> list[str]:
        """Run a round and return its requests."""
        self.now_s += after_s
        before = len(self.server.requests)
        await self.subject.round(KEY)
        return self.server.requests[before:]

    def report(self) -> None:
        """Let the watches report the present objects."""
        objects = self.server.objects
        labelled = [item for item in objects.values() if names.CLUSTER_LABEL in (item["metadata"].get("labels") or {})]
        clusters: Any = {KEY: [entry(objects[CLUSTER], names.KIND)]} if CLUSTER in objects else {}
        children: Any = {KEY: [entry(item, item["kind"]) for item in labelled]}
        self.indexes.attach(clusters, children)

    async def failing_round(self, error: type[Exception] = FailedError) -> str:
        with pytest.raises(error) as raised:
            await self.round()
        return str(raised.value)

    @property
    def written(self) -> Json:
        status: Json = self.server.objects[CLUSTER]["status"]
        return status

    @property
    def posted(self) -> list[Json]:
        return [item for path, item in self.server.objects.items() if "/events/" in path]


@asynccontextmanager
async def harness() -> AsyncIterator[Harness]:
    server = ApiServer()
    async with serving(server) as configuration:
        metrics = Metrics()
        kube = Kube(configuration, metrics.request)
        try:
            one = Harness(server, kube, metrics)
            yield one
        finally:
            await one.references.stop()
            await kube.close()


def make(kind: str, name: str, **more: Any) -> Json:
    metadata = {"name": name, "namespace": "ns", "labels": {names.CLUSTER_LABEL: "c"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def config_when_missing(observed: Observed) -> tuple[Action, ...]:
    if ("ConfigMap", "c-config") in observed.children:
        return ()
    return (Apply(make("ConfigMap", "c-config", data={"a": "b"}), "it does not exist"),)
