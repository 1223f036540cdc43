"""Jobs as one table with one row for each ID, from append only files or from live nodes.

Copies of a job are in the files and the memory of several nodes: it ended if it ended anywhere, it waits if it waits
anywhere, and its counters are the highest that any node has. What files know and nodes do not is null: `expires`,
`retry` and when a job ended.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name by which everybody knows it

COLUMNS: Final = (
    "id", "queue", "state", "ctime", "expires", "retry", "nacks", "additional_deliveries", "body_size",
    "finished_after", "finished_before",
)  # fmt: skip
_RANK: Final = {"finished": 4, "acked": 4, "queued": 3, "active": 2, "wait-repl": 1}
"""Of the states that copies of a job have, the highest says what the job is in."""


def from_files(spark: SparkSession, paths: list[str], *, fail_on_damage: bool) -> DataFrame:
    """What append only files tell."""
    files = (
        spark.read.format("disque-aof")
        .options(includeBody="false", failOnDamage=str(fail_on_damage).lower())
        .load(paths)
    )
    return merged(files.select(*COLUMNS))


def from_nodes(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """What live nodes have."""
    nodes = spark.read.format("disque").options(**options).load()
    null_times = [
        F.lit(None).cast("timestamp").alias(name) for name in ("expires", "finished_after", "finished_before")
    ]
    return merged(
        nodes.select(
            "id", "queue", "state", "ctime", "nacks", "additional_deliveries",
            F.length("body").alias("body_size"), F.lit(None).cast("bigint").alias("retry"), *null_times,
        ).select(*COLUMNS)
    )  # fmt: skip


def merged(copies: DataFrame) -> DataFrame:
    """One row for each ID."""
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


def last_moment(jobs: DataFrame) -> datetime | None:
    """When the youngest job was created: the time of a log that is read later. None if there is no job."""
    row = jobs.agg(F.unix_micros(F.max("ctime"))).first()
    return None if row is None or row[0] is None else datetime.fromtimestamp(row[0] / 1_000_000, UTC)


def judged(jobs: DataFrame, as_of: datetime) -> DataFrame:
    """With what a job is at that time.

    `fate` is waiting, expired (before it ended, or not known to have ended) or finished. `age_s` is how old jobs are
    that wait; `finish_s` how long others took at least, and `finish_most_s` at most, as far as the log tells. `tries`
    is how often a job was given back or was queued again.
    """
    now_us = F.lit(int(as_of.timestamp() * 1_000_000))
    ended = F.col("state") == "finished"
    then_us = F.when(ended, F.unix_micros("finished_after")).otherwise(now_us)
    time_over = F.coalesce(F.unix_micros("expires") <= then_us, F.lit(False))
    fate = F.when(time_over, "expired").when(ended, "finished").otherwise("waiting")

    def seconds(end: Column) -> Column:
        return F.greatest((end - F.unix_micros("ctime")) / 1_000_000, F.lit(0.0))

    return (
        jobs.withColumn("fate", fate)
        .withColumn("age_s", F.when(F.col("fate") == "waiting", seconds(now_us)))
        .withColumn("finish_s", F.when(F.col("fate") == "finished", seconds(F.unix_micros("finished_after"))))
        .withColumn("finish_most_s", F.when(F.col("fate") == "finished", seconds(F.unix_micros("finished_before"))))
        .withColumn("tries", F.col("nacks") + F.col("additional_deliveries"))
    )
