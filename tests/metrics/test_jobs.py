"""Metrics of jobs: added, delivered, acknowledged, expired and evicted."""

from __future__ import annotations

import pytest

from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from metrics.pages import scrape

STATES = ("wait_repl", "delayed", "active", "queued", "acked")


def states(local: LocalNode) -> tuple[float, ...]:
    """The number of jobs by state, in the order of STATES."""
    jobs = scrape(local).by("state", "disque_jobs")
    return tuple(jobs[state] for state in STATES)


def test_jobs_are_counted_by_their_state(local: LocalNode, client: LocalClient) -> None:
    assert states(local) == (0, 0, 0, 0, 0)
    jobs = [client.add("q") for _ in range(3)]
    client.add("later", "x", "DELAY", 5)
    assert states(local) == (0, 1, 0, 3, 0)
    assert client.take("q") == jobs[:1]
    assert states(local) == (0, 1, 1, 2, 0)
    local.run(seconds=6)
    assert states(local) == (0, 0, 1, 3, 0)
    client.call("ACKJOB", jobs[0], jobs[1])
    assert states(local) == (0, 0, 0, 2, 0)


def test_delayed_job_is_not_counted_after_enqueue_delete_or_acknowledgement(
    local: LocalNode, client: LocalClient
) -> None:
    early, deleted, done = (client.add("q", "x", "DELAY", 50) for _ in range(3))
    assert states(local) == (0, 3, 0, 0, 0)
    assert client.call("ENQUEUE", early) == 1
    assert client.call("DELJOB", deleted) == 1
    assert client.call("ACKJOB", done) == 1
    assert states(local) == (0, 0, 0, 1, 0)


def test_copy_of_a_delayed_job_is_active_and_unconfirmed_acknowledgements_are_counted() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=5)
    one, two = cluster.members
    job = one.admin.add("q", "x", "DELAY", 50, "REPLICATE", 2, "ASYNC")
    cluster.run(seconds=1)
    assert states(one) == (0, 1, 0, 0, 0)
    assert states(two) == (0, 0, 1, 0, 0)
    two.crash()
    one.admin.call("ACKJOB", job)
    assert states(one) == (0, 0, 0, 0, 1)


def test_job_waiting_for_replication_and_its_outcome_are_counted() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=5)
    one, two = cluster.members
    two.pause()
    client = one.client()
    client.send("ADDJOB", "q", "x", 3000, "REPLICATE", 2)
    assert states(one) == (1, 0, 0, 0, 0)
    assert scrape(one).value("disque_jobs_waiting_for_copies") == 1
    two.resume()
    cluster.run(seconds=1)
    assert isinstance(client.next_reply(), bytes)
    page = scrape(one)
    assert page.value("disque_jobs_added_total") == 1
    assert page.value("disque_replication_duration_seconds_count") == 1
    assert scrape(two).value("disque_copies_kept_total") == 1
    assert scrape(two).value("disque_jobs_added_total") == 0

    two.pause()
    client.send("ADDJOB", "q", "x", 2000, "REPLICATE", 2)
    cluster.run(seconds=3)
    page = scrape(one)
    assert page.value("disque_replication_failures_total") == 1
    assert page.value("disque_replication_timeouts_total") == 1
    assert page.value("disque_jobs_added_total") == 1
    assert page.by("le", "disque_replication_duration_seconds_bucket")["2.5"] == 2
    assert page.value("disque_replication_duration_seconds_sum") == pytest.approx(2, abs=0.2)
    assert page.value("disque_errors_total", code="NOREPL") == 1


def test_deliveries_are_counted_with_job_age(local: LocalNode, client: LocalClient) -> None:
    client.add("q")
    client.add("q")
    local.run(seconds=3)
    assert len(client.take("q", count=2)) == 2
    client.send("GETJOB", "FROM", "q")
    local.client().add("q")
    page = scrape(local)
    assert page.value("disque_jobs_delivered_total") == 3
    ages = page.by("le", "disque_job_delivery_age_seconds_bucket")
    assert (ages["0.005"], ages["2.5"], ages["5.0"], ages["+Inf"]) == (1, 1, 3, 3)
    assert page.value("disque_job_delivery_age_seconds_sum") == 6
    assert page.value("disque_job_delivery_age_seconds_count") == 3


def test_requeues_are_counted_by_reason(local: LocalNode, client: LocalClient) -> None:
    client.add("q", "x", "DELAY", 1, "RETRY", 2)
    local.run(seconds=1.1)
    (job,) = client.take("q")
    reasons = {"timeout": 0.0, "nack": 0.0, "enqueue": 0.0, "elsewhere": 0.0}
    assert scrape(local).by("reason", "disque_jobs_requeued_total") == reasons, "the end of a delay is not a requeue"
    local.run(seconds=3)
    assert client.take("q") == [job]
    client.call("NACK", job)
    assert client.take("q") == [job]
    client.call("ENQUEUE", job)
    client.call("ENQUEUE", job)
    expected = reasons | {"timeout": 1, "nack": 1, "enqueue": 1}
    assert scrape(local).by("reason", "disque_jobs_requeued_total") == expected


def test_job_queued_by_another_node_is_counted() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=5)
    one, two = cluster.members
    one.admin.add("q", "x", "REPLICATE", 1)
    assert one.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    cluster.run(seconds=5)
    page = scrape(one)
    assert page.value("disque_leaving") == 1
    assert page.value("disque_leaving_jobs_left") == 0
    assert page.value("disque_leaving_jobs_transferred") == 1
    assert scrape(two).value("disque_jobs_requeued_total", reason="elsewhere") == 1
    assert scrape(two).by("state", "disque_cluster_nodes")["leaving"] == 1


def test_only_unacknowledged_jobs_are_counted_as_expired(local: LocalNode, client: LocalClient) -> None:
    client.add("q", "x", "TTL", 2)
    client.add("once", "x", "TTL", 2, "RETRY", 0)
    client.add("once", "x", "TTL", 2, "RETRY", 0)
    assert len(client.take("once")) == 1
    local.run(seconds=5)
    page = scrape(local)
    assert page.value("disque_jobs_expired_total") == 2
    assert page.value("disque_records_expired_total") == 3


def test_client_acknowledgements_are_counted(local: LocalNode, client: LocalClient) -> None:
    jobs = [client.add("q") for _ in range(3)]
    client.call("ACKJOB", *jobs[:2])
    client.call("ACKJOB", jobs[0])
    client.call("FASTACK", jobs[2])
    assert scrape(local).value("disque_jobs_acked_total") == 3


def test_imported_jobs_are_counted_on_both_nodes() -> None:
    cluster = Cluster(2)
    cluster.run(seconds=5)
    one, two = cluster.members
    two.client().send("GETJOB", "FROM", "q")
    cluster.run(seconds=1)
    assert scrape(two).value("disque_queues_asked_for") == 1
    assert scrape(one).value("disque_queues_wanted_elsewhere") == 1
    one.admin.add("q", "x", "REPLICATE", 1)
    cluster.run(milliseconds=100)
    assert scrape(one).value("disque_jobs_exported_total") == 1
    page = scrape(two)
    assert page.value("disque_jobs_imported_total") == 1
    assert page.value("disque_queue_imported_jobs_per_second", queue="q") > 0
    assert page.value("disque_jobs_delivered_total") == 1


def limit(local: LocalNode, size_bytes: int) -> None:
    """Set `maxmemory`."""
    assert local.client().call("CONFIG", "SET", "maxmemory", size_bytes) == b"OK"


def test_evictions_are_counted(local: LocalNode, client: LocalClient) -> None:
    limit(local, 4 << 20)
    for _ in range(20):
        client.add("once", "x" * 50_000, "RETRY", 0)
    client.take("once", count=20)
    page = scrape(local)
    assert page.value("disque_memory_max_bytes") == 4 << 20
    assert page.value("disque_memory_level") == 0
    assert page.value("disque_memory_used_bytes") > 2_000_000
    assert page.value("disque_jobs_evicted_total") == 0
    limit(local, 2 << 20)
    client.call("PING")
    page = scrape(local)
    assert page.value("disque_jobs_evicted_total") > 0
    assert page.value("disque_jobs", state="active") == 20 - page.value("disque_jobs_evicted_total")
