"""The command `disque-drain`: moves the jobs of queues to Parquet, with each job ID once.

Three steps ensure this, from the queue to the file:

- The stream leases jobs, writes their IDs to the checkpoint, returns the same rows when a batch is replayed, and
  acknowledges the jobs after the batch is committed. So no job is lost.
- A later batch may still contain a job again: its lease expired while no driver ran, or an acknowledgement did not
  reach a node. Spark remembers the IDs of the last `--remember` in the checkpoint. This is its deduplication within a
  watermark; it uses the arrival time of jobs, so no job is ever late.
- Each batch is written to its own directory, `batch=N`, which replaces the output of a run that was killed.

So the output has each ID once if you keep the checkpoint with the output, and `--remember` is longer than the `ttl` of
jobs, which is one day by default. This costs a shuffle for each batch, and disk space for the remembered IDs. No batch
reads earlier output, so the cost does not grow with the output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.streaming.query import StreamingQuery

from pipelines.command import Summary, WrongInput, add_common, add_nodes, connector_options, run, session

CHECKPOINT: Final = "_checkpoint"
"""A directory of the output; Spark and other readers of Parquet ignore names that begin with `_`."""
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""RocksDB keeps the remembered IDs on disk, not in the memory of executors. No batch runs only to expire IDs."""
COLUMNS: Final = ("queue", "id", "body")
METADATA: Final = ("ctime", "nacks", "additional_deliveries", "node")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="disque-drain",
        description="Move the jobs of queues to Parquet, with each job ID once, and acknowledge them.",
        epilog="Example: disque-drain --nodes broker:7711 --queue orders --output s3a://lake/orders",
    )
    source = made.add_argument_group("source", "Set one of --queue, --queues and --queue-pattern.")
    add_nodes(source, required=True)
    source.add_argument("--queue", help="queue to read")
    source.add_argument("--queues", help="comma-separated list of queues to read")
    source.add_argument("--queue-pattern", help="regular expression for the names of queues to read")
    target = made.add_argument_group("output")
    target.add_argument("--output", required=True, metavar="DIR", help="directory for this drain only; any Spark path")
    target.add_argument("--checkpoint", metavar="DIR", help=f"checkpoint (default: {CHECKPOINT} in the output)")
    target.add_argument(
        "--remember", default="2 days", metavar="TIME", help="how long to remember job IDs (default: %(default)s)"
    )
    target.add_argument(
        "--metadata", action="store_true", help=f"add the columns {', '.join(METADATA)}; costs a lookup for each job"
    )
    pace = made.add_argument_group("batches")
    pace.add_argument(
        "--continuous", metavar="INTERVAL", help="run until stopped, with a batch at each interval: '1 minute'"
    )
    pace.add_argument("--max-jobs-per-batch", help="maximum number of jobs of a batch (default: 10000)")
    pace.add_argument(
        "--parts", type=int, default=2,
        help="number of files of a batch, and of tasks that remember IDs; fixed when the checkpoint is created "
        "(default: 2)",
    )  # fmt: skip
    add_common(made)
    return made


class Output:
    """Writes batches, and counts batches and jobs."""

    def __init__(self, directory: str) -> None:
        self._directory = directory.rstrip("/")
        self.jobs = 0
        self.batches = 0

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write one batch, replacing the output of an earlier attempt."""
        path = f"{self._directory}/batch={batch}"
        rows.write.mode("overwrite").parquet(path)
        self.jobs += rows.sparkSession.read.schema(rows.schema).parquet(path).count()
        self.batches += 1


def work(arguments: argparse.Namespace) -> Summary:
    """Drain the queues."""
    options = connector_options(
        arguments, "stream", queue=arguments.queue, queues=arguments.queues, queuePattern=arguments.queue_pattern,
        maxJobsPerTrigger=arguments.max_jobs_per_batch, includeMetadata="true" if arguments.metadata else None,
    )  # fmt: skip
    if arguments.parts < 1:
        raise WrongInput(f"--parts must be at least 1, not {arguments.parts}")
    checkpoint = arguments.checkpoint or f"{arguments.output.rstrip('/')}/{CHECKPOINT}"
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(arguments.parts)}
    spark = session("disque-drain", arguments, settings)
    _require_checkpoint(spark, arguments.output, checkpoint)
    output = Output(arguments.output)
    query = start(spark, options, checkpoint, arguments, output)
    query.awaitTermination()
    return {"jobs": output.jobs, "batches": output.batches, "output": arguments.output}


def start(
    spark: SparkSession, options: dict[str, str], checkpoint: str, arguments: argparse.Namespace, output: Output
) -> StreamingQuery:
    """Start the query that drains the queues."""
    columns = (*COLUMNS, *METADATA) if arguments.metadata else COLUMNS
    jobs = spark.readStream.format("disque").options(**options).load().select(*columns)
    once = (
        jobs.withColumn("drained_at", F.current_timestamp())
        .withWatermark("drained_at", arguments.remember)
        .dropDuplicatesWithinWatermark(["id"])
    )
    trigger: dict[str, Any] = (
        {"processingTime": arguments.continuous} if arguments.continuous else {"availableNow": True}
    )
    return (
        once.writeStream.foreachBatch(output.write)
        .option("checkpointLocation", checkpoint)
        .queryName("disque-drain")
        .trigger(**trigger)
        .start()
    )


def _require_checkpoint(spark: SparkSession, output: str, checkpoint: str) -> None:
    """Check that existing output has its checkpoint; without it, batch numbers would restart and overwrite the output.

    Raises:
        WrongInput: there is output, but no checkpoint.
    """
    if _exists(spark, f"{checkpoint}/metadata"):
        return
    if _exists(spark, f"{output.rstrip('/')}/batch=0"):
        raise WrongInput(
            f"{output} contains batches, but {checkpoint} is not their checkpoint; set --checkpoint to their "
            "checkpoint, or --output to a new directory"
        )


def _exists(spark: SparkSession, path: str) -> bool:
    """Return whether a file exists, on any file system of Spark."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to Hadoop's file systems
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(place))  # noqa: SLF001 - same


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-drain`."""
    return run(parser(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
