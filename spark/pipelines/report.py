"""The command `disque-report`: reports for each queue how old jobs are, how long they took, and how often they retried.

It reads append-only files or live nodes, and writes `jobs` and `queues` as Parquet and `report.html` to a directory.
Spark computes all numbers. The driver gets only the few hundred numbers of the page, whatever the number of jobs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines import aggregates, jobtable
from pipelines.command import Summary, WrongInput, add_common, add_nodes, connector_options, run, session

STATES = "queued,active,wait-repl,acked"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="disque-report",
        description="Report the ages, times to finish, retries and sizes of jobs for each queue, as Parquet and HTML.",
        epilog="Example: disque-report --aof /backup/node-1/disque.aof --output report",
    )
    source = made.add_argument_group("source", "Set --aof or --nodes.")
    source.add_argument("--aof", nargs="+", metavar="PATH", help="append-only files, directories or patterns")
    source.add_argument("--skip-damage", action="store_true", help="skip damaged ranges of files")
    add_nodes(source, required=False)
    source.add_argument("--queues", help="comma-separated list of queues of live nodes")
    source.add_argument("--queue-pattern", help="regular expression for queues of live nodes (default: all queues)")
    made.add_argument("--output", required=True, type=Path, metavar="DIR", help="local directory for the report")
    made.add_argument(
        "--as-of", type=_moment, metavar="TIME",
        help="time up to which to count ages, in UTC: 2026-11-22T08:00 (default: now; with --aof the creation of the "
        "newest job)",
    )  # fmt: skip
    made.add_argument("--title", help="title of the report (default: the files or nodes)")
    add_common(made)
    return made


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a time such as 2026-11-22T08:00, not {text!r}") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def work(arguments: argparse.Namespace) -> Summary:
    """Write the report."""
    if (arguments.aof is None) == (arguments.nodes is None):
        raise WrongInput("set exactly one source: --aof PATH or --nodes HOST:PORT")
    options = None if arguments.nodes is None else _live(arguments)
    output: Path = arguments.output
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongInput(f"cannot create the directory --output {output}: {error.strerror}") from None
    spark = session("disque-report", arguments, {"spark.sql.session.timeZone": "UTC"})
    if options is None:
        found = jobtable.from_files(spark, arguments.aof, fail_on_damage=not arguments.skip_damage)
    else:
        found = jobtable.from_nodes(spark, options)
    jobs = _write_and_reload(spark, found, output / "jobs")
    last = jobtable.newest_creation(jobs) if options is None else None
    as_of = arguments.as_of or last or datetime.now(UTC)
    with_outcome = jobtable.with_outcome(jobs, as_of)
    queues = _write_and_reload(spark, aggregates.per_queue(with_outcome), output / "queues")
    title = arguments.title or (", ".join(arguments.aof) if options is None else arguments.nodes)
    return _write(with_outcome, queues, output, as_of, title, is_log=options is None)


def _live(arguments: argparse.Namespace) -> dict[str, str]:
    pattern = arguments.queue_pattern
    if arguments.queues is None and pattern is None:
        pattern = ".*"
    return connector_options(
        arguments, "read", queues=arguments.queues, queuePattern=pattern, states=STATES, includeMetadata="true"
    )


def _write_and_reload(spark: SparkSession, frame: DataFrame, path: Path) -> DataFrame:
    """Write a frame as Parquet and return it reading from there, so that nothing is computed twice."""
    frame.write.mode("overwrite").parquet(path.absolute().as_uri())
    return spark.read.schema(frame.schema).parquet(path.absolute().as_uri())


def _write(
    with_outcome: DataFrame, queues: DataFrame, output: Path, as_of: datetime, title: str, *, is_log: bool
) -> Summary:
    from pipelines.page import Report, render  # noqa: PLC0415 - imports matplotlib, which the other commands do not need

    shown = [row.asDict() for row in aggregates.busiest_first(queues).limit(aggregates.ROWS_SHOWN).collect()]
    totals = aggregates.totals(queues)
    drawn = shown[: aggregates.QUEUES_DRAWN]
    names = [row["queue"] for row in drawn]
    others = totals["queues"] - len(drawn)
    spreads = aggregates.distributions(with_outcome, names, others)
    if others:
        drawn = [*drawn, _others(totals, drawn, others)]
    report = Report(title, is_log, as_of, totals, shown, totals["queues"] - len(shown), drawn, spreads)
    (output / "report.html").write_text(render(report), encoding="utf-8")
    return {**totals, "report": str(output / "report.html")}


def _others(totals: dict[str, Any], drawn: list[dict[str, Any]], others: int) -> dict[str, Any]:
    """Return the row of the other queues combined."""
    sums = {key: totals[key] - sum(row[key] for row in drawn) for key in ("jobs", "waiting", "finished", "expired")}
    return {"queue": aggregates.others_label(others), **sums}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-report`."""
    return run(parser(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
