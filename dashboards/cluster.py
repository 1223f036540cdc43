"""The cluster: who reaches whom, copies, jobs that move between nodes."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, HEALTHY, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, halves, rate, stat

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Members",
            "How many nodes the cluster has, as the node knows that knows most.",
            "short",
            "max(disque_cluster_size{<nodes>})",
        ),
        stat(
            "Links that are down",
            "Connections from one node to another that do not work.",
            "short",
            "count(disque_cluster_link_up{<nodes>} == 0) or vector(0)",
            steps=((1, RISK),),
        ),
        stat(
            "Members failed or suspected",
            "As the node sees it that sees most.",
            "short",
            'max(sum by (instance) (disque_cluster_nodes{<nodes>,state=~"failed|suspected"}))',
            steps=((1, BAD),),
        ),
        stat(
            "Nodes that leave",
            "Nodes that hand their jobs to the others.",
            "short",
            "sum(disque_leaving{<nodes>})",
            steps=((1, RISK),),
        ),
        stat(
            "Most copies asked for",
            "The highest REPLICATE of a job that is not done: the cluster should not get smaller.",
            "short",
            "max(disque_max_replicate{<nodes>})",
        ),
        stat(
            "Clocks apart by",
            "The largest difference between the clocks of two nodes. The order of jobs suffers from half a second on.",
            "s",
            "max(disque_clock_skew_seconds{<nodes>})",
            steps=((0.5, RISK), (5, BAD)),
            empty="there is one node only",
        ),
    ),
)

_MEMBERS: Final = Row(
    "Members and links",
    (
        Panel(
            "Links",
            "Red where a node does not reach another one. All links to one node red: that node. Some: the network.",
            "short",
            (Query("disque_cluster_link_up{<nodes>}", "{{instance}} to {{address}}"),),
            Kind.STATES,
            width=12,
            names=((0, "down", BAD), (1, "up", HEALTHY)),
            empty="there is one node only",
        ),
        Panel(
            "Serving",
            "Whether a node is ready for new jobs.",
            "short",
            (Query("disque_ready{<nodes>}", "{{instance}}"),),
            Kind.STATES,
            width=6,
            names=((0, "not ready", BAD), (1, "ready", HEALTHY)),
        ),
        Panel(
            "Loading or leaving",
            "Nodes that load their file, or leave the cluster.",
            "short",
            (
                Query("disque_loading{<nodes>} == 1", "{{instance}} loads"),
                Query("disque_leaving{<nodes>} == 1", "{{instance}} leaves"),
            ),
            Kind.STATES,
            width=6,
            names=((1, "yes", RISK),),
            empty="no node loads or leaves",
        ),
        Panel(
            "The others, as each node sees them",
            "By the worst that is so: connected, leaving, handshake, suspected by this node, failed by the majority. "
            "Nodes that see different numbers for minutes are divided.",
            "short",
            (Query("disque_cluster_nodes{<nodes>} > 0", "{{instance}}: {{state}}"),),
            empty="there is one node only",
        ),
        Panel(
            "Jobs left to hand over",
            "Of nodes that leave. A level line is a node that can not get rid of its jobs.",
            "short",
            (
                Query("disque_leaving_jobs_left{<nodes>}", "{{instance}}: left"),
                Query("disque_leaving_jobs_held{<nodes>}", "{{instance}}: nobody takes them"),
                Query("disque_leaving_jobs_handed_over{<nodes>}", "{{instance}}: handed over"),
            ),
        ),
        Panel(
            "Clocks",
            "The difference to the clocks of the others, at most.",
            "s",
            (Query("max by (instance) (disque_clock_skew_seconds{<nodes>})", "{{instance}}"),),
            steps=((0.5, RISK),),
            empty="there is one node only",
        ),
        Panel(
            "Messages",
            "Messages of the bus per second, by type, the ten most frequent.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_cluster_messages_total', by='type, direction')})",
                    "{{type}} {{direction}}",
                ),
            ),
            empty="there is one node only",
        ),
        Panel(
            "Bytes of messages",
            "Sent to other nodes per second, by the type of the message, the ten largest.",
            "Bps",
            (Query(f"topk(10, {rate('disque_cluster_message_sent_bytes_total', by='type')})", "{{type}}"),),
            empty="there is one node only",
        ),
        Panel(
            "Waiting to be sent",
            "Bytes in the buffers of links. From a quarter of cluster-link-sendbuf-limit on ASYNC adds wait.",
            "bytes",
            (Query("disque_cluster_link_buffer_bytes{<nodes>}", "{{instance}} to {{address}}"),),
            empty="there is one node only",
        ),
        Panel(
            "Links that overflowed",
            "Times in five minutes that a link was closed because the other node took it too slowly. What waited was "
            "lost, and is repeated where it matters.",
            "short",
            (Query("increase(disque_cluster_links_overflowed_total{<nodes>}[5m])", "{{instance}}"),),
            width=12,
        ),
        Panel(
            "Bytes lost on the way",
            "Written to links that were gone before the network took them; each end of a link loses some.",
            "Bps",
            (Query(rate("disque_cluster_lost_bytes_total", by="instance"), "{{instance}}"),),
            width=12,
        ),
    ),
)

_COPIES: Final = Row(
    "Copies",
    (
        Panel(
            "Time to make copies",
            "Of an ADDJOB that waits for its copies: from the request to the answer.",
            "s",
            halves("disque_replication_duration_seconds"),
            width=6,
            empty="no job was added with REPLICATE above 1",
        ),
        Panel(
            "Copies that were not made",
            "NOREPL: ADDJOBs that waited in vain. Missing: copies of ASYNC jobs that were never on their way. Refused: "
            "copies that a full node did not take from others.",
            "ops",
            (
                Query(rate("disque_replication_failures_total"), "NOREPL"),
                Query(rate("disque_replication_timeouts_total"), "NOREPL after their time"),
                Query(rate("disque_async_copies_missing_total"), "missing"),
                Query(rate("disque_copies_refused_total"), "refused"),
            ),
            width=6,
        ),
        Panel(
            "Copies kept",
            "Copies per second that nodes took for others; ASYNC adds that waited because links were full; new jobs "
            "that others keep, because a node leaves or is short of memory.",
            "ops",
            (
                Query(rate("disque_copies_kept_total", by="instance"), "{{instance}}"),
                Query(rate("disque_async_adds_held_back_total"), "held back"),
                Query(rate("disque_external_replications_total"), "kept by others only"),
            ),
            width=6,
        ),
        Panel(
            "Jobs waiting for copies",
            "Jobs whose clients wait in ADDJOB now.",
            "short",
            (Query("disque_jobs_waiting_for_copies{<nodes>}", "{{instance}}"),),
            width=6,
        ),
    ),
)

_BETWEEN: Final = Row(
    "Between nodes",
    (
        Panel(
            "Jobs that move",
            "Jobs per second that went to nodes where workers wait. Much of it means that producers and workers are on "
            "different nodes, which is allowed and costs a little.",
            "ops",
            (
                Query(rate("disque_jobs_imported_total", by="instance"), "to {{instance}}"),
                Query(rate("disque_jobs_exported_total", by="instance"), "from {{instance}}"),
                Query(rate("disque_jobs_imported_at_most_once_total"), "those with RETRY 0"),
            ),
            width=6,
        ),
        Panel(
            "Queues asked for",
            "Queues whose jobs a node wants from others, and that others want from it.",
            "short",
            (
                Query("disque_queues_asked_for{<nodes>}", "{{instance}} asks"),
                Query("disque_queues_wanted_elsewhere{<nodes>}", "{{instance}} is asked"),
            ),
            width=6,
        ),
        Panel(
            "Acknowledgements",
            "Collections: holders of a finished job were asked, or found to know. Of unknown jobs: kept until a holder "
            "is found, and those that all nodes answered. Passed on: by a node that leaves.",
            "ops",
            (
                Query(rate("disque_ack_collections_total"), "collections"),
                Query(rate("disque_dummy_acks_made_total"), "of unknown jobs"),
                Query(rate("disque_dummy_acks_collected_total"), "of unknown jobs, answered"),
                Query(rate("disque_acks_forwarded_total"), "passed on"),
            ),
            width=6,
        ),
        Panel(
            "One job, several nodes",
            "Averted: a node was about to queue a job that another one had. Ties: two queued one at once, and one gave "
            "way. Both are the cluster at work.",
            "ops",
            (
                Query(rate("disque_requeues_prevented_total"), "requeues averted"),
                Query(rate("disque_duplicate_enqueues_dropped_total"), "ties"),
            ),
            width=6,
        ),
    ),
)

CLUSTER: Final = Board(
    uids.CLUSTER,
    "Disque / Cluster and federation",
    "Who reaches whom, copies of jobs, jobs that move between nodes.",
    OF_BROKERS,
    (_NOW, _MEMBERS, _COPIES, _BETWEEN),
)
