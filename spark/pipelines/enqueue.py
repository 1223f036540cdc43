"""The command `disque-enqueue`: adds each row of a data set as a job.

Spark reads the rows from files of any format, a table or a query. One column or all columns become the body. With
`--key` or `--write-id`, running the same command again adds only the missing rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from pipelines.command import Summary, WrongInput, add_common, add_nodes, connector_options, pair, run, session

SHOWN: Final = 10
SHOWN_CHARACTERS: Final = 200
COLUMNS: Final = ("delay", "retry", "ttl", "replicate", "maxlen")
"""The columns that `--column` can set, in addition to queue, body and key."""
_NAMED: Final = ("queue", "mode", "writeId", "window", *COLUMNS)
"""The options of the connector that have a command-line option."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="disque-enqueue",
        description="Add each row of a data set as a job.",
        epilog="Example: disque-enqueue --nodes broker:7711 --input orders.parquet --json --queue orders "
        "--key order_id",
    )
    source = made.add_argument_group("input", "Set --input, --table or --sql.")
    source.add_argument("--input", nargs="+", metavar="PATH", help="files, directories or patterns; any Spark path")
    source.add_argument("--format", default="parquet", help="format of --input: json, csv, ... (default: %(default)s)")
    source.add_argument(
        "--read-option", action="append", type=pair, default=[], metavar="NAME=VALUE",
        help="option of the format, such as header=true",
    )  # fmt: skip
    source.add_argument("--table", help="table of Spark's catalog")
    source.add_argument("--sql", metavar="QUERY", help="query; the files of --input are its table `input`")
    job = made.add_argument_group("jobs")
    body = job.add_mutually_exclusive_group(required=True)
    body.add_argument("--body", metavar="COLUMN", help="column to use as the body, string or binary")
    body.add_argument("--json", action="store_true", help="use all columns as the body, as a JSON object")
    queue = job.add_mutually_exclusive_group(required=True)
    queue.add_argument("--queue", help="queue for all jobs")
    queue.add_argument("--queue-column", metavar="COLUMN", help="column with the name of the queue")
    job.add_argument(
        "--key", metavar="COLUMN", help="add rows of a queue with the same key once (implies --mode deduplicated)"
    )
    job.add_argument(
        "--column", action="append", type=pair, default=[], metavar="NAME=COLUMN",
        help=f"column that sets an option of each job: {', '.join(COLUMNS)}",
    )  # fmt: skip
    for name in COLUMNS:
        job.add_argument(f"--{name}", help=f"option {name} for all jobs")
    nodes = made.add_argument_group("brokers")
    add_nodes(nodes, required=True)
    nodes.add_argument("--mode", help="atLeastOnce (default) or deduplicated")
    nodes.add_argument("--write-id", dest="writeId", help="name of this write, to repeat it (--mode deduplicated)")
    nodes.add_argument("--window", help="how long the brokers remember keys, such as 30m")
    nodes.add_argument("--partitions", type=int, help="number of tasks that add jobs (default: that of the input)")
    made.add_argument("--dry-run", action="store_true", help=f"add nothing; show the columns and {SHOWN} bodies")
    add_common(made)
    return made


def work(arguments: argparse.Namespace) -> Summary:
    """Add the rows."""
    if arguments.key is not None and arguments.mode is None:
        arguments.mode = "deduplicated"
    options = connector_options(arguments, "write", **{name: getattr(arguments, name) for name in _NAMED})
    given = [name for name in ("input", "table") if getattr(arguments, name) is not None]
    if len(given) > 1 or (arguments.table is not None and arguments.sql is not None):
        raise WrongInput("set only one of --input, --table and --sql; only --input and --sql can be combined")
    if not given and arguments.sql is None:
        raise WrongInput("no input; set --input PATH, --table NAME or --sql QUERY")
    if arguments.partitions is not None and arguments.partitions < 1:
        raise WrongInput(f"--partitions must be at least 1, not {arguments.partitions}")
    spark = session("disque-enqueue", arguments)
    jobs = as_jobs(read(spark, arguments), arguments)
    if arguments.dry_run:
        return _show(jobs)
    if arguments.partitions is not None:
        jobs = jobs.repartition(arguments.partitions)
    counted = Observation("enqueued")
    jobs = jobs.observe(counted, F.count(F.lit(1)).alias("rows"))
    jobs.write.format("disque").options(**options).mode("append").save()
    return {"jobs": counted.get["rows"], "queue": arguments.queue or f"by column {arguments.queue_column}"}


def read(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    """Return the rows of the input."""
    if arguments.table is not None:
        return spark.table(arguments.table)
    if arguments.input is not None:
        rows = spark.read.format(arguments.format).options(**dict(arguments.read_option)).load(arguments.input)
        if arguments.sql is None:
            return rows
        rows.createOrReplaceTempView("input")
    return spark.sql(arguments.sql)


def as_jobs(rows: DataFrame, arguments: argparse.Namespace) -> DataFrame:
    """Return the rows with the columns that the connector accepts.

    Raises:
        WrongInput: a column does not exist, or has the wrong type.
    """
    types = dict(rows.dtypes)
    chosen: dict[str, str] = {}
    for name, column in arguments.column:
        if name not in COLUMNS:
            raise WrongInput(f"--column {name}={column}: unknown name {name}; the names are {', '.join(COLUMNS)}")
        chosen[name] = column
    named = {"body": arguments.body, "queue": arguments.queue_column, "key": arguments.key, **chosen}
    for name, column in named.items():
        if column is not None and column not in types:
            raise WrongInput(f"no column {column} for {name}; the columns are {', '.join(types)}")
    body = arguments.body
    if body is not None and types[body] not in {"string", "binary"}:
        raise WrongInput(f"the column {body} must be string or binary, not {types[body]}; --json accepts any columns")
    columns = [_quoted(body) if body is not None else F.to_json(F.struct(*map(_quoted, types)))]
    columns[0] = columns[0].alias("body")
    columns += [_quoted(column).alias(name) for name, column in named.items() if column is not None and name != "body"]
    jobs = rows.select(*columns)
    if arguments.key is not None and types[arguments.key] not in {"string", "binary"}:
        jobs = jobs.withColumn("key", F.col("key").cast("string"))
    return jobs


def _quoted(column: str) -> Column:
    """Return a column by its name, which may contain dots."""
    return F.col("`" + column.replace("`", "``") + "`")


def _show(jobs: DataFrame) -> Summary:
    out = sys.stdout.write
    for name, kind in jobs.dtypes:
        out(f"{name}: {kind}\n")
    shown = jobs.limit(SHOWN).collect()
    for row in shown:
        body = row["body"]
        text = bytes(body).decode("utf-8", "backslashreplace") if isinstance(body, bytes | bytearray) else str(body)
        out(f"  {text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + '…'}\n")
    return {"shown": len(shown), "jobs": 0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-enqueue`."""
    return run(parser(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
