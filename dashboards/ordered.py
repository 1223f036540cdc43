"""Ordered queues: leaders, replicas, commits, deliveries and the log."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_QUEUES, RISK, Board, Kind, Panel, Query, Row, halves, quantile, rate, stat

_NONE: Final = "there are no ordered queues"
_BY_QUEUE: Final = "namespace, cluster, queue"
_ORDERED: Final = f"and on ({_BY_QUEUE}) disque_queue_replica_lag_entries{{<queues>}}"
"""Only ordered queues have this series."""

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Ordered queues",
            "The largest number of ordered queues that a node knows.",
            "short",
            "max(disque_ordered_queues{<nodes>})",
        ),
        stat(
            "Groups without leader",
            "Ordered queues, and the catalog, that have no leader as one node sees it: nothing can be added to them or "
            "taken from them there.",
            "short",
            "max(disque_ordered_groups_without_leader{<nodes>})",
            steps=((1, BAD),),
        ),
        stat(
            "Largest lag",
            "Entries that the replica furthest behind has not confirmed.",
            "short",
            "max(disque_ordered_replica_lag_entries{<nodes>})",
            steps=((1000, RISK),),
        ),
        stat(
            "Nodes that cannot write",
            "Nodes whose log of ordered queues takes no writes.",
            "short",
            "sum(disque_ordered_writes_refused{<nodes>})",
            steps=((1, BAD),),
        ),
        stat(
            "Commit, 99th percentile",
            "How long the leader needs until a majority has an entry on disk.",
            "s",
            quantile(0.99, "disque_ordered_commit_seconds"),
            steps=((0.1, RISK), (1, BAD)),
            empty=_NONE,
        ),
        stat(
            "Nodes with another catalog",
            "Nodes that see a member with another catalog of ordered queues.",
            "short",
            "sum(disque_ordered_catalog_conflict{<nodes>})",
            steps=((1, BAD),),
        ),
    ),
)

_LIST: Final = Row(
    "Ordered queues",
    (
        Panel(
            "Ordered queues by length",
            "Waiting, leased, delayed and dead jobs, the age of the first job, and the lag of the replica furthest "
            "behind. The node that leads a queue has its series, for its longest queues only (directive "
            "metrics-queues).",
            "short",
            (
                Query(f"sum by ({_BY_QUEUE}) (disque_queue_jobs{{<queues>}}) {_ORDERED}", "ready"),
                Query(f"sum by ({_BY_QUEUE}) (disque_queue_leased_jobs{{<queues>}}) {_ORDERED}", "leased"),
                Query(f"sum by ({_BY_QUEUE}) (disque_queue_delayed_jobs{{<queues>}}) {_ORDERED}", "delayed"),
                Query(f"sum by ({_BY_QUEUE}) (disque_queue_dead_jobs{{<queues>}}) {_ORDERED}", "dead"),
                Query(
                    f"max by ({_BY_QUEUE}) (disque_queue_oldest_job_age_seconds{{<queues>}}) {_ORDERED}", "oldest", "s"
                ),
                Query(f"max by ({_BY_QUEUE}) (disque_queue_replica_lag_entries{{<queues>}})", "lag"),
            ),
            Kind.TABLE,
            width=24,
            height=10,
            empty=_NONE,
        ),
    ),
)

_GROUPS: Final = Row(
    "Leaders and replicas",
    (
        Panel(
            "Leaders",
            "Groups that each node leads. Each ordered queue is a group, and so is the catalog.",
            "short",
            (Query("disque_ordered_leaders{<nodes>}", "{{instance}}"),),
            Kind.STACK,
        ),
        Panel(
            "Replicas per node",
            "Groups that each node has a replica of, and those of them without a leader.",
            "short",
            (
                Query("disque_ordered_groups{<nodes>}", "{{instance}}"),
                Query("disque_ordered_groups_without_leader{<nodes>}", "{{instance}}: without leader"),
            ),
        ),
        Panel(
            "Elections",
            "Times per second that a node began to lead a group. A restart of a node moves the groups that it led.",
            "ops",
            (Query(rate("disque_ordered_elections_total", by="namespace, cluster, instance"), "{{instance}}"),),
        ),
        Panel(
            "Lag",
            "Entries that the replica furthest behind has not confirmed, as each leading node sees it, and the number "
            "of replicas that are behind. While jobs are added, some entries are always on their way.",
            "short",
            (
                Query("disque_ordered_replica_lag_entries{<nodes>}", "{{instance}}: entries"),
                Query("disque_ordered_replicas_behind{<nodes>}", "{{instance}}: replicas"),
            ),
            width=12,
        ),
        Panel(
            "Overdue leases and delays",
            "How long ago a lease or a delay should have ended. It grows while a leader cannot commit.",
            "s",
            (Query("disque_ordered_overdue_seconds{<nodes>}", "{{instance}}"),),
            width=12,
            steps=((60, BAD),),
        ),
    ),
)

_WORK: Final = Row(
    "Requests and deliveries",
    (
        Panel(
            "Commits",
            "How long entries took from their proposal until a majority had them on disk and the leader applied them.",
            "s",
            halves("disque_ordered_commit_seconds"),
            empty=_NONE,
        ),
        Panel(
            "Requests to leaders",
            "How long requests of nodes took until the leader had answered, wherever it is.",
            "s",
            halves("disque_ordered_request_seconds"),
            empty=_NONE,
        ),
        Panel(
            "Proposals",
            "Entries per second that leaders proposed: jobs, acknowledgements, and what consumers say.",
            "ops",
            (Query(rate("disque_ordered_proposals_total", by="namespace, cluster, instance"), "{{instance}}"),),
        ),
        Panel(
            "Deliveries",
            "Jobs per second: handed out by the replica on the node of the client (local), sent by the leader to a "
            "node without replica (remote), and those whose body had to be read from the disk.",
            "ops",
            (
                Query(rate("disque_ordered_deliveries_total", by="path"), "{{path}}"),
                Query(rate("disque_ordered_bodies_read_total"), "read from disk"),
            ),
            width=12,
        ),
        Panel(
            "Refused",
            "Requests per second that found no leader (NOQUORUM), commands with a stale claim, malformed messages of "
            "other nodes, dead letters and moves that were not confirmed for an hour, jobs that came under the name of "
            "an ordered queue from nodes that do not know it, and queues that were recovered from one replica.",
            "ops",
            (
                Query(rate("disque_ordered_requests_without_leader_total"), "no leader"),
                Query(rate("disque_ordered_stale_claims_total"), "stale"),
                Query(rate("disque_ordered_messages_refused_total"), "malformed"),
                Query(rate("disque_ordered_moves_parked_total"), "moves not confirmed"),
                Query(rate("disque_ordered_jobs_adopted_total"), "adopted"),
                Query(rate("disque_ordered_recovered_total"), "recovered"),
            ),
            width=12,
        ),
    ),
)

_LOG: Final = Row(
    "Log",
    (
        Panel(
            "Size of the log",
            "The files of each node, and the bytes in them that are still needed. The files have at most twice that, "
            "and 192 MB.",
            "bytes",
            (
                Query("disque_ordered_log_bytes{<nodes>}", "{{instance}}: files"),
                Query("disque_ordered_log_live_bytes{<nodes>}", "{{instance}}: needed"),
            ),
            width=12,
        ),
        Panel(
            "Syncs and reads",
            "Syncs of the log per second, each for all groups of a node; reads of entries from the disk; and files "
            "that were rewritten to free space.",
            "ops",
            (
                Query(rate("disque_ordered_log_syncs_total"), "syncs"),
                Query(rate("disque_ordered_log_reads_total"), "reads"),
                Query(rate("disque_ordered_log_rewrites_total"), "rewritten files"),
            ),
            width=12,
        ),
    ),
)

ORDERED: Final = Board(
    uids.ORDERED,
    "Disque / Ordered queues",
    "Leaders, replicas, commits, deliveries and the log of ordered queues.",
    OF_QUEUES,
    (_NOW, _LIST, _GROUPS, _WORK, _LOG),
)
