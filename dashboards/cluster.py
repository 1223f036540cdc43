"""The cluster: links, copies, and jobs that move between nodes."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, HEALTHY, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, halves, rate, stat

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Members",
            "The largest number of members that any node knows.",
            "short",
            "max(disque_cluster_size{<nodes>})",
        ),
        stat(
            "Links down",
            "Connections from one node to another that are down.",
            "short",
            "count(disque_cluster_link_up{<nodes>} == 0) or vector(0)",
            steps=((1, RISK),),
        ),
        stat(
            "Failed or suspected members",
            "The largest number that any node reports.",
            "short",
            'max(sum by (namespace, cluster, instance) (disque_cluster_nodes{<nodes>,state=~"failed|suspected"}))',
            steps=((1, BAD),),
        ),
        stat(
            "Leaving nodes",
            "Nodes that transfer their jobs to the other nodes.",
            "short",
            "sum(disque_leaving{<nodes>})",
            steps=((1, RISK),),
        ),
        stat(
            "Highest REPLICATE",
            "The highest REPLICATE of an unfinished job. The cluster should not have fewer nodes.",
            "short",
            "max(disque_max_replicate{<nodes>})",
        ),
        stat(
            "Clock skew",
            "The largest difference between the clocks of two nodes. From half a second on, jobs get out of order.",
            "s",
            "max(disque_clock_skew_seconds{<nodes>})",
            steps=((0.5, RISK), (5, BAD)),
            empty="there is only one node",
        ),
    ),
)

_MEMBERS: Final = Row(
    "Members and links",
    (
        Panel(
            "Links",
            "Red means that a node cannot reach another one. If all links to one node are red, check that "
            "node; otherwise check the network.",
            "short",
            (Query("disque_cluster_link_up{<nodes>}", "{{instance}} to {{address}}"),),
            Kind.STATES,
            width=12,
            names=((0, "down", BAD), (1, "up", HEALTHY)),
            empty="there is only one node",
        ),
        Panel(
            "Ready",
            "Whether a node accepts new jobs.",
            "short",
            (Query("disque_ready{<nodes>}", "{{instance}}"),),
            Kind.STATES,
            width=6,
            names=((0, "not ready", BAD), (1, "ready", HEALTHY)),
        ),
        Panel(
            "Loading or leaving",
            "Nodes that are loading their file or leaving the cluster.",
            "short",
            (
                Query("disque_loading{<nodes>} == 1", "{{instance}} loads"),
                Query("disque_leaving{<nodes>} == 1", "{{instance}} leaves"),
            ),
            Kind.STATES,
            width=6,
            names=((1, "yes", RISK),),
            empty="no node is loading or leaving",
        ),
        Panel(
            "Members as seen by each node",
            "Members by state: connected, leaving, handshake, suspected by this node, failed by majority. If "
            "nodes report different numbers for minutes, the cluster is partitioned.",
            "short",
            (Query("disque_cluster_nodes{<nodes>} > 0", "{{instance}}: {{state}}"),),
            empty="there is only one node",
        ),
        Panel(
            "Jobs left to transfer",
            "Jobs of leaving nodes. If a line is flat, the node cannot transfer its jobs.",
            "short",
            (
                Query("disque_leaving_jobs_left{<nodes>}", "{{instance}}: left"),
                Query("disque_leaving_jobs_held{<nodes>}", "{{instance}}: nobody takes them"),
                Query("disque_leaving_jobs_transferred{<nodes>}", "{{instance}}: transferred"),
            ),
        ),
        Panel(
            "Clock skew per node",
            "The largest difference to the clock of another node, and how far the wall clock was set since the node "
            "started.",
            "s",
            (
                Query("max by (namespace, cluster, instance) (disque_clock_skew_seconds{<nodes>})", "{{instance}}"),
                Query("disque_clock_offset_seconds{<nodes>}", "{{instance}}: set"),
            ),
            steps=((0.5, RISK),),
            empty="there is only one node",
        ),
        Panel(
            "Messages",
            "Bus messages per second, for the ten most frequent types.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_cluster_messages_total', by='type, direction')})",
                    "{{type}} {{direction}}",
                ),
            ),
            empty="there is only one node",
        ),
        Panel(
            "Message bytes",
            "Bytes per second sent to other nodes, for the ten largest message types.",
            "Bps",
            (Query(f"topk(10, {rate('disque_cluster_message_sent_bytes_total', by='type')})", "{{type}}"),),
            empty="there is only one node",
        ),
        Panel(
            "Link buffers",
            "Bytes in the send buffers of links. Above a quarter of cluster-link-sendbuf-limit, ASYNC adds wait.",
            "bytes",
            (Query("disque_cluster_link_buffer_bytes{<nodes>}", "{{instance}} to {{address}}"),),
            empty="there is only one node",
        ),
        Panel(
            "Overflowed links",
            "Links closed within five minutes because the other node read too slowly. The buffered messages "
            "are lost; the important ones are sent again.",
            "short",
            (Query("increase(disque_cluster_links_overflowed_total{<nodes>}[5m])", "{{instance}}"),),
            width=12,
        ),
        Panel(
            "Lost bytes",
            "Bytes per second written to links that closed before they were sent.",
            "Bps",
            (Query(rate("disque_cluster_lost_bytes_total", by="namespace, cluster, instance"), "{{instance}}"),),
            width=12,
        ),
    ),
)

_COPIES: Final = Row(
    "Copies",
    (
        Panel(
            "Replication latency",
            "The time from an ADDJOB that waits for copies to its reply.",
            "s",
            halves("disque_replication_duration_seconds"),
            empty="no job was added with REPLICATE above 1",
        ),
        Panel(
            "Missing copies",
            "NOREPL: ADDJOBs that did not get enough copies. Missing: copies of ASYNC jobs that were never "
            "sent, and of SYNC jobs that were not confirmed in time. Refused: copies that a full node rejected.",
            "ops",
            (
                Query(rate("disque_replication_failures_total"), "NOREPL"),
                Query(rate("disque_replication_timeouts_total"), "NOREPL after a timeout"),
                Query(rate("disque_async_copies_missing_total"), "missing"),
                Query(rate("disque_sync_copies_missing_total"), "missing (SYNC)"),
                Query(rate("disque_copies_refused_total"), "refused"),
            ),
        ),
        Panel(
            "Stored copies",
            "Copies per second that nodes stored for others; ASYNC adds that waited for full links; new jobs "
            "stored only on other nodes because this one leaves or is low on memory.",
            "ops",
            (
                Query(rate("disque_copies_kept_total", by="namespace, cluster, instance"), "{{instance}}"),
                Query(rate("disque_async_adds_held_back_total"), "held back"),
                Query(rate("disque_external_replications_total"), "stored by others only"),
            ),
        ),
        Panel(
            "Jobs waiting for copies",
            "Jobs whose clients currently wait in ADDJOB.",
            "short",
            (Query("disque_jobs_waiting_for_copies{<nodes>}", "{{instance}}"),),
            width=12,
        ),
        Panel(
            "Lost copies",
            "Unfinished jobs with fewer live copies than REPLICATE, and copies per second that were made again, by the "
            "reason of the loss. The first is 0 in a whole cluster.",
            "short",
            (
                Query("max(disque_jobs_under_replicated{<nodes>})", "jobs"),
                Query(rate("disque_copies_rebuilt_total", by="reason"), "made again: {{reason}}", "ops"),
            ),
            width=12,
        ),
    ),
)

_BETWEEN: Final = Row(
    "Between nodes",
    (
        Panel(
            "Moved jobs",
            "Jobs per second that moved to nodes where workers wait. A high rate means that producers and "
            "workers use different nodes, which is fine but costs some throughput.",
            "ops",
            (
                Query(rate("disque_jobs_imported_total", by="namespace, cluster, instance"), "to {{instance}}"),
                Query(rate("disque_jobs_exported_total", by="namespace, cluster, instance"), "from {{instance}}"),
                Query(rate("disque_jobs_imported_at_most_once_total"), "at-most-once jobs"),
            ),
            width=6,
        ),
        Panel(
            "Requested queues",
            "Queues whose jobs a node requests from others, and queues that others request from it.",
            "short",
            (
                Query("disque_queues_asked_for{<nodes>}", "{{instance}} asks"),
                Query("disque_queues_wanted_elsewhere{<nodes>}", "{{instance}} is asked"),
            ),
            width=6,
        ),
        Panel(
            "Acknowledgements",
            "Collections: rounds in which the holders of a finished job confirm its acknowledgement. Of "
            "unknown jobs: kept until a holder is found, and those that all nodes confirmed. Forwarded: by a "
            "leaving node.",
            "ops",
            (
                Query(rate("disque_ack_collections_total"), "collections"),
                Query(rate("disque_dummy_acks_made_total"), "of unknown jobs"),
                Query(rate("disque_dummy_acks_dropped_total"), "of unknown jobs, dropped"),
                Query(rate("disque_finished_jobs_forgotten_early_total"), "forgotten early"),
                Query(rate("disque_dummy_acks_collected_total"), "of unknown jobs, confirmed"),
                Query(rate("disque_acks_forwarded_total"), "forwarded"),
            ),
            width=6,
        ),
        Panel(
            "Duplicate enqueues",
            "Prevented: a node did not queue a job because another node had it. Dropped: two nodes queued a "
            "job at the same time, and one gave way. Both are normal.",
            "ops",
            (
                Query(rate("disque_requeues_prevented_total"), "prevented"),
                Query(rate("disque_duplicate_enqueues_dropped_total"), "dropped"),
            ),
            width=6,
        ),
    ),
)

_PODS: Final = Row(
    "Processes and pods",
    (
        Panel(
            "Memory against the limit",
            "Resident memory as a share of the limit of the container, or of the memory of the "
            "machine. At 1 the kernel ends "
            "the process.",
            "percentunit",
            (Query("disque_memory_resident_bytes{<nodes>} / disque_memory_limit_bytes{<nodes>}", "{{instance}}"),),
            steps=((0.85, RISK), (0.95, BAD)),
        ),
        Panel(
            "Restarts",
            "Starts of each node within an hour, whatever the reason.",
            "short",
            (Query("changes(disque_start_time_seconds{<nodes>}[1h])", "{{instance}}"),),
            steps=((1, RISK),),
        ),
        Panel(
            "CPU throttling",
            "Share of the scheduling periods in which the container of the broker had to wait "
            "because of its CPU limit. A "
            "throttled node serves no client for that time: raise or remove the limit.",
            "percentunit",
            (
                Query(
                    "label_replace(\n"
                    "  sum by (namespace, pod) (rate(container_cpu_cfs_throttled_periods_total{<containers>}"
                    "[$__rate_interval]))\n"
                    "  / sum by (namespace, pod) "
                    "(rate(container_cpu_cfs_periods_total{<containers>}[$__rate_interval])),\n"
                    '  "instance", "$1", "pod", "(.+)")\n'
                    "and on (namespace, instance) disque_build_info{<nodes>}",
                    "{{instance}}",
                ),
            ),
            steps=((0.1, RISK), (0.5, BAD)),
            empty="containers have no CPU limit, or Prometheus does not scrape the kubelets",
        ),
    ),
)

CLUSTER: Final = Board(
    uids.CLUSTER,
    "Disque / Cluster and federation",
    "Links, copies of jobs, and jobs that move between nodes.",
    OF_BROKERS,
    (_NOW, _MEMBERS, _COPIES, _BETWEEN, _PODS),
)
