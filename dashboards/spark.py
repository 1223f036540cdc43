"""Spark's jobs that fill and empty queues: how fast, with how many executors, and what fails.

The series are Spark's own, with the settings of manifests/spark/spark-defaults.conf. Those of a stream carry its name
within theirs, which becomes the label `query` here; `app` is the label that the PodMonitor makes of the job's name.
"""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_SPARK, RISK, Board, Panel, Query, Row, rate, stat

_NONE: Final = "no Spark job runs"
_NO_STREAM: Final = "no stream runs"
_EXECUTORS: Final = '<spark>,executor_id!="driver"'
_QUEUES: Final = 'namespace=~"$namespace"'


def _streams(metric: str) -> str:
    """A gauge of all streams, by the label `query`."""
    name = f"metrics_spark_driver_spark_streaming_.+_{metric}_Value"
    pattern = name.replace(".+", "(.+)")
    return f'label_replace({{__name__=~"{name}",<spark>}}, "query", "$1", "__name__", "{pattern}")'


_NOW: Final = Row(
    "Now",
    (
        stat(
            "Running jobs",
            "The number of running drivers.",
            "short",
            'count(metrics_executor_totalCores{<spark>,executor_id="driver"})',
            empty=_NONE,
        ),
        stat(
            "Executors",
            "If there are none while a job runs, their pods cannot be scheduled (kubectl get pods -l spark-"
            "role=executor).",
            "short",
            f"count(metrics_executor_totalCores{{{_EXECUTORS}}})",
            empty=_NONE,
        ),
        stat(
            "Running tasks",
            "Tasks on all executors.",
            "short",
            "sum(metrics_executor_activeTasks{<spark>})",
            empty=_NONE,
        ),
        stat(
            "Failed tasks",
            "Failures in the last hour. Spark retries a task; four failures of the same task end the job.",
            "short",
            "sum(increase(metrics_executor_failedTasks_total{<spark>}[1h]))",
            steps=((1, RISK), (100, BAD)),
            empty=_NONE,
        ),
        stat(
            "Rows read by streams",
            "Rows per second in the last micro-batches.",
            "ops",
            f"sum({_streams('inputRate_total')})",
            empty=_NO_STREAM,
        ),
        stat(
            "Slowest micro-batch",
            "From trigger to completion. The jobs stay leased for that time, even beyond RETRY.",
            "s",
            f"max({_streams('latency')}) / 1000",
            steps=((60, RISK), (300, BAD)),
            empty=_NO_STREAM,
        ),
    ),
)

_QUEUED: Final = Row(
    "Queues as seen by the brokers",
    (
        Panel(
            "Into queues",
            "New and requeued jobs per second, for the ten busiest queues.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_queue_jobs_in_total', _QUEUES, by='namespace, cluster, queue')})",
                    "{{queue}}",
                ),
            ),
            empty="there are no queues",
        ),
        Panel(
            "Out of queues",
            "Jobs per second that leave a queue for clients or other nodes, for the ten busiest queues.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_queue_jobs_out_total', _QUEUES, by='namespace, cluster, queue')})",
                    "{{queue}}",
                ),
            ),
            empty="there are no queues",
        ),
        Panel(
            "Waiting jobs",
            "Waiting jobs in the ten longest queues. If a line only rises while a drain runs, add executors.",
            "short",
            (Query(f"topk(10, sum by (namespace, cluster, queue) (disque_queue_jobs{{{_QUEUES}}}))", "{{queue}}"),),
            empty="there are no queues",
        ),
    ),
)

_STREAMS: Final = Row(
    "Streams",
    (
        Panel(
            "Read and processed",
            "Rows per second. If more rows are read than processed for a long time, the stream falls behind.",
            "ops",
            (
                Query(_streams("inputRate_total"), "{{app}} {{query}} read"),
                Query(_streams("processingRate_total"), "{{app}} {{query}} processed"),
            ),
            empty=_NO_STREAM,
        ),
        Panel(
            "Duration of micro-batches",
            "From trigger to completion.",
            "s",
            (Query(f"{_streams('latency')} / 1000", "{{app}} {{query}}"),),
            steps=((300, BAD),),
            empty=_NO_STREAM,
        ),
        Panel(
            "State",
            "Rows in the state of the streams, for example IDs of seen jobs. The number should not grow without bound.",
            "short",
            (Query(_streams("states_rowsTotal"), "{{app}} {{query}}"),),
            empty=_NO_STREAM,
        ),
    ),
)

_WORK: Final = Row(
    "Executors",
    (
        Panel(
            "Tasks",
            "Finished and failed tasks per second, over all executors of a job.",
            "ops",
            (
                Query(rate("metrics_executor_completedTasks_total", "<spark>", by="app"), "{{app}} finished"),
                Query(rate("metrics_executor_failedTasks_total", "<spark>", by="app"), "{{app}} failed"),
            ),
            empty=_NONE,
        ),
        Panel(
            "Busy cores",
            "Running tasks, and the number that can run at the same time. If fewer run, the data has too few "
            "partitions.",
            "short",
            (
                Query("sum by (app) (metrics_executor_activeTasks{<spark>})", "{{app}} at work"),
                Query("sum by (app) (metrics_executor_maxTasks{<spark>})", "{{app}} at most"),
            ),
            empty=_NONE,
        ),
        Panel(
            "Garbage collection",
            "The share of the tasks' time spent in garbage collection. Above 10 %, give the executors more memory.",
            "percentunit",
            (
                Query(
                    "sum by (app, executor_id) (rate(metrics_executor_totalGCTime_seconds_total{<spark>}"
                    "[$__rate_interval])) / sum by (app, executor_id) (rate("
                    "metrics_executor_totalDuration_seconds_total{<spark>}[$__rate_interval]))",
                    "{{app}} {{executor_id}}",
                ),
            ),
            steps=((0.1, RISK),),
            empty=_NONE,
        ),
        Panel(
            "Java heap",
            "Used heap of each executor and of the driver.",
            "bytes",
            (Query("metrics_executor_JVMHeapMemory_bytes{<spark>}", "{{app}} {{executor_id}}"),),
            empty=_NONE,
        ),
        Panel(
            "Python memory",
            "Memory of the Python processes, where the connector runs. spark.executor.memoryOverhead limits it.",
            "bytes",
            (Query("metrics_executor_ProcessTreePythonRSSMemory_bytes{<spark>}", "{{app}} {{executor_id}}"),),
            empty=_NONE,
        ),
        Panel(
            "Shuffle writes",
            "Bytes per second written for other tasks. Enqueue and drain need few.",
            "Bps",
            (Query(rate("metrics_executor_totalShuffleWrite_bytes_total", "<spark>", by="app"), "{{app}}"),),
            empty=_NONE,
        ),
    ),
)

SPARK: Final = Board(
    uids.SPARK,
    "Disque / Spark",
    "Spark jobs that read and write queues.",
    OF_SPARK,
    (_NOW, _QUEUED, _STREAMS, _WORK),
)
