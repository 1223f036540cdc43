"""INFO: sections, their fields in order, and the figures behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from disqued import __version__
from disqued.admin.info import human_size
from disqued.testing.cluster import Cluster
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode

SECTIONS = {
    "Server": "disque_version disque_git_sha1 disque_git_dirty disque_build_id os arch_bits multiplexing_api "
    "gcc_version process_id run_id tcp_port uptime_in_seconds uptime_in_days hz executable config_file "
    "disqued_version python_version build disqued_extensions",
    "Clients": "connected_clients client_longest_output_list client_biggest_input_buf blocked_clients",
    "Memory": "used_memory used_memory_human used_memory_rss used_memory_peak used_memory_peak_human "
    "mem_fragmentation_ratio mem_allocator used_memory_startup used_memory_buffers maxmemory maxmemory_human "
    "maxmemory_policy maxmemory_resident memory_limit memory_limit_source memory_level memory_resident_exceeded "
    "requests_refused_unread clients_closed_for_memory",
    "Jobs": "registered_jobs queued_jobs jobs_waiting_for_copies max_replicate",
    "Queues": "registered_queues",
    "Persistence": "loading aof_enabled aof_state aof_rewrite_in_progress aof_rewrite_scheduled "
    "aof_last_rewrite_time_sec aof_current_rewrite_time_sec aof_last_bgrewrite_status aof_last_write_status "
    "clock_offset_ms clock_steps",
    "Stats": "total_connections_received total_commands_processed instantaneous_ops_per_sec total_net_input_bytes "
    "total_net_output_bytes instantaneous_input_kbps instantaneous_output_kbps rejected_connections latest_fork_usec "
    "expired_jobs evicted_jobs",
    "CPU": "used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children",
    "Access": "logins_failed requests_forbidden_command requests_forbidden_queue requests_forbidden_rate "
    "audit_records_lost",
    "Membership": "cluster_links_up cluster_nodes_pfail cluster_nodes_fail cluster_nodes_leaving "
    "cluster_links_unproven cluster_max_skew_ms cluster_clock_ahead_ms cluster_clock_quarantine",
    "Schedule": "schedule_runs schedule_runs_missed schedule_runs_refused",
    "Settings": "settings_changed settings_received settings_refused settings_exchanged",
    "Admission": "keys_remembered jobs_deduplicated adds_refused_full jobs_dropped_oldest copy_to_refused",
    "Replication": "replications_waiting replication_timeouts external_replications async_held_back "
    "async_copies_missing sync_copies_missing copies_kept copies_refused",
    "Delivery": "duplicate_enqueues_dropped requeues_prevented claims stale_refused",
    "Acks": "acked_jobs ack_collections dummy_acks_made dummy_acks_collected dummy_acks_dropped acks_forwarded "
    "finished_jobs_forgotten_early",
    "Fates": "job_records_kept job_records_dropped job_watches_refused job_results_stale",
    "Progress": "log_entries",
    "Dependencies": "held_jobs_freed held_jobs_dead held_jobs_run held_jobs_drop",
    "Federation": "queues_asked_for queues_wanted_elsewhere jobs_imported imported_at_most_once jobs_exported",
    "Rates": "tokens_granted tokens_returned limited_deliveries deliveries_held_back tokens_refused",
    "Moves": "jobs_dead_limit jobs_dead_rejected jobs_dead_expired jobs_dead_parent jobs_moved",
    "Repair": "repair_waits_for repair_seconds_without_progress repair_jobs_under_replicated repair_jobs_in_flight "
    "repair_jobs_without_node repair_copies_rebuilt",
    "Counts": "jobs_purged",
    "Ordered": "ordered_catalog ordered_queues ordered_groups ordered_leaders ordered_groups_without_leader "
    "ordered_log_bytes ordered_log_live_bytes ordered_log_syncs ordered_messages_refused ordered_moves_parked "
    "ordered_jobs_adopted ordered_elections ordered_proposals ordered_local_deliveries ordered_remote_deliveries "
    "ordered_bodies_read ordered_stale_claims ordered_requests_without_leader ordered_recovered",
}
"""Those of the original, then ours."""
ON_REQUEST = ["Commandstats", "Busstats"]


def info(client: LocalClient, *words: str) -> dict[str, dict[str, str]]:
    """The fields by section."""
    found: dict[str, dict[str, str]] = {}
    for section in ask(client, "INFO", *words).decode().split("\r\n\r\n"):
        title, *lines = section.removesuffix("\r\n").split("\r\n")
        assert title.startswith("# ")
        found[title[2:]] = dict(line.split(":", 1) for line in lines)
    return found


def test_all_sections_come_in_order(client: LocalClient) -> None:
    shown = info(client)
    assert {title: " ".join(fields) for title, fields in shown.items()} == SECTIONS
    assert list(shown) == list(SECTIONS)
    assert list(info(client, "DEFAULT")) == list(SECTIONS)
    assert sorted(info(client, "all")) == sorted([*SECTIONS, *ON_REQUEST])


@pytest.mark.parametrize("title", [*SECTIONS, *ON_REQUEST])
def test_a_section_is_found_by_its_name_in_any_case(client: LocalClient, title: str) -> None:
    assert list(info(client, title.upper())) == [title]


def test_a_section_ends_with_one_line_end(client: LocalClient) -> None:
    assert client.raw("INFO", "queues") == b"$31\r\n# Queues\r\nregistered_queues:0\r\n\r\n"
    assert b"\r\n\r\n# Clients\r\n" in client.raw("INFO")


def test_an_unknown_section_is_empty(client: LocalClient) -> None:
    assert client.raw("INFO", "nosuch") == b"$0\r\n\r\n"


def test_two_sections_are_too_many(client: LocalClient) -> None:
    assert client.raw("INFO", "a", "b") == b"-ERR syntax error\r\n"


def test_the_server_section_says_what_runs(local: LocalNode, client: LocalClient) -> None:
    local.host.now_ms += (86_400 + 5) * 1000  # at once: ticking through a day takes long
    server = info(client, "server")["Server"]
    assert server["disque_version"] == "1.0-rc1"
    assert server["disqued_version"] == __version__
    assert server["build"] in {"compiled", "interpreted"}
    assert server["disqued_extensions"].split(",") == [
        "ackjob-claim",
        "ackjob-seq",
        "addjob-after",
        "addjob-key",
        "addjob-meta",
        "addjob-priority",
        "addjob-sync",
        "addjob-until",
        "addjob-withcopies",
        "getjob-frompattern",
        "getjob-withclaim",
        "getjob-withmeta",
        "getjob-withrequeue",
        "nack-claim",
        "nack-dead",
        "nack-delay",
        "nack-reason",
        "nack-uncounted",
        "working-claim",
        "working-for",
        "working-note",
    ]
    assert (server["uptime_in_seconds"], server["uptime_in_days"]) == ("86405", "1")
    assert len(server["run_id"]) == 40


def test_jobs_queues_and_blocked_clients_are_counted(local: LocalNode, client: LocalClient) -> None:
    ask(client, "ADDJOB", "mail", "body", 0)
    local.client().send("GETJOB", "FROM", "other")
    shown = info(client)
    assert shown["Jobs"]["registered_jobs"] == "1"
    assert shown["Queues"]["registered_queues"] == "2"
    assert shown["Clients"]["blocked_clients"] == "1"
    assert shown["Clients"]["connected_clients"] == "2"


def test_jobs_are_counted_by_what_they_wait_for() -> None:
    cluster = Cluster(3)
    one, two, _ = cluster.members
    assert info(one.admin)["Jobs"] == {
        "registered_jobs": "0",
        "queued_jobs": "0",
        "jobs_waiting_for_copies": "0",
        "max_replicate": "1",
    }
    client = one.client()
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 2)
    cluster.run(milliseconds=100)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    cluster.lose("GOTJOB")
    client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.run(milliseconds=100)
    shown = info(one.admin)["Jobs"]
    assert (shown["queued_jobs"], shown["jobs_waiting_for_copies"], shown["max_replicate"]) == ("1", "1", "3")

    cluster.heal()
    client.disconnect()
    cluster.run(seconds=1)
    assert info(one.admin)["Jobs"]["max_replicate"] == "2"
    assert one.admin.call("ACKJOB", job_id) == 1
    cluster.run(seconds=1)
    assert info(two.admin)["Jobs"]["max_replicate"] == info(one.admin)["Jobs"]["max_replicate"] == "1"


def test_waiting_input_is_shown(local: LocalNode, client: LocalClient) -> None:
    local.client().send_bytes(b"*2\r\n$4\r\nPING\r\n$1000\r\n" + b"x" * 100)
    assert int(info(client, "clients")["Clients"]["client_biggest_input_buf"]) >= 100


def test_memory_grows_with_the_jobs_and_its_peak_stays(client: LocalClient) -> None:
    before = info(client, "memory")["Memory"]
    job = ask(client, "ADDJOB", "mail", b"x" * 100_000, 0)
    during = info(client, "memory")["Memory"]
    ask(client, "DELJOB", job)
    after = info(client, "memory")["Memory"]
    assert int(during["used_memory"]) - int(before["used_memory"]) >= 100_000
    assert after["used_memory_peak"] == during["used_memory_peak"]
    assert int(after["used_memory"]) < int(after["used_memory_peak"])


def test_commands_are_counted_and_timed(local: LocalNode, client: LocalClient) -> None:
    local.host.command_ns = 2_500
    ask(client, "PING")
    ask(client, "PING")
    stats = info(client, "commandstats")["Commandstats"]
    assert stats["cmdstat_ping"] == "calls=2,usec=5,usec_per_call=2.50"
    assert "cmdstat_addjob" not in stats


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.00K"),
        (828_932, "809.50K"),
        (1 << 20, "1.00M"),
        (1 << 30, "1.00G"),
        (3 << 40, "3.00T"),
        (1 << 50, "1.00P"),
        (1 << 60, "1024.00P"),
    ],
)
def test_sizes_are_shown_in_the_unit_that_fits(size_bytes: int, shown: str) -> None:
    assert human_size(size_bytes) == shown
