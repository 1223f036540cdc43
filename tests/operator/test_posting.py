"""The rate of events, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import cast

import pytest

from disque_operator.apivalues import Json
from disque_operator.decisions import Event
from disque_operator.kube import Kube, KubeError
from disque_operator.posting import BURST, REFILL_S, EventPoster
from support.virtualtime import now_s, run

CRASHED = Event("Warning", "MemberCrashed", "c-0 is crash-looping")
RECOVERED = Event("Normal", "Recovered", "all members are healthy")


class EventStore:
    """Takes the place of `Kube` and keeps the events."""

    def __init__(self) -> None:
        self.posted: list[Json] = []
        self.broken = False

    async def create(self, kind: str, namespace: str, body: Json) -> Json:
        assert (kind, namespace) == ("Event", "ns")
        if self.broken:
            raise KubeError(503, "unavailable")
        self.posted.append(body)
        return body

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.posted]


def poster(store: EventStore) -> EventPoster:
    return EventPoster(
        cast("Kube", store), identity="me", clock=now_s, now=lambda: datetime.fromtimestamp(now_s(), UTC)
    )


def cluster(name: str = "c") -> Json:
    return {"metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"}}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_flapping_cluster_posts_a_few_events_and_logs_all(caplog: pytest.LogCaptureFixture) -> None:
    store = EventStore()

    async def main() -> None:
        subject = poster(store)
        for _ in range(360):
            await subject.post(cluster(), (CRASHED, RECOVERED))
            await asyncio.sleep(10)

    run(main())
    posted_in_an_hour = BURST + 3600 / REFILL_S
    for reason in ("MemberCrashed", "Recovered"):
        assert BURST < store.reasons().count(reason) <= posted_in_an_hour
    assert caplog.text.count("crash-looping") == 360


def test_posted_event_counts_those_that_were_withheld() -> None:
    store = EventStore()

    async def main() -> None:
        subject = poster(store)
        for _ in range(BURST + 6):
            await subject.post(cluster(), (CRASHED,))
            await asyncio.sleep(1)
        await asyncio.sleep(REFILL_S)
        await subject.post(cluster(), (CRASHED,))

    run(main())
    assert [event["count"] for event in store.posted] == [1] * BURST + [7]
    last = store.posted[-1]
    assert last["firstTimestamp"] == "1970-01-01T00:16:45Z", "when the first withheld one happened"
    assert last["lastTimestamp"] == "1970-01-01T00:21:51Z"


def test_other_reasons_and_other_clusters_are_not_delayed() -> None:
    store = EventStore()

    async def main() -> None:
        subject = poster(store)
        for _ in range(3 * BURST):
            await subject.post(cluster(), (CRASHED,))
        await subject.post(cluster(), (RECOVERED,))
        await subject.post(cluster("d"), (CRASHED,))

    run(main())
    assert store.reasons() == ["MemberCrashed"] * BURST + ["Recovered", "MemberCrashed"]


def test_failure_to_post_does_not_fail_the_round(caplog: pytest.LogCaptureFixture) -> None:
    store = EventStore()
    store.broken = True
    run(poster(store).post(cluster(), (CRASHED, RECOVERED)))
    assert caplog.text.count("posting an event failed: unavailable") == 2


def test_deleted_clusters_are_forgotten() -> None:
    async def main() -> None:
        subject = poster(EventStore())
        await subject.post(cluster(), (CRASHED,))
        subject.forget(("ns", "c"))
        assert not subject._buckets

    run(main())
