"""Every field of INFO has a metric, or a reason why not."""

from __future__ import annotations

import random

import pytest

from disqued.config import Config
from disqued.metrics.catalog import ALL
from disqued.testing.cluster import Cluster
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode
from persistence.samples import kept, make_job
from support.asking import ask

TEXT = "a text or a setting, not a number"
HUMAN_READABLE = "a human-readable form of another field"
RATE = "a rate: Prometheus computes it from a counter"
ALWAYS_ZERO = "always 0, for compatibility with tools"
ALL_CLIENTS = "a scan of all clients, too slow with thousands of them: CLIENT LIST has each"
OF_LOADING = "follows from the bytes and the time"
OF_LEAVING = "follows from the numbers of remaining and transferred jobs"
IN_INFO = {
    **dict.fromkeys(["disqued_version", "build", "python_version"], "disque_build_info"),
    **dict.fromkeys(["disque_version", "disque_git_sha1", "disque_build_id", "os", "multiplexing_api"], TEXT),
    **dict.fromkeys(
        ["gcc_version", "run_id", "executable", "config_file", "mem_allocator", "disqued_extensions"], TEXT
    ),
    **dict.fromkeys(["arch_bits", "process_id", "tcp_port", "hz", "maxmemory_policy", "memory_limit_source"], TEXT),
    **dict.fromkeys(
        ["disque_git_dirty", "latest_fork_usec", "aof_rewrite_scheduled", "aof_pending_rewrite"], ALWAYS_ZERO
    ),
    "uptime_in_seconds": "disque_start_time_seconds",
    "uptime_in_days": HUMAN_READABLE,
    "connected_clients": "disque_connected_clients",
    "client_longest_output_list": ALL_CLIENTS,
    "client_biggest_input_buf": ALL_CLIENTS,
    "blocked_clients": "disque_blocked_clients",
    "used_memory": "disque_memory_used_bytes",
    "used_memory_rss": "disque_memory_resident_bytes",
    "used_memory_peak": "disque_memory_peak_bytes",
    **dict.fromkeys(["used_memory_human", "used_memory_peak_human", "maxmemory_human"], HUMAN_READABLE),
    "mem_fragmentation_ratio": "resident memory divided by used memory",
    "used_memory_startup": "constant: resident memory of a node without jobs",
    "used_memory_buffers": "disque_memory_buffers_bytes",
    "maxmemory": "disque_memory_max_bytes",
    "maxmemory_resident": "follows from maxmemory: disque_memory_resident_exceeded is 1 when it is exceeded",
    "memory_limit": "disque_memory_limit_bytes",
    "memory_level": "disque_memory_level",
    "memory_resident_exceeded": "disque_memory_resident_exceeded",
    "requests_refused_unread": "disque_requests_refused_unread_total",
    "clients_closed_for_memory": "disque_clients_closed_total",
    "keys_remembered": "disque_keys_remembered",
    "jobs_deduplicated": "disque_jobs_deduplicated_total",
    "registered_jobs": "disque_jobs",
    "queued_jobs": "disque_jobs",
    "jobs_waiting_for_copies": "disque_jobs",
    "max_replicate": "disque_max_replicate",
    "registered_queues": "disque_queues",
    "loading": "disque_loading",
    "loading_start_time": OF_LOADING,
    "loading_total_bytes": "disque_loading_total_bytes",
    "loading_loaded_bytes": "disque_loading_loaded_bytes",
    "loading_loaded_perc": OF_LOADING,
    "loading_eta_seconds": OF_LOADING,
    "aof_enabled": "disque_aof_enabled",
    "aof_state": "a text: disque_aof_enabled and disque_loading have the same information",
    "aof_rewrite_in_progress": "disque_aof_rewrite_in_progress",
    "aof_last_rewrite_time_sec": "disque_aof_last_rewrite_duration_seconds",
    "aof_current_rewrite_time_sec": "disque_aof_current_rewrite_duration_seconds",
    "aof_last_bgrewrite_status": "disque_aof_last_rewrite_ok",
    "aof_last_write_status": "disque_aof_failed",
    "aof_format": "the same for all nodes of a release: disque_build_info has that",
    "aof_current_size": "disque_aof_size_bytes",
    "aof_base_size": "disque_aof_base_size_bytes",
    "aof_buffer_length": "disque_aof_unwritten_bytes",
    "aof_rewrite_buffer_length": "a part of disque_memory_buffers_bytes during a rewrite",
    "aof_pending_bio_fsync": "true for a moment: disque_aof_fsync_duration_seconds has the duration",
    "aof_delayed_fsync": "disque_aof_delayed_fsyncs_total",
    "aof_damaged_records": "disque_aof_damaged_records_total",
    "clock_offset_ms": "disque_clock_offset_seconds",
    "clock_steps": "the large changes of the offset",
    "aof_last_fsync_ms": "disque_aof_fsync_duration_seconds",
    "aof_unsynced_bytes": "disque_aof_unsynced_bytes",
    "aof_refusing": "disque_aof_failed",
    "total_connections_received": "disque_connections_received_total",
    "total_commands_processed": "disque_commands_total",
    "total_net_input_bytes": "disque_network_received_bytes_total",
    "total_net_output_bytes": "disque_network_sent_bytes_total",
    "instantaneous_ops_per_sec": RATE,
    "instantaneous_input_kbps": RATE,
    "instantaneous_output_kbps": RATE,
    "rejected_connections": "disque_rejected_connections_total",
    "expired_jobs": "disque_records_expired_total",
    "evicted_jobs": "disque_jobs_evicted_total",
    "used_cpu_sys": "process_cpu_seconds_total",
    "used_cpu_user": "process_cpu_seconds_total",
    "used_cpu_sys_children": "a node has no child processes",
    "used_cpu_user_children": "a node has no child processes",
    "cmdstat": "disque_command_duration_seconds",
    "busstat": "disque_cluster_messages_total",
    "bus_links_overflowed": "disque_cluster_links_overflowed_total",
    "bus_lost_bytes": "disque_cluster_lost_bytes_total",
    "cluster_links_up": "disque_cluster_link_up",
    "cluster_nodes_pfail": "disque_cluster_nodes",
    "cluster_nodes_fail": "disque_cluster_nodes",
    "cluster_nodes_leaving": "disque_cluster_nodes",
    "cluster_links_unproven": "disque_cluster_links_unproven",
    "cluster_max_skew_ms": "disque_clock_skew_seconds",
    "cluster_clock_ahead_ms": "disque_clock_skew_seconds",
    "cluster_clock_quarantine": "disque_clock_quarantine",
    "schedule_runs": "disque_schedule_runs_total",
    "schedule_runs_missed": "disque_schedule_runs_missed_total",
    "schedule_runs_refused": "disque_schedule_runs_refused_total",
    "ordered_catalog": TEXT,
    "ordered_log_syncs": "disque_ordered_log_syncs_total",
    **{
        f"ordered_{name}": f"disque_ordered_{name}"
        for name in ("queues", "groups", "leaders", "groups_without_leader", "log_bytes", "log_live_bytes")
    },
    **{
        f"ordered_{name}": f"disque_ordered_{name}_total"
        for name in (
            "messages_refused",
            "elections",
            "proposals",
            "bodies_read",
            "stale_claims",
            "requests_without_leader",
            "moves_parked",
            "jobs_adopted",
            "recovered",
        )
    },
    "ordered_local_deliveries": "disque_ordered_deliveries_total",
    "ordered_remote_deliveries": "disque_ordered_deliveries_total",
    "leaving": "disque_leaving",
    "leaving_jobs_left": "disque_leaving_jobs_left",
    "leaving_jobs_transferred": "disque_leaving_jobs_transferred",
    "leaving_jobs_held": "disque_leaving_jobs_held",
    "leaving_jobs_waiting_for_copies": "disque_jobs_waiting_for_copies",
    **dict.fromkeys(["leaving_done", "leaving_jobs_in_flight", "leaving_jobs_short_of_copies"], OF_LEAVING),
    **dict.fromkeys(["leaving_jobs_dropped", "leaving_rate", "leaving_seconds_left"], OF_LEAVING),
    **dict.fromkeys(["leaving_seconds_elapsed", "leaving_waits_for"], OF_LEAVING),
    "repair_jobs_under_replicated": "disque_jobs_under_replicated",
    "repair_copies_rebuilt": "disque_copies_rebuilt_total",
    **dict.fromkeys(["repair_jobs_in_flight", "repair_jobs_without_node"], "a part of disque_jobs_under_replicated"),
    **dict.fromkeys(["repair_waits_for", "repair_seconds_without_progress"], "follows from those numbers"),
    "replications_waiting": "disque_jobs_waiting_for_copies",
    "replication_timeouts": "disque_replication_timeouts_total",
    "external_replications": "disque_external_replications_total",
    "async_held_back": "disque_async_adds_held_back_total",
    "copy_to_refused": "disque_copy_to_refused_total",
    "async_copies_missing": "disque_async_copies_missing_total",
    "sync_copies_missing": "disque_sync_copies_missing_total",
    "copies_kept": "disque_copies_kept_total",
    "copies_refused": "disque_copies_refused_total",
    "duplicate_enqueues_dropped": "disque_duplicate_enqueues_dropped_total",
    "requeues_prevented": "disque_requeues_prevented_total",
    "log_entries": "disque_log_entries_total",
    "claims": "disque_claims_total",
    "stale_refused": "disque_stale_refused_total",
    "acked_jobs": "disque_jobs",
    "ack_collections": "disque_ack_collections_total",
    "dummy_acks_made": "disque_dummy_acks_made_total",
    "dummy_acks_collected": "disque_dummy_acks_collected_total",
    "dummy_acks_dropped": "disque_dummy_acks_dropped_total",
    "finished_jobs_forgotten_early": "disque_finished_jobs_forgotten_early_total",
    "acks_forwarded": "disque_acks_forwarded_total",
    "logins_failed": "disque_logins_failed_total",
    "requests_forbidden_command": "disque_requests_forbidden_total",
    "requests_forbidden_queue": "disque_requests_forbidden_total",
    "requests_forbidden_rate": "disque_requests_forbidden_total",
    "audit_records_lost": "disque_audit_records_lost_total",
    **{
        name: f"disque_{name}_total"
        for name in (
            "adds_refused_full",
            "jobs_dropped_oldest",
            "settings_changed",
            "settings_received",
            "settings_refused",
            "settings_exchanged",
            "tokens_granted",
            "tokens_returned",
            "tokens_refused",
            "limited_deliveries",
            "deliveries_held_back",
        )
    },
    "jobs_dead_limit": "disque_jobs_dead_total",
    "jobs_dead_rejected": "disque_jobs_dead_total",
    "jobs_dead_expired": "disque_jobs_dead_total",
    "jobs_dead_parent": "disque_jobs_dead_total",
    "held_jobs_freed": "disque_held_jobs_freed_total",
    "held_jobs_dead": "disque_held_jobs_otherwise_total",
    "held_jobs_run": "disque_held_jobs_otherwise_total",
    "held_jobs_drop": "disque_held_jobs_otherwise_total",
    "jobs_moved": "disque_jobs_moved_total",
    "jobs_purged": "disque_jobs_purged_total",
    "job_records_kept": "disque_job_records_kept_total",
    "job_records_dropped": "disque_job_records_dropped_total",
    "job_watches_refused": "disque_job_watches_refused_total",
    "job_results_stale": "disque_job_results_stale_total",
    "jobs_imported": "disque_jobs_imported_total",
    "imported_at_most_once": "disque_jobs_imported_at_most_once_total",
    "jobs_exported": "disque_jobs_exported_total",
    "queues_asked_for": "disque_queues_asked_for",
    "queues_wanted_elsewhere": "disque_queues_wanted_elsewhere",
}
"""INFO field -> its metric, or the reason why there is none. Fields of commands and of messages are one entry each."""


def fields(client: LocalClient) -> set[str]:
    """The names of all current INFO fields."""
    lines = ask(client, "INFO", "all").decode().split("\r\n")
    names = [line.partition(":")[0] for line in lines if ":" in line]
    return {name.partition("_")[0] if name.startswith(("cmdstat_", "busstat_")) else name for name in names}


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """The fields of a loading node, of one with an append-only file, and of one that is leaving."""
    host = FakeHost()
    records = [kept(make_job(random.Random(seed), b"body %d" % seed)) for seed in range(3500)]
    host.disk.put("disque.aof", b"".join(records))
    config = Config()
    config.appendonly = True
    local = LocalNode(config, host)
    loading = fields(local.client())
    assert "loading_total_bytes" in loading
    local.run(seconds=5)
    with_file = fields(local.client())
    cluster = Cluster(2)
    cluster.run(seconds=5)
    leaving = cluster.members[0]
    leaving.admin.call("CLUSTER", "LEAVING", "yes")
    return loading | with_file | fields(leaving.admin)


def test_each_info_field_has_a_metric_or_a_reason(shown: set[str]) -> None:
    assert shown - IN_INFO.keys() == set(), "add its metric, or why there is none"
    assert IN_INFO.keys() - shown == set(), "INFO has no such field"


def test_metrics_of_info_fields_exist() -> None:
    names = {metric.name for metric in ALL}
    assert {where for where in IN_INFO.values() if " " not in where} - names == set()
