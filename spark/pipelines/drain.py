"""The command `disque-drain`: the jobs of queues become rows of Parquet, each job ID once.

What makes it so, from the queue to the file:

- The stream leases jobs, writes their IDs to the checkpoint, gives the same rows when a batch is done again, and
  acknowledges them after the batch was committed: no job is lost.
- A job may come again in a later batch all the same: its lease ran out while nobody ran, or an acknowledgement did not
  reach a node. Spark remembers the IDs of the last `--remember` (its deduplication within a watermark, by the time at
  which jobs came, so none is ever late), in the checkpoint, batch by batch.
- A batch is written to a directory of its own, `batch=N`, which replaces what a run that was killed left there.

So the output has each ID once as long as the checkpoint and the output stay together, and `--remember` is longer than
jobs live (`ttl`, a day unless said otherwise). It costs a shuffle of each batch, and disk for the IDs that are
remembered; no batch reads what was written before, so the output may grow as long as it likes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name by which everybody knows it
from pyspark.sql.streaming.query import StreamingQuery

from pipelines.command import Summary, WrongInput, add_common, add_nodes, connector_options, run, session

CHECKPOINT: Final = "_checkpoint"
"""Below the output; Spark and its friends pass over names that begin so."""
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""IDs are remembered on disk, not in the memory of executors; and no batch is made only to forget some."""
COLUMNS: Final = ("queue", "id", "body")
METADATA: Final = ("ctime", "nacks", "additional_deliveries", "node")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="disque-drain",
        description="Move the jobs of queues to Parquet, each job ID once, and acknowledge them.",
        epilog="disque-drain --nodes broker:7711 --queue orders --output s3a://lake/orders",
    )
    source = made.add_argument_group("what is read: one of --queue, --queues and --queue-pattern")
    add_nodes(source, required=True)
    source.add_argument("--queue", help="a queue")
    source.add_argument("--queues", help="several, with commas between them")
    source.add_argument("--queue-pattern", help="a regular expression for the names of queues")
    target = made.add_argument_group("where to")
    target.add_argument("--output", required=True, metavar="DIR", help="a directory of its own, wherever Spark writes")
    target.add_argument("--checkpoint", metavar="DIR", help=f"where it is kept (default: {CHECKPOINT} in the output)")
    target.add_argument("--remember", default="2 days", metavar="TIME", help="IDs for so long (default: %(default)s)")
    target.add_argument(
        "--metadata", action="store_true", help=f"with the columns {', '.join(METADATA)}, which are asked for by ID"
    )
    pace = made.add_argument_group("how")
    pace.add_argument(
        "--continuous", metavar="INTERVAL", help="go on until stopped, a batch every so often: '1 minute'"
    )
    pace.add_argument("--max-jobs-per-batch", help="the most jobs of a batch (default: 10000)")
    pace.add_argument(
        "--parts", type=int, default=2,
        help="files of a batch, and tasks that remember IDs; stays as it was when the checkpoint was made (default: 2)",
    )  # fmt: skip
    add_common(made)
    return made


class Output:
    """Writes batches and counts what it wrote."""

    def __init__(self, directory: str) -> None:
        self._directory = directory.rstrip("/")
        self.jobs = 0
        self.batches = 0

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write one batch, in the place of what an earlier try of the same batch left."""
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
        raise WrongInput(f"--parts is a whole number from 1 on, not {arguments.parts}")
    checkpoint = arguments.checkpoint or f"{arguments.output.rstrip('/')}/{CHECKPOINT}"
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(arguments.parts)}
    spark = session("disque-drain", arguments, settings)
    _require_together(spark, arguments.output, checkpoint)
    output = Output(arguments.output)
    query = start(spark, options, checkpoint, arguments, output)
    query.awaitTermination()
    return {"jobs": output.jobs, "batches": output.batches, "output": arguments.output}


def start(
    spark: SparkSession, options: dict[str, str], checkpoint: str, arguments: argparse.Namespace, output: Output
) -> StreamingQuery:
    """Begin to drain."""
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


def _require_together(spark: SparkSession, output: str, checkpoint: str) -> None:
    """A checkpoint and its output belong together: without it, batches would be numbered, and written, anew.

    Raises:
        WrongInput: there is output, and no checkpoint.
    """
    if _exists(spark, f"{checkpoint}/metadata"):
        return
    if _exists(spark, f"{output.rstrip('/')}/batch=0"):
        raise WrongInput(
            f"{output} has batches, and {checkpoint} is not their checkpoint: without it nobody knows which jobs are "
            "there already. Give --checkpoint where it is, or an --output that is new"
        )


def _exists(spark: SparkSession, path: str) -> bool:
    """Whether there is such a file, wherever Spark writes."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to Hadoop's file systems
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(path)
    return bool(place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(place))  # noqa: SLF001 - same


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-drain`."""
    return run(parser(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
