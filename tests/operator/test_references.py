"""Watches of Secrets that clusters refer to: when they report, and what happens when they end or fail."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator

import pytest

from disque_operator.apivalues import Json
from disque_operator.kube import EXPIRED, Kube, KubeError
from disque_operator.queue import Key
from disque_operator.references import BACKOFF, References, referenced_secrets
from disque_operator.spec import parse
from support.apiserver import ApiServer, serving
from support.virtualtime import now_s, run

A: Key = ("ns", "a")
B: Key = ("ns", "b")
OWN = "/api/v1/namespaces/ns/secrets/own"


class WatchStub:
    """The watches of an API server. An entry of `events` is an event, an error, or None: the watch ends."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Json | KubeError | None] = asyncio.Queue()
        self.started: list[tuple[str, str, str]] = []
        self.running = 0

    async def watch(self, kind: str, namespace: str, name: str, since: str) -> AsyncGenerator[Json, None]:
        assert kind == "Secret"
        self.started.append((namespace, name, since))
        self.running += 1
        try:
            while (event := await self.events.get()) is not None:
                if isinstance(event, KubeError):
                    raise event
                yield event
        finally:
            self.running -= 1

    def report(self, kind: str, version: int) -> None:
        self.events.put_nowait({"type": kind, "object": {"metadata": {"resourceVersion": str(version)}}})


class Harness:
    def __init__(self) -> None:
        self.server = WatchStub()
        self.woken: list[Key] = []
        self.subject = References(self.server, self.woken.append, random.Random(1))


async def settle(seconds: float = 0.1) -> None:
    await asyncio.sleep(seconds)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, set()),
        ({"tls": {"enabled": True}}, set()),
        ({"auth": {"secretName": "own"}}, {"own"}),
        ({"tls": {"enabled": True, "secretName": "cert"}}, {"cert"}),
        ({"tls": {"enabled": True, "issuerRef": {"name": "ca"}}}, {"c-tls"}),
        ({"auth": {"secretName": "own"}, "tls": {"enabled": True, "secretName": "cert"}}, {"own", "cert"}),
    ],
)
def test_secrets_without_the_label_of_the_cluster_are_referred_to(spec: Json, names: set[str]) -> None:
    metadata = {"name": "c", "namespace": "ns", "uid": "u"}
    assert referenced_secrets(parse({"metadata": metadata, "spec": spec})) == names


def test_change_and_deletion_wake_all_clusters_that_refer_to_the_secret() -> None:
    async def main() -> None:
        one = Harness()
        one.subject.refer(A, frozenset({"own"}))
        one.subject.refer(B, frozenset({"own"}))
        one.subject.refer(("other", "a"), frozenset({"own"}))
        await settle()
        assert one.server.started == [("ns", "own", ""), ("other", "own", "")], "one watch for both clusters"
        one.subject.refer(("other", "a"), frozenset())
        await settle()
        assert one.server.running == 1
        for kind in ("ADDED", "MODIFIED", "DELETED"):
            one.server.report(kind, 5)
            await settle()
            assert sorted(one.woken) == [A, B]
            one.woken.clear()
        await one.subject.stop()

    run(main())


def test_bookmarks_wake_nobody() -> None:
    async def main() -> None:
        one = Harness()
        one.subject.refer(A, frozenset({"own"}))
        for version in range(60):
            one.server.report("BOOKMARK", version)
        await settle()
        assert one.woken == []
        await one.subject.stop()

    run(main())


def test_watch_continues_where_it_ended_and_wakes_nobody() -> None:
    async def main() -> None:
        one = Harness()
        one.subject.refer(A, frozenset({"own"}))
        one.server.report("BOOKMARK", 7)
        one.server.events.put_nowait(None)
        await settle(5)
        assert one.server.started == [("ns", "own", ""), ("ns", "own", "7")]
        assert one.woken == []
        await one.subject.stop()

    run(main())


def test_clusters_are_read_after_a_gap_that_the_watch_cannot_fill() -> None:
    async def main() -> None:
        one = Harness()
        one.subject.refer(A, frozenset({"own"}))
        one.server.report("BOOKMARK", 7)
        one.server.events.put_nowait(KubeError(EXPIRED, "too old resource version"))
        await settle(5)
        assert one.server.started == [("ns", "own", ""), ("ns", "own", "")]
        assert one.woken == [A], "it may have been deleted in the meantime"
        await one.subject.stop()

    run(main())


def test_without_the_right_to_watch_clusters_are_read_about_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Harness()
        for _ in range(10_000):
            one.server.events.put_nowait(KubeError(403, "secrets is forbidden"))
        one.subject.refer(A, frozenset({"own"}))
        await settle(3600)
        assert 3600 / BACKOFF.longest_s <= len(one.woken) <= 2 * 3600 / BACKOFF.longest_s + 10
        assert now_s() > 4000
        await one.subject.stop()

    run(main())
    assert "watch of Secret ns/own ended: secrets is forbidden" in caplog.text


def test_watch_ends_when_no_cluster_refers_to_the_secret() -> None:
    async def main() -> None:
        one = Harness()
        one.subject.refer(A, frozenset({"own"}))
        one.subject.refer(B, frozenset({"own"}))
        await settle()
        one.subject.refer(A, frozenset({"new"}))
        await settle()
        assert one.server.running == 2
        one.subject.refer(B, frozenset())
        await settle()
        assert one.server.running == 1
        await one.subject.stop()
        assert one.server.running == 0

    run(main())


def test_requests_name_the_secret_and_report_its_changes() -> None:
    async def main() -> None:
        server = ApiServer()
        async with serving(server) as configuration:
            kube = Kube(configuration, lambda _verb, _kind, _status: None)
            server.put(OWN, {"kind": "Secret", "data": {"password": "b25l" * 50_000}})
            events = kube.watch("Secret", "ns", "own", "")
            assert (await anext(events))["type"] == "ADDED"
            server.put(OWN[:-3] + "another", {"kind": "Secret"})
            changed = server.put(OWN, {"kind": "Secret", "data": {"password": "dHdv"}})
            event = await anext(events)
            assert event["type"] == "MODIFIED"
            assert event["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
            server.remove(OWN)
            assert (await anext(events))["type"] == "DELETED"
            await events.aclose()
            server.reject = lambda _method, _path: 403
            with pytest.raises(KubeError) as raised:
                await anext(kube.watch("Secret", "ns", "own", ""))
            assert raised.value.status == 403
            await kube.close()

    asyncio.run(main())
