"""Users and queues as resources: on all members, after restarts, and gone when the resource is."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Any, Final

import hiredis
import pytest
from kubernetes.client.exceptions import ApiException

from e2e.support.brokers import UNREACHABLE, Broker, poll
from e2e.support.cluster import API_VERSION, SMALL, DisqueCluster
from e2e.support.kube import Kube

APPLIED_S: Final = 60
SECRET: Final = "shop-disque-user"


def declare(kube: Kube, cluster: DisqueCluster, kind: str, name: str, **spec: Any) -> None:
    kube.apply(
        {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name, "namespace": cluster.namespace},
            "spec": {"clusterRef": {"name": cluster.name}, **spec},
        }
    )


def reason(kube: Kube, cluster: DisqueCluster, kind: str, name: str) -> str:
    conditions = (kube.get(kind, name, cluster.namespace).get("status") or {}).get("conditions") or ()
    return next((str(one["reason"]) for one in conditions if one["type"] == "Ready"), "")


def password(kube: Kube, cluster: DisqueCluster) -> str:
    return base64.b64decode(kube.get("Secret", SECRET, cluster.namespace)["data"]["password"]).decode()


@contextlib.contextmanager
def logged_in(kube: Kube, cluster: DisqueCluster, ordinal: int) -> Iterator[Broker]:
    """Open a connection to a broker as the user."""
    with Broker(kube, cluster.namespace, cluster.pod(ordinal)) as broker:
        broker.call("AUTH", "shop", password(kube, cluster))
        yield broker


def can_add(kube: Kube, cluster: DisqueCluster, ordinal: int) -> bool:
    """Return whether the user can add jobs to its queues, and only to them."""
    try:
        with logged_in(kube, cluster, ordinal) as broker:
            broker.call("ADDJOB", "orders:new", "body", 0, "REPLICATE", 1)
            with pytest.raises(hiredis.ReplyError, match="NOPERM"):
                broker.call("ADDJOB", "invoices", "body", 0)
    except UNREACHABLE:
        return False
    return True


def test_user_serves_on_all_members_after_restarts_and_ends_with_its_resource(
    cluster: DisqueCluster, kube: Kube
) -> None:
    cluster.create(replicas=2, resources=SMALL)
    cluster.wait_running(2)
    declare(kube, cluster, "DisqueUser", "shop", queues=["orders:*"], allow=["@producer"])
    poll(lambda: reason(kube, cluster, "DisqueUser", "shop") == "Applied", "the user is applied", APPLIED_S)
    assert all(can_add(kube, cluster, ordinal) for ordinal in range(2))
    kube.delete("Pod", cluster.pod(1), cluster.namespace)
    cluster.wait_running(2)
    poll(lambda: can_add(kube, cluster, 1), "a restarted broker has the user", APPLIED_S)
    cluster.patch(replicas=3)
    cluster.wait_running(3)
    poll(lambda: can_add(kube, cluster, 2), "a new member has the user", APPLIED_S)
    kube.delete("DisqueUser", "shop", cluster.namespace)

    def is_gone() -> bool:
        with cluster.brokers() as brokers:
            return all(b"user shop" not in b" ".join(broker.call("ACL", "LIST")) for broker in brokers)

    poll(is_gone, "no broker has the user", APPLIED_S)
    poll(lambda: kube.find("Secret", SECRET, cluster.namespace) is None, "its password is gone", APPLIED_S)


def test_queue_is_paused_on_all_members_and_restored(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=2, resources=SMALL)
    cluster.wait_running(2)
    declare(kube, cluster, "DisqueQueue", "orders", pause="Out")

    def states() -> set[bytes]:
        with cluster.brokers() as brokers:
            return {bytes(broker.call("PAUSE", "orders", "STATE")) for broker in brokers}

    poll(lambda: states() == {b"out"}, "the queue is paused on all members", APPLIED_S)
    with cluster.broker(1) as broker:
        broker.call("PAUSE", "orders", "NONE")
    poll(lambda: states() == {b"out"}, "the drift is restored", APPLIED_S)
    kube.delete("DisqueQueue", "orders", cluster.namespace)
    poll(lambda: states() == {b"none"}, "the queue is resumed", APPLIED_S)


def test_schedule_is_set_on_all_members_and_removed_with_its_resource(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=2, resources=SMALL)
    cluster.wait_running(2)
    spec = {"when": "every 5 s", "queue": "ticks", "body": "tick", "job": {"ttlSeconds": 60}}
    declare(kube, cluster, "DisqueSchedule", "ticker", **spec)

    def states() -> set[str]:
        found = set()
        with cluster.brokers() as brokers:
            for broker in brokers:
                rows = broker.call("SCHEDULE", "*", "SHOW")
                found |= {row[row.index(b"state") + 1].decode() for row in rows} or {"none"}
        return found

    def ticks() -> int:
        with cluster.brokers() as brokers:
            return sum(int(broker.call("QLEN", "ticks")) for broker in brokers)

    poll(lambda: states() == {"active"}, "all members have the schedule", APPLIED_S)
    poll(lambda: reason(kube, cluster, "DisqueSchedule", "ticker") == "Applied", "it is applied", APPLIED_S)
    poll(lambda: ticks() > 0, "it runs", APPLIED_S)
    with cluster.broker(1) as broker:
        broker.call("SCHEDULE", "ticker", "PAUSE")
    poll(lambda: states() == {"active"}, "the change is undone", APPLIED_S)
    kube.delete("DisqueSchedule", "ticker", cluster.namespace)
    poll(lambda: states() == {"none"}, "the schedule is removed", APPLIED_S)


SETTINGS: Final = {
    "retrySeconds": 60,
    "ttlSeconds": 86400,
    "replicate": 2,
    "priority": -1,
    "retainSeconds": 0,
    "maxlen": 100_000,
    "maxbytes": 1 << 30,
    "overflow": "DropOldest",
    "backoff": {"minMs": 1000, "maxMs": 60_000, "factor": 1.5},
    "limit": 5,
    "dead": "graveyard",
    "deadTtlSeconds": 3600,
    "deadExpired": True,
    "copyTo": ["audit", "x" * 256, "y" * 256],
    "rate": "0.5/m",
    "burst": 3,
    "inflight": 20,
}
"""Every setting that the resource has."""
VALUES: Final = {
    "retry": "60",
    "ttl": "86400",
    "replicate": "2",
    "priority": "-1",
    "retain": "0",
    "maxlen": "100000",
    "maxbytes": "1073741824",
    "overflow": "drop-oldest",
    "backoff": "1000 60000 1.5",
    "limit": "5",
    "dead": "graveyard",
    "dead-ttl": "3600",
    "dead-expired": "yes",
    "copy-to": f"audit {'x' * 256} {'y' * 256}",
    "rate": "0.5/m",
    "burst": "3",
    "inflight": "20",
}


def test_settings_of_a_queue_are_on_all_members_restored_and_removed(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=2, resources=SMALL)
    cluster.wait_running(2)
    declare(kube, cluster, "DisqueQueue", "orders", settings=SETTINGS)

    def settings() -> list[dict[str, str]]:
        """Return what each member has for exactly this queue."""
        found = []
        with cluster.brokers() as brokers:
            for broker in brokers:
                words = [word.decode() for word in broker.call("QCONF", "orders", "GET")]
                rows = zip(words[::3], words[1::3], words[2::3], strict=True)
                found.append({name: value for name, value, source in rows if source == "orders"})
        return found

    poll(lambda: settings() == [VALUES] * 2, "both members have the settings", APPLIED_S)
    poll(lambda: reason(kube, cluster, "DisqueQueue", "orders") == "Applied", "the queue is applied", APPLIED_S)
    with cluster.broker(1) as broker:
        broker.call("QCONF", "orders", "SET", "retry", 5, "pause", "none")
        broker.call("QCONF", "orders", "UNSET", "limit")
    own = VALUES | {"pause": "none"}
    poll(lambda: settings() == [own] * 2, "the drift is restored, and the pause is left alone", APPLIED_S)
    cluster.patch(replicas=3)
    cluster.wait_running(3)
    poll(lambda: settings() == [own] * 3, "a new member has the settings", APPLIED_S)
    kube.patch("DisqueQueue", "orders", cluster.namespace, {"spec": {"settings": {"copyTo": None, "limit": 6}}})
    changed = {name: value for name, value in own.items() if name != "copy-to"} | {"limit": "6"}
    poll(lambda: settings() == [changed] * 3, "the change of the resource is on all members", APPLIED_S)
    kube.delete("DisqueQueue", "orders", cluster.namespace)
    poll(lambda: settings() == [{"pause": "none"}] * 3, "the settings are removed", APPLIED_S)


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("DisqueUser", {"userName": "default"}, "userName must not be default"),
        ("DisqueUser", {"userName": "two words"}, "userName"),
        ("DisqueUser", {"queues": ["two words"]}, "queues"),
        ("DisqueUser", {"allow": ["+@all"]}, "allow"),
        (
            "DisqueUser",
            {"authentication": "Certificate", "passwordSecret": {"name": "x"}},
            "passwordSecret has no effect",
        ),
        ("DisqueUser", {"limits": {"connections": -1}}, "connections"),
        ("DisqueUser", {"deletionPolicy": "Orphan"}, "deletionPolicy"),
        ("DisqueSchedule", {"when": "", "queue": "q"}, "when"),
        ("DisqueSchedule", {"when": "every 5 m", "queue": "q", "timeZone": "UTC"}, "timeZone is of use with a cron"),
        ("DisqueSchedule", {"when": "@daily", "queue": "q", "scheduleName": "a*"}, "scheduleName"),
        ("DisqueSchedule", {"when": "@daily", "queue": "q", "job": {"ttlSeconds": 0}}, "ttlSeconds"),
        ("DisqueQueue", {"pause": "Sometimes"}, "pause"),
        ("DisqueQueue", {"queueName": ""}, "queueName"),
        ("DisqueQueue", {"settings": {"maxlen": 0}}, "maxlen"),
        ("DisqueQueue", {"settings": {"dead": "two words"}}, "dead"),
        ("DisqueQueue", {"settings": {"backoff": {"minMs": 9, "maxMs": 1}}}, "maxMs"),
        ("DisqueQueue", {"settings": {"copyTo": []}}, "copyTo"),
        ("DisqueQueue", {"settings": {"rate": "10"}}, "rate"),
        ("DisqueQueue", {"settings": {"rate": "0/s"}}, "rate"),
        ("DisqueQueue", {"settings": {"rate": "10/w"}}, "rate"),
        ("DisqueQueue", {"settings": {"burst": 0}}, "burst"),
        ("DisqueQueue", {"settings": {"inflight": 0}}, "inflight"),
        ("DisqueQueue", {"settings": {"copyTo": ["x" * 256] * 4}}, "copyTo must have at most 1024 bytes in all"),
        ("DisqueQueue", {"queueName": "orders:*", "settings": {"limit": 3}}, "set those of patterns with QCONF"),
        ("DisqueQueue", {"onDrift": "Ignore"}, "onDrift"),
        ("DisqueQueue", {"type": "log"}, "type"),
        ("DisqueQueue", {"ordered": {"single": True}}, "ordered has no effect without type: ordered"),
        ("DisqueQueue", {"deleteJobs": True}, "deleteJobs is for ordered queues"),
        ("DisqueQueue", {"type": "ordered", "queueName": "a*"}, "an ordered queue has one name"),
        ("DisqueQueue", {"type": "ordered", "ordered": {"replicas": 4}}, "ordered.replicas must be 1, 3 or 5"),
        ("DisqueQueue", {"type": "ordered", "ordered": {"prefetch": 0}}, "prefetch"),
        ("DisqueQueue", {"type": "ordered", "settings": {"replicate": 2}}, "have no effect on ordered queues"),
    ],
)
def test_invalid_user_queue_or_schedule_is_rejected(
    cluster: DisqueCluster, kube: Kube, kind: str, spec: dict[str, Any], says: str
) -> None:
    with pytest.raises(ApiException, match=says):
        declare(kube, cluster, kind, "wrong", **spec)


@pytest.mark.parametrize("kind", ["DisqueUser", "DisqueQueue"])
def test_cluster_and_name_cannot_be_changed(cluster: DisqueCluster, kube: Kube, kind: str) -> None:
    name = {"DisqueUser": "userName", "DisqueQueue": "queueName"}[kind]
    declare(kube, cluster, kind, "fixed", **{name: "one"})
    for change, says in (
        ({"clusterRef": {"name": "other"}}, "clusterRef cannot be changed"),
        ({name: "two"}, f"{name} cannot be changed"),
    ):
        with pytest.raises(ApiException, match=says):
            kube.patch(kind, "fixed", cluster.namespace, {"spec": change})


def test_type_and_options_of_a_queue_cannot_be_changed(cluster: DisqueCluster, kube: Kube) -> None:
    declare(kube, cluster, "DisqueQueue", "plain")
    declare(kube, cluster, "DisqueQueue", "fixed", type="ordered", ordered={"single": True})
    for name, change, says in (
        ("plain", {"type": "ordered"}, "type cannot be changed"),
        ("fixed", {"type": "jobs", "ordered": None}, "type cannot be changed"),
        ("fixed", {"ordered": {"single": False}}, "ordered cannot be changed"),
        ("fixed", {"ordered": {"replicas": 1}}, "ordered cannot be changed"),
        ("fixed", {"ordered": None}, "ordered cannot be changed"),
    ):
        with pytest.raises(ApiException, match=says):
            kube.patch("DisqueQueue", name, cluster.namespace, {"spec": change})
    kube.patch("DisqueQueue", "fixed", cluster.namespace, {"spec": {"deleteJobs": True, "pause": "Out"}})
