"""Spark's jobs that fill and empty queues: how fast, with how many executors, and what fails.

The series are Spark's own, with the settings of manifests/spark/spark-defaults.conf. Those of a stream carry its name
within theirs, which becomes the label `query` here; `app` is the label that the PodMonitor makes of the job's name.
"""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_SPARK, RISK, Board, Panel, Query, Row, rate, stat

_NONE: Final = "no job of Spark runs"
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
            "Jobs that run",
            "Drivers that are up.",
            "short",
            'count(metrics_executor_totalCores{<spark>,executor_id="driver"})',
            empty=_NONE,
        ),
        stat(
            "Executors",
            "None for long, while a job runs: their pods find no place (kubectl get pods -l spark-role=executor).",
            "short",
            f"count(metrics_executor_totalCores{{{_EXECUTORS}}})",
            empty=_NONE,
        ),
        stat(
            "Tasks at work", "Over all executors.", "short", "sum(metrics_executor_activeTasks{<spark>})", empty=_NONE
        ),
        stat(
            "Tasks that failed",
            "In the last hour. Each was tried again; four times in a row end a job.",
            "short",
            "sum(increase(metrics_executor_failedTasks_total{<spark>}[1h]))",
            steps=((1, RISK), (100, BAD)),
            empty=_NONE,
        ),
        stat(
            "Rows that streams read",
            "Per second, in their last micro-batches.",
            "ops",
            f"sum({_streams('inputRate_total')})",
            empty=_NO_STREAM,
        ),
        stat(
            "Slowest micro-batch",
            "From its trigger to its end. Its jobs are kept leased for so long, also beyond RETRY.",
            "s",
            f"max({_streams('latency')}) / 1000",
            steps=((60, RISK), (300, BAD)),
            empty=_NO_STREAM,
        ),
    ),
)

_QUEUED: Final = Row(
    "Queues, as the brokers see them",
    (
        Panel(
            "Into queues",
            "Jobs per second that join a queue, the ten busiest: new ones, and those that come back.",
            "ops",
            (Query(f"topk(10, {rate('disque_queue_jobs_in_total', _QUEUES, by='queue')})", "{{queue}}"),),
            empty="there are no queues",
        ),
        Panel(
            "Out of queues",
            "Jobs per second that leave a queue, the ten busiest: to who asks for them, and to other nodes.",
            "ops",
            (Query(f"topk(10, {rate('disque_queue_jobs_out_total', _QUEUES, by='queue')})", "{{queue}}"),),
            empty="there are no queues",
        ),
        Panel(
            "Jobs that wait",
            "In the ten longest queues. A line that only rises under a running drain wants more executors.",
            "short",
            (Query(f"topk(10, sum by (queue) (disque_queue_jobs{{{_QUEUES}}}))", "{{queue}}"),),
            empty="there are no queues",
        ),
    ),
)

_STREAMS: Final = Row(
    "Streams",
    (
        Panel(
            "Read and processed",
            "Rows per second. Read above processed for long: the stream falls behind.",
            "ops",
            (
                Query(_streams("inputRate_total"), "{{app}} {{query}} read"),
                Query(_streams("processingRate_total"), "{{app}} {{query}} processed"),
            ),
            empty=_NO_STREAM,
        ),
        Panel(
            "Time of micro-batches",
            "From the trigger to the end of each.",
            "s",
            (Query(f"{_streams('latency')} / 1000", "{{app}} {{query}}"),),
            steps=((300, BAD),),
            empty=_NO_STREAM,
        ),
        Panel(
            "State",
            "Rows that streams remember, for instance the IDs of jobs that were seen. It should not grow for ever.",
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
            "Per second, over all executors of a job: finished, and failed.",
            "ops",
            (
                Query(rate("metrics_executor_completedTasks_total", "<spark>", by="app"), "{{app}} finished"),
                Query(rate("metrics_executor_failedTasks_total", "<spark>", by="app"), "{{app}} failed"),
            ),
            empty=_NONE,
        ),
        Panel(
            "Busy cores",
            "Tasks that run, and how many can run at once. Less than there are: the data is in too few partitions.",
            "short",
            (
                Query("sum by (app) (metrics_executor_activeTasks{<spark>})", "{{app}} at work"),
                Query("sum by (app) (metrics_executor_maxTasks{<spark>})", "{{app}} at most"),
            ),
            empty=_NONE,
        ),
        Panel(
            "Time for garbage",
            "The share of the tasks' time that Java collects garbage in. Above a tenth: more memory for executors.",
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
            "Memory of Java",
            "The heap in use, of each executor and of the driver.",
            "bytes",
            (Query("metrics_executor_JVMHeapMemory_bytes{<spark>}", "{{app}} {{executor_id}}"),),
            empty=_NONE,
        ),
        Panel(
            "Memory of Python",
            "Python's processes, where the connector runs; they share what spark.executor.memoryOverhead leaves.",
            "bytes",
            (Query("metrics_executor_ProcessTreePythonRSSMemory_bytes{<spark>}", "{{app}} {{executor_id}}"),),
            empty=_NONE,
        ),
        Panel(
            "Between executors",
            "Bytes per second that are written for other tasks to read. Neither enqueue nor drain needs much of it.",
            "Bps",
            (Query(rate("metrics_executor_totalShuffleWrite_bytes_total", "<spark>", by="app"), "{{app}}"),),
            empty=_NONE,
        ),
    ),
)

SPARK: Final = Board(
    uids.SPARK,
    "Disque / Spark",
    "Spark's jobs that fill and empty queues.",
    OF_SPARK,
    (_NOW, _QUEUED, _STREAMS, _WORK),
)
