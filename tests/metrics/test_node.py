"""Metrics of clients, commands, the cluster and the disk."""

from __future__ import annotations

import errno

import pytest

from disqued.core.host import disk
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalNode
from metrics.pages import scrape
from support.logging_node import AOF, logging_node


def test_clients_and_bytes_are_counted() -> None:
    local = LocalNode()
    client = local.client()
    client.call("PING")
    waiting = local.client()
    waiting.send("GETJOB", "FROM", "q")
    page = scrape(local)
    assert page.value("disque_connected_clients") == 2
    assert page.value("disque_blocked_clients") == 1
    assert page.value("disque_connections_received_total") == 2
    assert page.value("disque_network_received_bytes_total") > 20
    waiting.disconnect()
    assert scrape(local).value("disque_connected_clients") == 1


def test_commands_are_counted_by_outcome() -> None:
    local = LocalNode()
    local.host.command_ns = 40_000
    client = local.client()
    client.add("q")
    client.call("ADDJOB", "q")
    client.call("ADDJOB", "q", "x", 0, "REPLICATE", 7)
    client.call("NONSENSE")
    client.send_bytes(b"*1\r\nnonsense\r\n")
    page = scrape(local)
    assert page.value("disque_commands_total", command="addjob", result="ok") == 1
    assert page.value("disque_commands_total", command="addjob", result="error") == 2
    errors = page.by("code", "disque_errors_total")
    assert {code: count for code, count in errors.items() if count} == {"ERR": 3, "NOREPL": 1}
    assert {"NOREPL", "OOM", "MISCONF"} < set(errors), "all known codes have a series"
    assert page.by("command", "disque_command_duration_seconds_count") == {"addjob": 3}
    buckets = page.by("le", "disque_command_duration_seconds_bucket", command="addjob")
    assert (buckets["2.5e-05"], buckets["5e-05"], buckets["+Inf"]) == (0, 3, 3)
    assert page.value("disque_command_duration_seconds_sum", command="addjob") == pytest.approx(3 * 40e-6)


def test_config_resetstat_resets_counters() -> None:
    local = LocalNode()
    client = local.client()
    client.add("q")
    client.call("NONSENSE")
    assert client.call("CONFIG", "RESETSTAT") == b"OK"
    page = scrape(local)
    assert page.by("command", "disque_command_duration_seconds_count") == {"config": 1}
    assert set(page.by("code", "disque_errors_total").values()) == {0}
    assert page.value("disque_jobs_added_total") == 0
    assert page.value("disque_jobs", state="queued") == 1


def test_number_of_unknown_error_codes_is_limited() -> None:
    local = LocalNode()
    client = local.client()
    client.call("DEBUG", "ERROR", "x" * 100_000)
    for number in range(100):
        client.call("DEBUG", "ERROR", f"CODE{number} what")
    client.call("DEBUG", "ERROR", "NOREPL as the node would say")
    errors = scrape(local).by("code", "disque_errors_total")
    assert {code: count for code, count in errors.items() if count} == {"other": 101, "NOREPL": 1}


def test_refusals_are_counted_by_reason() -> None:
    local = logging_node()
    client = local.client()
    client.add("q")
    local.host.disk.fail(disk.APPEND, error=errno.ENOSPC)
    client.send("ADDJOB", "q", "x", 0)
    local.run(seconds=1)
    assert "MISCONF" in str(local.client().call("ADDJOB", "q", "y", 0))
    page = scrape(local)
    assert page.value("disque_aof_failed") == 1
    assert page.value("disque_aof_unwritten_bytes") > 0
    assert page.by("reason", "disque_requests_refused_total") == {"memory": 0, "disk": 1, "leaving": 0, "loading": 0}
    local.host.disk.repair()
    local.run(seconds=3)
    page = scrape(local)
    assert page.value("disque_aof_failed") == 0
    assert page.value("disque_aof_unwritten_bytes") == 0


def test_append_only_file_has_metrics() -> None:
    local = logging_node()
    client = local.client()
    assert scrape(local).value("disque_aof_enabled") == 1
    client.add("q")
    local.host.disk.hold(disk.SYNC)
    local.run(seconds=2)
    local.host.disk.repair()
    local.finish()
    local.run(seconds=2)
    assert client.call("BGREWRITEAOF") is not None
    local.run(seconds=5)
    page = scrape(local)
    assert page.value("disque_aof_size_bytes") == len(local.host.disk.files[AOF])
    assert page.value("disque_aof_fsync_duration_seconds_count") >= 1
    assert page.value("disque_aof_fsync_duration_seconds_sum") >= 1
    assert page.value("disque_aof_rewrites_total") == 1
    assert page.value("disque_aof_rewrite_in_progress") == 0
    assert page.value("disque_aof_last_rewrite_ok") == 1


def test_loaded_jobs_are_counted_by_state() -> None:
    local = logging_node()
    client = local.client()
    client.add("later", "x", "DELAY", 100)
    client.add("q")
    client.add("q")
    client.take("q")
    local.run(seconds=3)
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    jobs = scrape(local).by("state", "disque_jobs")
    assert jobs == {"wait_repl": 0, "delayed": 1, "active": 2, "held": 0, "queued": 0, "acked": 0}
    local.run(seconds=120)
    assert scrape(local).value("disque_jobs", state="delayed") == 0


def test_node_without_an_append_only_file_has_no_aof_metrics() -> None:
    page = scrape(LocalNode())
    assert page.value("disque_aof_enabled") == 0
    assert page.value("disque_aof_size_bytes") == 0
    assert page.value("disque_aof_fsync_duration_seconds_count") == 0


def address(member: Member) -> tuple[tuple[str, str], ...]:
    """The labels of a node in the metrics of other nodes."""
    return (("peer", member.id.decode()), ("address", f"{member.ip.decode()}:{member.config.port}"))


def test_other_nodes_have_metrics() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=10)
    one, two, three = cluster.members
    page = scrape(one)
    peers = {address(two): 1.0, address(three): 1.0}
    assert page.by("state", "disque_cluster_nodes") == {
        "connected": 2,
        "suspected": 0,
        "failed": 0,
        "leaving": 0,
        "handshake": 0,
    }
    assert page.value("disque_cluster_size") == 3
    assert {named: page.value("disque_cluster_link_up", **dict(named)) for named in peers} == peers
    assert page.value("disque_cluster_link_buffer_bytes", **dict(address(two))) >= 0
    assert page.value("disque_cluster_messages_total", type="ping", direction="sent") > 0
    assert page.value("disque_cluster_messages_total", type="pong", direction="received") > 0
    assert page.value("disque_cluster_message_sent_bytes_total", type="ping") > 0

    three.crash()
    cluster.run(milliseconds=500)
    page = scrape(one)
    assert page.value("disque_cluster_nodes", state="suspected") == 1
    assert page.value("disque_cluster_link_up", **dict(address(three))) == 0
    cluster.run(seconds=30)
    assert scrape(one).value("disque_cluster_nodes", state="failed") == 1


def test_clock_skew_is_measured() -> None:
    cluster = Cluster(2)
    one, two = cluster.members
    two.skew_ms = -3000
    two.jump()
    cluster.run(seconds=20)
    assert scrape(one).value("disque_clock_skew_seconds", **dict(address(two))) == pytest.approx(3, abs=0.1)


def test_info_is_unchanged() -> None:
    local = LocalNode()
    local.host.command_ns = 1000
    client = local.client()
    client.add("q")
    client.call("ADDJOB", "q")
    client.call("NOSUCH")
    text = client.call("INFO", "all")
    assert isinstance(text, bytes)
    assert b"\r\ncmdstat_addjob:calls=1,usec=2,usec_per_call=2.00\r\n" in text
    assert b"\r\ntotal_commands_processed:1\r\n" in text
