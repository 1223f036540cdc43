"""Provides jobs as one table with one row for each job ID, from append-only files or from live nodes.

Several nodes hold copies of a job in their files and memory. A job is finished if any copy is finished; otherwise it is
queued if any copy is queued. Its counters are the highest of all copies. Columns that only files know are null for live
nodes: `expires`, `retry` and the time when a job finished.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

COLUMNS: Final = (
    "id", "queue", "state", "ctime", "expires", "retry", "nacks", "additional_deliveries", "body_size",
    "finished_after", "finished_before",
)  # fmt: skip
_RANK: Final = {"finished": 4, "acked": 4, "queued": 3, "active": 2, "wait-repl": 1}
"""The rank of each state; the state of a job is the highest of its copies."""


def from_files(spark: SparkSession, paths: list[str], *, fail_on_damage: bool) -> DataFrame:
    """Return the jobs of append-only files."""
    files = (
        spark.read.format("disque-aof")
        .options(includeBody="false", failOnDamage=str(fail_on_damage).lower())
        .load(paths)
    )
    return merge_copies(files.select(*COLUMNS))


def from_nodes(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Return the jobs of live nodes."""
    nodes = spark.read.format("disque").options(**options).load()
    null_times = [
        F.lit(None).cast("timestamp").alias(name) for name in ("expires", "finished_after", "finished_before")
    ]
    return merge_copies(
        nodes.select(
            "id", "queue", "state", "ctime", "nacks", "additional_deliveries",
            F.length("body").alias("body_size"), F.lit(None).cast("bigint").alias("retry"), *null_times,
        ).select(*COLUMNS)
    )  # fmt: skip


def merge_copies(copies: DataFrame) -> DataFrame:
    """Merge the copies of each job into one row."""
    rank = F.create_map(*(F.lit(word) for item in _RANK.items() for word in item))
    greatest = ("retry", "nacks", "additional_deliveries", "body_size", "expires", "finished_after")
    one = copies.groupBy("id").agg(
        F.max_by("queue", "ctime").alias("queue"),
        F.max_by("state", rank[F.col("state")]).alias("state"),
        F.min("ctime").alias("ctime"),
        F.min("finished_before").alias("finished_before"),
        *(F.max(name).alias(name) for name in greatest),
    )
    state = F.when(F.col("state") == "acked", "finished").otherwise(F.col("state"))
    return one.withColumn("state", state).select(*COLUMNS)


def newest_creation(jobs: DataFrame) -> datetime | None:
    """Return the creation time of the newest job, which approximates the time of a log; None if there is no job."""
    row = jobs.agg(F.unix_micros(F.max("ctime"))).first()
    return None if row is None or row[0] is None else datetime.fromtimestamp(row[0] / 1_000_000, UTC)


def with_outcome(jobs: DataFrame, as_of: datetime) -> DataFrame:
    """Add the outcome of each job at the time `as_of`, and its times.

    `outcome` is `finished`, `expired` (without a finish before the expiry) or `waiting`. `age_s` is the age of waiting
    jobs. `finish_s` and `finish_most_s` are the bounds of the time to finish, as far as the log has them. `tries` is
    the number of NACKs and requeues.
    """
    now_us = F.lit(int(as_of.timestamp() * 1_000_000))
    ended = F.col("state") == "finished"
    then_us = F.when(ended, F.unix_micros("finished_after")).otherwise(now_us)
    time_over = F.coalesce(F.unix_micros("expires") <= then_us, F.lit(False))
    outcome = F.when(time_over, "expired").when(ended, "finished").otherwise("waiting")

    def seconds(end: Column) -> Column:
        return F.greatest((end - F.unix_micros("ctime")) / 1_000_000, F.lit(0.0))

    return (
        jobs.withColumn("outcome", outcome)
        .withColumn("age_s", F.when(F.col("outcome") == "waiting", seconds(now_us)))
        .withColumn("finish_s", F.when(F.col("outcome") == "finished", seconds(F.unix_micros("finished_after"))))
        .withColumn("finish_most_s", F.when(F.col("outcome") == "finished", seconds(F.unix_micros("finished_before"))))
        .withColumn("tries", F.col("nacks") + F.col("additional_deliveries"))
    )
