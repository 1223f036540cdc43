"""Computes the numbers of the report in Spark: a row for each queue, and distributions.

The charts show the 12 queues with the most jobs, and the table of the page shows `ROWS_SHOWN`. The charts combine all
other queues. The Parquet output has all queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

QUEUES_DRAWN: Final = 12
ROWS_SHOWN: Final = 50
EDGES_S: Final = (0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0)
"""The edges of the ranges of ages and processing times, in seconds."""
EDGES_BYTES: Final = (16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 1048576.0)
EDGES_TRIES: Final = (1.0, 2.0, 3.0, 5.0, 9.0)
"""The edges of the ranges of tries; a range includes its lower edge."""
_ACCURACY: Final = 1000
"""The relative error of a quantile is 1 in this number."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The number of jobs in each range, for each queue in the chart, in display order."""

    name: str
    edges: tuple[float, ...]
    counts: Mapping[str, tuple[int, ...]]

    @property
    def total(self) -> int:
        """The number of jobs in all ranges and queues."""
        return sum(sum(counts) for counts in self.counts.values())


DISTRIBUTIONS: Final[tuple[tuple[str, tuple[float, ...]], ...]] = (
    ("age_s", EDGES_S),
    ("finish_s", EDGES_S),
    ("tries", EDGES_TRIES),
    ("body_size", EDGES_BYTES),
)
"""The columns that have a distribution, with the edges of their ranges; rows with null do not count."""


def per_queue(jobs: DataFrame) -> DataFrame:
    """Return a row of statistics for each queue."""
    measures = [F.count("*").alias("jobs")]
    measures += [
        F.count(F.when(F.col("outcome") == outcome, 1)).alias(outcome) for outcome in ("waiting", "finished", "expired")
    ]
    measures += [F.max("age_s").alias("age_max_s")]
    measures += [
        F.percentile_approx(column, quantile, _ACCURACY).alias(name)
        for name, column, quantile in (
            ("age_p50_s", "age_s", 0.5),
            ("finish_p50_s", "finish_s", 0.5),
            ("finish_p95_s", "finish_s", 0.95),
            ("finish_p99_s", "finish_s", 0.99),
            ("finish_most_p95_s", "finish_most_s", 0.95),
            ("body_p50", "body_size", 0.5),
        )
    ]
    measures += [
        F.count(F.when(F.col("tries") > 0, 1)).alias("retried"),
        F.max("tries").alias("tries_max"),
        F.sum("nacks").alias("nacks"),
        F.sum("additional_deliveries").alias("additional_deliveries"),
        F.max("body_size").alias("body_max"),
        F.sum("body_size").alias("body_bytes"),
    ]
    return jobs.groupBy("queue").agg(*measures)


def busiest_first(queues: DataFrame) -> DataFrame:
    """Return the table of queues, those with the most jobs first."""
    return queues.orderBy(F.desc("jobs"), "queue")


def totals(queues: DataFrame) -> Row:
    """Return the sums over all queues."""
    columns = ("jobs", "waiting", "finished", "expired", "retried")
    row = queues.agg(F.count("*").alias("queues"), *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in columns))
    return row.collect()[0].asDict()


def others_label(count: int) -> str:
    """Return the label of the combined queues."""
    return f"{count:,} other queues" if count > 1 else "1 other queue"


def distributions(jobs: DataFrame, queues: list[str], others: int) -> list[Distribution]:
    """Return the distributions for these queues, and for the `others` other queues combined."""
    names = [*queues, *([others_label(others)] if others else [])]
    drawn = F.when(F.col("queue").isin(queues), F.col("queue")).otherwise(others_label(others))
    measures = [
        F.struct(F.lit(column).alias("name"), _bar(column, edges).alias("bar")) for column, edges in DISTRIBUTIONS
    ]
    bars = jobs.select(drawn.alias("drawn"), F.explode(F.array(*measures)).alias("in")).where("`in`.bar IS NOT NULL")
    counts = {column: {name: [0] * (len(edges) + 1) for name in names} for column, edges in DISTRIBUTIONS}
    for row in bars.groupBy("drawn", "in.name", "in.bar").count().collect():
        counts[row["name"]][row["drawn"]][row["bar"]] = row["count"]
    return [
        Distribution(column, edges, {name: tuple(counts[column][name]) for name in names})
        for column, edges in DISTRIBUTIONS
    ]


def _bar(column: str, edges: tuple[float, ...]) -> Column:
    """Return the index of the range of a value; null for null."""
    return reduce(add, ((F.col(column) >= edge).cast("int") for edge in edges))
