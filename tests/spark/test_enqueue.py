"""`disque-enqueue`: data sets of all kinds become jobs; what can not be meant is refused before anything is added."""

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

pytestmark = pytest.mark.timeout(400)  # a busy machine may take a minute to start Spark

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs the command with these words; its exit code and what it said."""
    assert spark.version

    def run(*words: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            status = enqueue.main(["--nodes", nodes, *map(str, words)])
        except SystemExit as end:  # argparse
            status = int(str(end.code))
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def orders(tmp_path: Path, spark: SparkSession) -> Path:
    """Ten orders as Parquet; each second one is for `gold`."""
    path = tmp_path / "orders"
    spark.range(10).selectExpr(
        "id", "concat('order ', id) AS text", "IF(id % 2 = 0, 'gold', 'tin') AS `to.queue`", "id * 10 AS wait"
    ).write.parquet(str(path))
    return path


def test_a_column_of_a_data_set_is_the_body_of_jobs(say: Say, orders: Path, cluster: RealCluster) -> None:
    status, out, _ = say("--input", orders, "--body", "text", "--queue", "column", "--retry", "60")
    assert (status, out.split(", queue")[0]) == (0, "jobs: 10")
    assert bodies(cluster, "column") == [b"order %d" % n for n in range(10)]


def test_all_columns_are_a_json_object_and_a_column_names_the_queue(
    say: Say, orders: Path, cluster: RealCluster, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.json"
    status, _, _ = say("--input", orders, "--json", "--queue-column", "to.queue", "--summary", summary)
    assert status == 0
    assert json.loads(summary.read_text())["jobs"] == 10
    gold = [json.loads(body) for body in bodies(cluster, "gold")]
    assert [row["id"] for row in gold] == [0, 2, 4, 6, 8]
    assert gold[1] == {"id": 2, "text": "order 2", "to.queue": "gold", "wait": 20}
    assert len(bodies(cluster, "tin")) == 5


def test_the_same_command_with_a_key_adds_only_what_is_missing(
    say: Say, orders: Path, cluster: RealCluster, tmp_path: Path, spark: SparkSession
) -> None:
    words = ("--body", "text", "--queue", "keyed", "--key", "id")
    status, _, err = say("--input", orders, *words)
    assert status == 0, err
    spark.range(8, 12).selectExpr("id", "concat('order ', id) AS text").write.parquet(str(tmp_path / "more"))
    status, _, err = say("--input", orders, tmp_path / "more", *words)
    assert status == 0, err
    assert bodies(cluster, "keyed") == sorted(b"order %d" % n for n in range(12))


def test_a_query_over_files_of_another_format_says_what_is_added_and_when(
    say: Say, cluster: RealCluster, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("name,later\nann,0\nbob,3600\n")
    status, _, err = say(
        "--input", tmp_path / "people.csv", "--format", "csv", "--read-option", "header=true",
        "--sql", "SELECT upper(name) AS name, CAST(later AS int) AS later FROM input",
        "--body", "name", "--queue", "csv", "--column", "delay=later",
    )  # fmt: skip
    assert status == 0, err
    delays = {job[b"body"]: job[b"delay"] for job in jobs(cluster, "csv").values()}
    assert delays == {b"ANN": 0, b"BOB": 3600}


def test_a_dry_run_shows_columns_and_bodies_and_adds_nothing(say: Say, orders: Path, cluster: RealCluster) -> None:
    status, out, _ = say("--input", orders, "--body", "text", "--queue", "dry", "--key", "id", "--dry-run")
    assert (status, out.splitlines()[:2]) == (0, ["body: string", "key: string"])
    assert sorted(out.splitlines()[2:12]) == [f"  order {n}" for n in range(10)]
    assert out.splitlines()[12].startswith("shown: 10, jobs: 0")
    assert bodies(cluster, "dry") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "--input {orders} --body txt --queue q",
            "there is no column txt for body: the columns are id, text, to.queue",
        ),
        ("--input {orders} --body id --queue q", "the column id is bigint: a body is string or binary; --json takes"),
        ("--input {orders}/nothing --body id --queue q", "Path does not exist"),
        ("--input {orders} --body text --queue q --column size=id", "a row may say delay, retry, ttl"),
        ("--input {orders} --table t --body text --queue q", "give one of --input, --table and --sql"),
        ("--body text --queue q", "say what to read: --input PATH"),
        ("--sql NONSENSE --body text --queue q", "Syntax error"),
        ("--table nowhere --body text --queue q", "`nowhere` cannot be found"),
        ("--input {orders} --body text --queue q --option maxBatch=3", "there is no option maxBatch"),
        ("--input {orders} --body text --queue q --retry soon", "the option retry is a time such as 30"),
        ("--input {orders} --body text --queue q --partitions 0", "--partitions is a whole number from 1 on"),
        ("--input {orders} --body text", "one of the arguments --queue --queue-column is required"),
        ("--input {orders} --body text --queue q --read-option x", "'x' is not name=value"),
    ],
)
def test_what_can_not_be_meant_ends_with_2_and_says_why(
    say: Say, orders: Path, cluster: RealCluster, words: str, said: str
) -> None:
    status, out, err = say(*words.format(orders=orders).split())
    assert (status, out) == (2, "")
    assert said in err
    assert err.splitlines()[-1].startswith("disque-enqueue: error: ")
    assert bodies(cluster, "q") == []


def test_nodes_that_can_not_be_reached_end_it_with_1(
    spark: SparkSession, orders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    words: list[Any] = ["--nodes", "127.0.0.1:1", "--input", orders, "--body", "text", "--queue", "q"]
    assert enqueue.main([*map(str, words), "--option", "giveUpAfter=1"]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err.splitlines()[-1]
