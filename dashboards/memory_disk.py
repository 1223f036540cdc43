"""Memory and the append-only file."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, HEALTHY, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, rate, stat

_LEVELS: Final = (
    (0, "normal", HEALTHY),
    (1, "sends new jobs to others", RISK),
    (2, "evicts", RISK),
    (3, "rejects", BAD),
)
_NO_FILE: Final = "no node writes an append-only file"

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Highest memory level",
            "1: above 75 % of maxmemory, new jobs go to other nodes. 2: above 95 %, jobs that may be dropped "
            "are evicted. 3: above 100 %, new jobs are rejected.",
            "short",
            "max(disque_memory_level{<nodes>})",
            steps=((1, RISK), (3, BAD)),
            names=_LEVELS,
        ),
        stat(
            "Fullest node",
            "The used share of maxmemory.",
            "percentunit",
            "max(disque_memory_used_bytes{<nodes>} / (disque_memory_max_bytes{<nodes>} > 0))",
            steps=((0.75, RISK), (0.95, BAD)),
            empty="no node has a limit (maxmemory 0)",
        ),
        stat(
            "Nodes with disk errors",
            "They reject new jobs until they can write their append-only file.",
            "short",
            "sum(disque_aof_failed{<nodes>})",
            steps=((1, BAD),),
        ),
        stat(
            "Persistent nodes",
            "Nodes that write an append-only file. The other nodes lose their copies of jobs when they stop.",
            "short",
            "sum(disque_aof_enabled{<nodes>})",
        ),
        stat(
            "Slowest fsync, 99th percentile",
            "The 99th percentile on the slowest node.",
            "s",
            "max(histogram_quantile(0.99, sum by (le, namespace, cluster, instance) "
            "(rate(disque_aof_fsync_duration_seconds_bucket{<nodes>}[$__rate_interval]))))",
            steps=((0.2, RISK), (1, BAD)),
            empty=_NO_FILE,
        ),
        stat(
            "Rejected because of memory or disk",
            "Requests per second.",
            "ops",
            rate("disque_requests_refused_total", '<nodes>,reason=~"memory|disk"'),
            steps=((0.001, BAD),),
            empty="nothing was rejected",
        ),
    ),
)

_MEMORY: Final = Row(
    "Memory",
    (
        Panel(
            "Used memory",
            "Memory that counts against maxmemory, the part of it in buffers (requests, replies, frames, "
            "records), and the peak.",
            "bytes",
            (
                Query("disque_memory_used_bytes{<nodes>}", "{{instance}}"),
                Query("disque_memory_buffers_bytes{<nodes>}", "{{instance}}, waiting"),
                Query("disque_memory_peak_bytes{<nodes>}", "{{instance}}, at most"),
            ),
        ),
        Panel(
            "Share of maxmemory",
            "The thresholds are the levels at which nodes send new jobs to other nodes, and evict.",
            "percentunit",
            (
                Query(
                    "disque_memory_used_bytes{<nodes>} / (disque_memory_max_bytes{<nodes>} > 0)",
                    "{{instance}}",
                ),
            ),
            steps=((0.75, RISK), (0.95, BAD)),
            empty="no node has a limit (maxmemory 0)",
        ),
        Panel(
            "Level",
            "How each node reacts to its memory use.",
            "short",
            (
                Query("disque_memory_level{<nodes>}", "{{instance}}"),
                Query("disque_memory_resident_exceeded{<nodes>} * 3", "{{instance}}: the process is too large"),
            ),
            Kind.STATES,
            names=_LEVELS,
        ),
        Panel(
            "Process size",
            "Resident memory, and the limit of the container or machine. Above 90 % of the limit a node "
            "rejects new jobs, whatever maxmemory is.",
            "bytes",
            (
                Query("disque_memory_resident_bytes{<nodes>}", "{{instance}}"),
                Query("min(disque_memory_limit_bytes{<nodes>} > 0)", "smallest limit"),
            ),
            width=6,
        ),
        Panel(
            "Evicted and rejected",
            "Jobs and acknowledgements evicted to free memory, and requests rejected because of memory.",
            "ops",
            (
                Query(
                    rate("disque_jobs_evicted_total", by="namespace, cluster, instance"), "forgotten by {{instance}}"
                ),
                Query(
                    rate("disque_requests_refused_total", '<nodes>,reason="memory"', by="namespace, cluster, instance"),
                    "refused by {{instance}}",
                ),
                Query(rate("disque_requests_refused_unread_total"), "too large to read"),
            ),
            width=6,
        ),
        Panel(
            "Disconnected clients",
            "Clients disconnected because they did not read their replies, or sent more than memory allows.",
            "ops",
            (
                Query(
                    rate("disque_clients_closed_total", by="namespace, cluster, instance, reason"),
                    "{{instance}} {{reason}}",
                ),
            ),
            width=6,
        ),
        Panel(
            "Keys",
            "Keys of ADDJOB KEY whose windows have not ended, 272 bytes each. For five minutes after a start,"
            " the latest jobs of the file count as if they had one.",
            "short",
            (Query("disque_keys_remembered{<nodes>}", "{{instance}}"),),
            width=6,
        ),
    ),
)

_DISK: Final = Row(
    "Append-only file",
    (
        Panel(
            "Size",
            "The size of the file, now and after its last rewrite. A rewrite needs space for a second file.",
            "bytes",
            (
                Query(
                    "disque_aof_size_bytes{<nodes>} and on (namespace, instance) disque_aof_enabled == 1",
                    "{{instance}}",
                ),
                Query(
                    "disque_aof_base_size_bytes{<nodes>} and on (namespace, instance) disque_aof_enabled == 1",
                    "{{instance}} at first",
                ),
            ),
            empty=_NO_FILE,
        ),
        Panel(
            "Duration of fsync, 99th percentile",
            "With appendfsync always, clients wait for fsync.",
            "s",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, namespace, cluster, instance) "
                    "(rate(disque_aof_fsync_duration_seconds_bucket{<nodes>}[$__rate_interval])))",
                    "{{instance}}",
                ),
            ),
            steps=((1, BAD),),
            empty=_NO_FILE,
        ),
        Panel(
            "Unwritten and unsynced",
            "Bytes that are not written yet, which grow if the disk is too slow for the load, and bytes that "
            "a power loss would lose.",
            "bytes",
            (
                Query("disque_aof_unwritten_bytes{<nodes>}", "{{instance}}: not written"),
                Query("disque_aof_unsynced_bytes{<nodes>}", "{{instance}}: not synced"),
            ),
        ),
        Panel(
            "Problems",
            "disk: writes fail, and new jobs are rejected. rewrite: the last rewrite failed, and the file "
            "grows. fsync: it took so long that new jobs were rejected. damage: records were skipped at load "
            "time.",
            "short",
            (
                Query("disque_aof_failed{<nodes>} == 1", "{{instance}}: disk"),
                Query("(disque_aof_last_rewrite_ok{<nodes>} == 0) + 1", "{{instance}}: rewrite"),
                Query("increase(disque_aof_delayed_fsyncs_total{<nodes>}[5m]) > bool 0 == 1", "{{instance}}: fsync"),
                Query("disque_aof_damaged_records_total{<nodes>} > bool 0 == 1", "{{instance}}: damage"),
            ),
            Kind.STATES,
            names=((1, "problem", BAD),),
            empty="normal",
        ),
        Panel(
            "Rewrites",
            "Rewrites per hour, and nodes that rewrite their file now.",
            "short",
            (
                Query("increase(disque_aof_rewrites_total{<nodes>}[1h])", "{{instance}}, in the last hour"),
                Query("disque_aof_rewrite_in_progress{<nodes>}", "{{instance}}, now"),
            ),
        ),
        Panel(
            "Free space on volumes",
            "The free share of the volumes of the pods. Requires a Prometheus that scrapes the kubelets.",
            "percentunit",
            (
                Query(
                    'kubelet_volume_stats_available_bytes{namespace=~"$namespace",persistentvolumeclaim=~"data-.*"} '
                    "/ kubelet_volume_stats_capacity_bytes and on (namespace, persistentvolumeclaim) "
                    'label_replace(disque_build_info{<nodes>}, "persistentvolumeclaim", "data-$1", "instance", "(.*)")',
                    "{{persistentvolumeclaim}}",
                ),
            ),
            most=1,
            empty="not on Kubernetes, or the kubelets are not scraped",
        ),
        Panel(
            "Duration of rewrites",
            "The duration of the last rewrite, and how long the current one has been running.",
            "s",
            (
                Query("disque_aof_last_rewrite_duration_seconds{<nodes>}", "{{instance}}, last"),
                Query("disque_aof_current_rewrite_duration_seconds{<nodes>}", "{{instance}}, now"),
            ),
            width=12,
        ),
        Panel(
            "Loading",
            "Bytes of the file that starting nodes have loaded, and its size. 0 means that the node serves clients.",
            "bytes",
            (
                Query("disque_loading_loaded_bytes{<nodes>}", "{{instance}}: loaded"),
                Query("disque_loading_total_bytes{<nodes>}", "{{instance}}: in all"),
            ),
            width=12,
        ),
    ),
)

MEMORY_DISK: Final = Board(
    uids.MEMORY_DISK,
    "Disque / Memory and disk",
    "Memory and disk usage of the nodes, and the state of the append-only file.",
    OF_BROKERS,
    (_NOW, _MEMORY, _DISK),
)
