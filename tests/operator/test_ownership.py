"""Two installations of the operator that watch the same cluster: one acts, and people can hand the cluster over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from disque_operator import names
from disque_operator.actions import Apply
from disque_operator.apivalues import Json
from disque_operator.decisions import IDLE_S, Plan
from disque_operator.indexes import Indexes
from disque_operator.kube import Kube
from disque_operator.metrics import Metrics
from disque_operator.observed import Observed
from disque_operator.ownership import TAKE_OVER_S, step
from disque_operator.reconcile import Reconciler
from disque_operator.spec import Spec
from disque_operator.turns import Turns
from support.apiserver import ApiServer, serving

KEY = ("ns", "c")
CLUSTER = f"/apis/{names.API_VERSION}/namespaces/ns/{names.PLURAL}/c"
MINE, THEIRS = "a/operator", "b/operator"


@pytest.mark.parametrize(
    ("owner", "assigned", "expected"),
    [
        (None, None, "claim"),
        (None, MINE, "claim"),
        (None, THEIRS, "ignore"),
        (MINE, None, "act"),
        (MINE, MINE, "act"),
        (MINE, THEIRS, "release"),
        (THEIRS, None, "ignore"),
        (THEIRS, THEIRS, "ignore"),
        (THEIRS, MINE, "take over"),
    ],
)
def test_step(owner: str | None, assigned: str | None, expected: str) -> None:
    annotations = {names.OPERATOR: assigned} if assigned else {}
    status = {"operator": owner} if owner else {}
    assert step({"metadata": {"annotations": annotations}, "status": status}, MINE) == expected


@dataclass
class Permit:
    remaining_s: float = 1000.0


@dataclass
class Operator:
    """One installation, whose plan writes a ConfigMap with its name."""

    kube: Kube
    me: str
    now_s: float = 0.0
    planned: int = 0
    subject: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        self.subject = Reconciler(
            self.kube,
            Indexes(lambda _body: False),
            Permit(),
            Metrics(),
            self._plan,
            turns=Turns(lambda: [KEY]),
            image="disqued:test",
            identity="pod",
            operator=self.me,
            operator_namespace="",
            privileged=False,
            clock=lambda: self.now_s,
        )

    def _plan(self, _spec: Spec, observed: Observed, _now_s: float, _password: str) -> Plan:
        self.planned += 1
        assert observed.operator == self.me
        written = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c-config", "namespace": "ns"}}
        return Plan((Apply(written, "always"),), observed.status | {"operator": self.me}, (), IDLE_S)

    async def round(self, after_s: float = 30.0) -> float | None:
        self.now_s += after_s
        return await self.subject.round(KEY)


@dataclass
class Two:
    """Two installations and the cluster that both watch."""

    server: ApiServer
    mine: Operator
    theirs: Operator

    @property
    def owner(self) -> str | None:
        owner: str | None = self.server.objects[CLUSTER]["status"].get("operator")
        return owner

    @property
    def events(self) -> list[Json]:
        return [item for path, item in self.server.objects.items() if "/events/" in path]

    def assign(self, operator: str) -> None:
        body = self.server.objects[CLUSTER]
        metadata = body["metadata"] | {"annotations": {names.OPERATOR: operator}}
        self.server.put(CLUSTER, body | {"metadata": metadata})


@asynccontextmanager
async def two() -> AsyncIterator[Two]:
    server = ApiServer()
    server.put(CLUSTER, {"kind": names.KIND, "spec": {}, "status": {}})
    async with serving(server) as configuration:
        kubes = [Kube(configuration, lambda *_: None) for _ in range(2)]
        try:
            yield Two(server, Operator(kubes[0], MINE), Operator(kubes[1], THEIRS))
        finally:
            for kube in kubes:
                await kube.close()


def test_first_operator_claims_the_cluster_before_it_acts() -> None:
    async def main() -> None:
        async with two() as both:
            await both.mine.round()
            assert both.owner == MINE
            assert [path.rpartition("/")[2] for path in both.server.writes][:2] == ["status", "c-config"]

    asyncio.run(main())


def test_other_operator_does_nothing_and_says_so_once() -> None:
    async def main() -> None:
        async with two() as both:
            await both.mine.round()
            for _ in range(3):
                await both.theirs.round()
            assert (both.owner, both.theirs.planned) == (MINE, 0)
            [event] = both.events
            assert event["reason"] == "OtherOperator"
            assert event["message"] == (
                f"operator {THEIRS} ignores this cluster, because operator {MINE} acts on it. To hand it over: "
                f"kubectl annotate dq c --overwrite {names.OPERATOR}={THEIRS}"
            )

    asyncio.run(main())


def test_only_one_of_two_operators_that_claim_at_the_same_time_acts() -> None:
    async def main() -> None:
        async with two() as both:
            await asyncio.gather(both.mine.round(), both.theirs.round())
            assert sorted([both.mine.planned, both.theirs.planned]) == [0, 1]

    asyncio.run(main())


def test_cluster_is_handed_over_when_the_present_operator_has_released_it() -> None:
    async def main() -> None:
        async with two() as both:
            await both.mine.round()
            both.assign(THEIRS)
            await both.theirs.round()
            assert (both.owner, both.theirs.planned) == (MINE, 0)
            await both.mine.round()
            assert (both.owner, both.mine.planned) == (None, 1)
            await both.theirs.round()
            assert (both.owner, both.theirs.planned) == (THEIRS, 1)
            await both.mine.round()
            assert both.mine.planned == 1

    asyncio.run(main())


def test_cluster_of_an_operator_that_is_gone_is_taken_over_after_two_minutes() -> None:
    async def main() -> None:
        async with two() as both:
            await both.mine.round()
            both.assign(THEIRS)
            await both.theirs.round()
            await both.theirs.round(TAKE_OVER_S - 1)
            assert (both.owner, both.theirs.planned) == (MINE, 0)
            await both.theirs.round(1)
            assert (both.owner, both.theirs.planned) == (THEIRS, 1)

    asyncio.run(main())


def test_time_to_release_a_cluster_starts_again_when_it_is_assigned_again() -> None:
    async def main() -> None:
        async with two() as both:
            await both.mine.round()
            both.assign(THEIRS)
            await both.theirs.round()
            both.assign(MINE)
            await both.theirs.round(TAKE_OVER_S)
            both.assign(THEIRS)
            await both.theirs.round()
            assert both.owner == MINE

    asyncio.run(main())
