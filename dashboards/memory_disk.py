"""Memory, and the append only file."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, HEALTHY, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, rate, stat

_LEVELS: Final = ((0, "all is well", HEALTHY), (1, "no new jobs kept", RISK), (2, "forgets", RISK), (3, "refuses", BAD))
_NO_FILE: Final = "no node has an append only file"

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Worst level of memory",
            "1: above 75 % of maxmemory, new jobs go to other nodes. 2: above 95 %, what may be lost is forgotten. "
            "3: above 100 %, additions are refused.",
            "short",
            "max(disque_memory_level{<nodes>})",
            steps=((1, RISK), (3, BAD)),
            names=_LEVELS,
        ),
        stat(
            "Fullest node",
            "Share of maxmemory that is used.",
            "percentunit",
            "max(disque_memory_used_bytes{<nodes>} / (disque_memory_max_bytes{<nodes>} > 0))",
            steps=((0.75, RISK), (0.95, BAD)),
            empty="no node has a limit (maxmemory 0)",
        ),
        stat(
            "Nodes whose disk fails",
            "They refuse new jobs until the file can be written.",
            "short",
            "sum(disque_aof_failed{<nodes>})",
            steps=((1, BAD),),
        ),
        stat(
            "Nodes with a file",
            "Nodes that write an append only file. Without one their jobs end with the process, but for copies.",
            "short",
            "sum(disque_aof_enabled{<nodes>})",
        ),
        stat(
            "Slowest sync, 99 %",
            "What one sync in a hundred exceeds, on the slowest node.",
            "s",
            "max(histogram_quantile(0.99, sum by (le, instance) "
            "(rate(disque_aof_fsync_duration_seconds_bucket{<nodes>}[$__rate_interval]))))",
            steps=((0.2, RISK), (1, BAD)),
            empty=_NO_FILE,
        ),
        stat(
            "Refused for memory or disk",
            "Requests per second.",
            "ops",
            rate("disque_requests_refused_total", '<nodes>,reason=~"memory|disk"'),
            steps=((0.001, BAD),),
            empty="nothing was refused",
        ),
    ),
)

_MEMORY: Final = Row(
    "Memory",
    (
        Panel(
            "Used by jobs, queues and clients",
            "What is counted against maxmemory, with the part of it that only waits (requests, replies, frames, "
            "records), and the most that there was.",
            "bytes",
            (
                Query("disque_memory_used_bytes{<nodes>}", "{{instance}}"),
                Query("disque_memory_buffers_bytes{<nodes>}", "{{instance}}, waiting"),
                Query("disque_memory_peak_bytes{<nodes>}", "{{instance}}, at most"),
            ),
        ),
        Panel(
            "Share of maxmemory",
            "With the levels at which nodes stop to keep new jobs and begin to forget.",
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
            "What each node does about it.",
            "short",
            (
                Query("disque_memory_level{<nodes>}", "{{instance}}"),
                Query("disque_memory_squeezed{<nodes>} * 3", "{{instance}}: the process is too large"),
            ),
            Kind.STATES,
            names=_LEVELS,
        ),
        Panel(
            "Size of the process",
            "What the process takes, and what its container or machine has. Beyond 90 % of that it refuses, whatever "
            "maxmemory says.",
            "bytes",
            (
                Query("disque_memory_resident_bytes{<nodes>}", "{{instance}}"),
                Query("min(disque_memory_limit_bytes{<nodes>} > 0)", "smallest limit"),
            ),
            width=6,
        ),
        Panel(
            "Forgotten and refused",
            "Jobs and acknowledgements forgotten for memory, and requests refused for it.",
            "ops",
            (
                Query(rate("disque_jobs_evicted_total", by="instance"), "forgotten by {{instance}}"),
                Query(
                    rate("disque_requests_refused_total", '<nodes>,reason="memory"', by="instance"),
                    "refused by {{instance}}",
                ),
                Query(rate("disque_requests_refused_unread_total"), "too big to be read"),
            ),
            width=6,
        ),
        Panel(
            "Clients hung up on",
            "Because they did not read their replies, or sent more than there was memory for.",
            "ops",
            (Query(rate("disque_clients_closed_total", by="instance, reason"), "{{instance}} {{reason}}"),),
            width=6,
        ),
        Panel(
            "Keys",
            "Keys under which jobs were added (ADDJOB KEY), as long as their windows last: 272 bytes each. After a "
            "start the youngest jobs of the file count as if they had one, for five minutes.",
            "short",
            (Query("disque_keys_remembered{<nodes>}", "{{instance}}"),),
            width=6,
        ),
    ),
)

_DISK: Final = Row(
    "Append only file",
    (
        Panel(
            "Size",
            "Of the file, and what it had when it was written anew last. It wants twice the space.",
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
            "Time of syncs, 99 %",
            "What one sync in a hundred exceeds. With appendfsync always clients wait for it.",
            "s",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, instance) "
                    "(rate(disque_aof_fsync_duration_seconds_bucket{<nodes>}[$__rate_interval])))",
                    "{{instance}}",
                ),
            ),
            steps=((1, BAD),),
            empty=_NO_FILE,
        ),
        Panel(
            "Waiting for the disk",
            "Bytes that are not written yet; they grow when the disk is slower than the load. And what a loss of power "
            "would take.",
            "bytes",
            (
                Query("disque_aof_unwritten_bytes{<nodes>}", "{{instance}}: not written"),
                Query("disque_aof_unsynced_bytes{<nodes>}", "{{instance}}: not synced"),
            ),
        ),
        Panel(
            "Trouble",
            "The disk fails: new jobs are refused. The file could not be written anew: it grows. A sync took so long "
            "that new jobs were refused meanwhile. Damage was left out when the file was loaded.",
            "short",
            (
                Query("disque_aof_failed{<nodes>} == 1", "{{instance}}: disk"),
                Query("(disque_aof_last_rewrite_ok{<nodes>} == 0) + 1", "{{instance}}: writing anew"),
                Query("increase(disque_aof_delayed_fsyncs_total{<nodes>}[5m]) > bool 0 == 1", "{{instance}}: syncs"),
                Query("disque_aof_damaged_records_total{<nodes>} > bool 0 == 1", "{{instance}}: damage"),
            ),
            Kind.STATES,
            names=((1, "trouble", BAD),),
            empty="all is well",
        ),
        Panel(
            "Written anew",
            "Times per hour, and where it is going on now.",
            "short",
            (
                Query("increase(disque_aof_rewrites_total{<nodes>}[1h])", "{{instance}}, in the last hour"),
                Query("disque_aof_rewrite_in_progress{<nodes>}", "{{instance}}, now"),
            ),
        ),
        Panel(
            "Space on volumes",
            "Share that is free on the volumes of the pods; from Kubernetes, if this Prometheus reads its nodes.",
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
            empty="not on Kubernetes, or its kubelets are not read",
        ),
        Panel(
            "Time of writing anew",
            "How long it took last, and for how long it has been going on now.",
            "s",
            (
                Query("disque_aof_last_rewrite_duration_seconds{<nodes>}", "{{instance}}, last"),
                Query("disque_aof_current_rewrite_duration_seconds{<nodes>}", "{{instance}}, now"),
            ),
            width=12,
        ),
        Panel(
            "Loading",
            "Bytes of the file that were loaded by nodes that start, and how many it has. 0: the node serves.",
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
    "How full the nodes are, and how the append only file does.",
    OF_BROKERS,
    (_NOW, _MEMORY, _DISK),
)
