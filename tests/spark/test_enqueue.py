"""`disque-enqueue`: data sets of all kinds become jobs; invalid input is rejected before any job is added."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines import enqueue
from support.cluster import RealCluster
from support.jobs import bodies, jobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a busy machine may take a minute to start Spark

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command with these arguments; returns exit code, output and errors."""
    assert spark.version

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            status = enqueue.main(["--nodes", nodes, *map(str, arguments)])
        except SystemExit as end:  # argparse
            status = int(str(end.code))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def orders(tmp_path: Path, spark: SparkSession) -> Path:
    """Ten orders as Parquet, every second one for the queue `gold`."""
    path = tmp_path / "orders"
    spark.range(10).selectExpr(
        "id", "concat('order ', id) AS text", "IF(id % 2 = 0, 'gold', 'tin') AS `to.queue`", "id * 10 AS wait"
    ).write.parquet(str(path))
    return path


def test_column_becomes_the_body_of_jobs(run: Run, orders: Path, cluster: RealCluster) -> None:
    status, out, _ = run("--input", orders, "--body", "text", "--queue", "column", "--retry", "60")
    assert (status, out.split(", queue")[0]) == (0, "jobs: 10")
    assert bodies(cluster, "column") == [b"order %d" % n for n in range(10)]


@pytest.mark.long
def test_all_columns_become_a_json_body_and_a_column_names_the_queue(
    run: Run, orders: Path, cluster: RealCluster, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.json"
    status, _, _ = run("--input", orders, "--json", "--queue-column", "to.queue", "--summary", summary)
    assert status == 0
    assert json.loads(summary.read_text())["jobs"] == 10
    gold = [json.loads(body) for body in bodies(cluster, "gold")]
    assert [row["id"] for row in gold] == [0, 2, 4, 6, 8]
    assert gold[1] == {"id": 2, "text": "order 2", "to.queue": "gold", "wait": 20}
    assert len(bodies(cluster, "tin")) == 5


@pytest.mark.long
def test_same_command_with_a_key_adds_only_missing_rows(
    run: Run, orders: Path, cluster: RealCluster, tmp_path: Path, spark: SparkSession
) -> None:
    arguments = ("--body", "text", "--queue", "keyed", "--key", "id")
    status, _, err = run("--input", orders, *arguments)
    assert status == 0, err
    spark.range(8, 12).selectExpr("id", "concat('order ', id) AS text").write.parquet(str(tmp_path / "more"))
    status, _, err = run("--input", orders, tmp_path / "more", *arguments)
    assert status == 0, err
    assert bodies(cluster, "keyed") == sorted(b"order %d" % n for n in range(12))


@pytest.mark.long
def test_query_over_csv_files_sets_body_and_delay(run: Run, cluster: RealCluster, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,later\nann,0\nbob,3600\n")
    status, _, err = run(
        "--input", tmp_path / "people.csv", "--format", "csv", "--read-option", "header=true",
        "--sql", "SELECT upper(name) AS name, CAST(later AS int) AS later FROM input",
        "--body", "name", "--queue", "csv", "--column", "delay=later",
    )  # fmt: skip
    assert status == 0, err
    delays = {job[b"body"]: job[b"delay"] for job in jobs(cluster, "csv").values()}
    assert delays == {b"ANN": 0, b"BOB": 3600}


def test_dry_run_shows_columns_and_bodies_and_adds_nothing(run: Run, orders: Path, cluster: RealCluster) -> None:
    status, out, _ = run("--input", orders, "--body", "text", "--queue", "dry", "--key", "id", "--dry-run")
    assert (status, out.splitlines()[:2]) == (0, ["body: string", "key: string"])
    assert sorted(out.splitlines()[2:12]) == [f"  order {n}" for n in range(10)]
    assert out.splitlines()[12].startswith("shown: 10, jobs: 0")
    assert bodies(cluster, "dry") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--input {orders} --body txt --queue q", "no column txt for body; the columns are id, text, to.queue"),
        ("--input {orders} --body id --queue q", "the column id must be string or binary, not bigint; --json accepts"),
        ("--input {orders}/nothing --body id --queue q", "Path does not exist"),
        ("--input {orders} --body text --queue q --column size=id", "unknown name size; the names are delay, retry"),
        ("--input {orders} --table t --body text --queue q", "set only one of --input, --table and --sql"),
        ("--body text --queue q", "no input; set --input PATH"),
        ("--sql NONSENSE --body text --queue q", "Syntax error"),
        ("--table nowhere --body text --queue q", "`nowhere` cannot be found"),
        ("--input {orders} --body text --queue q --option maxBatch=3", "unknown option maxBatch"),
        ("--input {orders} --body text --queue q --retry soon", "the option retry must be a time such as 30"),
        ("--input {orders} --body text --queue q --partitions 0", "--partitions must be at least 1"),
        ("--input {orders} --body text", "one of the arguments --queue --queue-column is required"),
        ("--input {orders} --body text --queue q --read-option x", "expected name=value, not 'x'"),
    ],
)
def test_invalid_input_exits_with_2_and_the_reason(
    run: Run, orders: Path, cluster: RealCluster, arguments: str, message: str
) -> None:
    status, out, err = run(*arguments.format(orders=orders).split())
    assert (status, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("disque-enqueue: error: ")
    assert bodies(cluster, "q") == []


@pytest.mark.long
def test_unreachable_nodes_exit_with_1(spark: SparkSession, orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.version
    arguments: list[Any] = ["--nodes", "127.0.0.1:1", "--input", orders, "--body", "text", "--queue", "q"]
    assert enqueue.main([*map(str, arguments), "--option", "giveUpAfter=1"]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err.splitlines()[-1]
