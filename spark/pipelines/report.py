"""The command `disque-report`: how old jobs are, how long they took, how often they were tried, per queue.

It reads append only files or live nodes and leaves in a directory `jobs` and `queues` (Parquet) and `report.html`. All
is counted in Spark; a few hundred numbers come to the driver to be drawn, however many jobs and queues there are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipelines import figures, jobtable
from pipelines.command import Summary, WrongInput, add_common, add_nodes, connector_options, run, session

STATES = "queued,active,wait-repl,acked"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="disque-report",
        description="Report on jobs, per queue: ages, time to the end, retries, sizes; as Parquet and as a page.",
        epilog="disque-report --aof /backup/node-1/disque.aof --output report",
    )
    source = made.add_argument_group("where jobs are read: --aof, or --nodes with the queues")
    source.add_argument("--aof", nargs="+", metavar="PATH", help="append only files, directories or patterns")
    source.add_argument("--skip-damage", action="store_true", help="read what is sound in damaged files")
    add_nodes(source, required=False)
    source.add_argument("--queues", help="queues of live nodes, with commas between them")
    source.add_argument("--queue-pattern", help="a regular expression for them (default with --nodes: all)")
    made.add_argument("--output", required=True, type=Path, metavar="DIR", help="where the report is to be; local")
    made.add_argument(
        "--as-of", type=_moment, metavar="TIME",
        help="ages are counted up to then: 2026-11-22T08:00, UTC (default: now, of files the youngest job's creation)",
    )  # fmt: skip
    made.add_argument("--title", help="what is reported on (default: the files or the nodes)")
    add_common(made)
    return made


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-22T08:00") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def work(arguments: argparse.Namespace) -> Summary:
    """Make the report."""
    if (arguments.aof is None) == (arguments.nodes is None):
        raise WrongInput("say where jobs are to be read: --aof PATH, or --nodes HOST:PORT")
    options = None if arguments.nodes is None else _live(arguments)
    output: Path = arguments.output
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongInput(f"--output {output} can not be made: {error.strerror}") from None
    spark = session("disque-report", arguments, {"spark.sql.session.timeZone": "UTC"})
    if options is None:
        found = jobtable.from_files(spark, arguments.aof, fail_on_damage=not arguments.skip_damage)
    else:
        found = jobtable.from_nodes(spark, options)
    jobs = _kept(spark, found, output / "jobs")
    last = jobtable.last_moment(jobs) if options is None else None
    as_of = arguments.as_of or last or datetime.now(UTC)
    judged = jobtable.judged(jobs, as_of)
    queues = _kept(spark, figures.per_queue(judged), output / "queues")
    title = arguments.title or (", ".join(arguments.aof) if options is None else arguments.nodes)
    return _write(judged, queues, output, as_of, title, is_log=options is None)


def _live(arguments: argparse.Namespace) -> dict[str, str]:
    pattern = arguments.queue_pattern
    if arguments.queues is None and pattern is None:
        pattern = ".*"
    return connector_options(
        arguments, "read", queues=arguments.queues, queuePattern=pattern, states=STATES, includeMetadata="true"
    )


def _kept(spark: SparkSession, frame: DataFrame, path: Path) -> DataFrame:
    """Write the frame as Parquet, and go on with what was written: nothing is read or counted twice."""
    frame.write.mode("overwrite").parquet(path.absolute().as_uri())
    return spark.read.schema(frame.schema).parquet(path.absolute().as_uri())


def _write(judged: DataFrame, queues: DataFrame, output: Path, as_of: datetime, title: str, *, is_log: bool) -> Summary:
    from pipelines.page import Report, render  # noqa: PLC0415 - brings matplotlib, which the other commands do without

    shown = [row.asDict() for row in figures.busiest_first(queues).limit(figures.ROWS_SHOWN).collect()]
    totals = figures.totals(queues)
    drawn = shown[: figures.QUEUES_DRAWN]
    names = [row["queue"] for row in drawn]
    others = totals["queues"] - len(drawn)
    spreads = figures.distributions(judged, names, others)
    if others:
        drawn = [*drawn, _rest(totals, drawn, others)]
    report = Report(title, is_log, as_of, totals, shown, totals["queues"] - len(shown), drawn, spreads)
    (output / "report.html").write_text(render(report), encoding="utf-8")
    return {**totals, "report": str(output / "report.html")}


def _rest(totals: dict[str, Any], drawn: list[dict[str, Any]], others: int) -> dict[str, Any]:
    """The queues that are not drawn one by one, together."""
    sums = {key: totals[key] - sum(row[key] for row in drawn) for key in ("jobs", "waiting", "finished", "expired")}
    return {"queue": figures.drawn_name(others), **sums}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque-report`."""
    return run(parser(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
