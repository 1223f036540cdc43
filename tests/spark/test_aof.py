"""Reading append-only files as tables: files of the original and of a real node, damaged, several and long files."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from disqued.core.jobs.attributes import DEAD, META, ORIGIN_QUEUE, PRIORITY, REASON, changed, i64_value
from disqued.core.jobs.job import QUEUED
from disqued.core.lifecycle.records import sealed
from disqued.persistence.records import EXTENDED, forget
from disqued.resp.writer import request
from persistence.samples import BORN_MS, VECTORS, kept, make_job
from pyspark_disque_aof.files import AofUnknown, read_items
from support.cluster import RealCluster

pytestmark = pytest.mark.timeout(400)  # a busy machine may take a minute to start Spark

VALID = sorted(path for path in VECTORS.glob("*.aof") if path.name[:2] not in {"06", "08"})


def table(spark: SparkSession, *paths: Path | str, **options: str) -> DataFrame:
    return spark.read.format("disque-aof").options(**options).load([str(path) for path in paths])


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("file", "offset").collect()]


def write_jobs(path: Path, count: int, seed: int = 1) -> list[bytes]:
    """Write a file with `count` jobs, every second one finished; return their IDs in order."""
    rng = random.Random(seed)
    ids = []
    with path.open("wb") as file:
        for number in range(count):
            job = make_job(rng, b"body of %d" % number)
            job.state = QUEUED
            job.ctime = (1_800_000_000_000 + number * 1000) * 10**6
            ids.append(job.id)
            file.write(kept(job))
            if number % 2:
                file.write(forget(job.id))
    return ids


# --- files of the original --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_original_files_give_the_same_records_as_the_original_tools(spark: SparkSession) -> None:
    found = rows(table(spark, *VALID, rows="records"))
    expected = {
        (str(path), entry["offset"]): entry
        for path in VALID
        for entry in json.loads(path.with_suffix(".aof.json").read_text())["entries"]
    }
    assert {(row["file"], row["offset"]) for row in found} == set(expected)
    for row in found:
        entry = expected[row["file"], row["offset"]]
        assert (row["command"], row["length"]) == (entry["command"], entry["length"])
        if job := entry.get("job"):
            assert (row["id"], row["queue"], row["body"].decode("latin-1")) == (job["id"], job["queue"], job["body"])
            assert (row["retry"], row["delay"], row["replicate"]) == (job["retry"], job["delay"], job["repl"])
            assert (row["nacks"], row["additional_deliveries"]) == (job["num_nacks"], job["num_deliv"])
            assert row["nodes"] == job["nodes"]


def test_each_job_has_one_row_with_its_outcome(spark: SparkSession) -> None:
    """The file has nine jobs, six of them finished, and a DELJOB of a job that it does not contain."""
    found = rows(table(spark, VECTORS / "03-full-life.aof"))
    assert len({row["id"] for row in found}) == len(found) == 9
    assert [row["state"] for row in found].count("finished") == sum(row["finished"] for row in found) == 6
    assert all((row["finished_offset"] is not None) == row["finished"] for row in found)


# --- outcomes ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_creation_times_of_neighbouring_jobs_bound_when_a_job_finished(spark: SparkSession, tmp_path: Path) -> None:
    """Job 1 finished before job 2 was created; no newer job follows the end of the last one."""
    write_jobs(tmp_path / "disque.aof", 4)
    found = rows(table(spark, tmp_path))
    assert [row["finished"] for row in found] == [False, True, False, True]
    assert [(row["finished_after"], row["finished_before"]) for row in found if row["finished"]] == [
        (found[1]["ctime"], found[2]["ctime"]),
        (found[3]["ctime"], None),
    ]


def test_job_added_again_after_it_finished_has_the_row_of_its_last_record(spark: SparkSession, tmp_path: Path) -> None:
    job = make_job(random.Random(1), b"again")
    record = kept(job)
    (tmp_path / "disque.aof").write_bytes(record + record + forget(job.id) + record + record)
    (row,) = rows(table(spark, tmp_path))
    assert (row["finished"], row["offset"]) == (False, 2 * len(record) + len(forget(job.id)))


def test_attributes_and_counters_are_those_of_the_latest_record(spark: SparkSession, tmp_path: Path) -> None:
    job = make_job(random.Random(1), b"failed", with_attributes=True)
    job.retry_s, job.nacks, job.additional_deliveries = 300, 0, 1
    assert job.extra is not None
    records = [EXTENDED, kept(job)]
    job.extra = changed(job.extra, {REASON: b"no such user", DEAD: i64_value(BORN_MS), ORIGIN_QUEUE: b"mail\xff"})
    records += [kept(job), request((b"POSTPONE", sealed(b"POSTPONE", b"%b %d 3 1" % (job.id, BORN_MS + 1))))]
    plain = make_job(random.Random(2), b"plain")
    (tmp_path / "disque.aof").write_bytes(b"".join([*records, kept(plain)]))
    failed, other = rows(table(spark, tmp_path))
    assert job.extra is not None
    assert (failed["priority"], failed["meta"]) == (job.extra.number(PRIORITY), job.extra.get(META))
    assert (failed["reason"], failed["origin_queue"], failed["nacks"], failed["attempts"]) == (
        "no such user", "mail\\xff", 3, 4,
    )  # fmt: skip
    assert (failed["dead_since"].timestamp(), failed["attempts_before"]) == (BORN_MS / 1000, None)
    assert [other[name] for name in ("priority", "meta", "reason", "dead_since")] == [0, None, None, None]
    records_rows = rows(table(spark, tmp_path, rows="records"))
    assert [row["command"] for row in records_rows] == ["FORMAT", "LOADJOB", "LOADJOB", "POSTPONE", "LOADJOB"]
    assert [row["reason"] for row in records_rows] == [None, None, "no such user", None, None]
    assert (records_rows[3]["id"], records_rows[3]["nacks"]) == (job.id.decode(), 3)


def test_file_of_a_live_node_has_the_added_jobs_and_which_are_acknowledged(spark: SparkSession, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1, "--appendonly", "yes", meet=False) as cluster:
        (node,) = cluster.nodes
        node.server.wait_ready()
        ids = [node.call("ADDJOB", "mail", f"letter {n}", 0, "RETRY", 60, "TTL", 3600).decode() for n in range(20)]
        other = node.call("ADDJOB", "bin", b"\x00\xff\r\n*2", 0, "DELAY", 30).decode()
        node.call("ACKJOB", *ids[:5])
        cluster.wait_until(lambda: node.call("QLEN", "mail") == 15)
        found = {row["id"]: row for row in rows(table(spark, node.directory))}
    assert set(found) == {*ids, other}
    assert [job_id for job_id in ids if found[job_id]["finished"]] == ids[:5]
    assert {found[job_id]["body"] for job_id in ids} == {b"letter %d" % n for n in range(20)}
    assert {(found[job_id]["retry"], found[job_id]["state"]) for job_id in ids[5:]} == {(60, "queued")}
    assert all(3598 <= found[job_id]["ttl"] <= 3600 for job_id in ids)
    assert (found[other]["body"], found[other]["delay"], found[other]["state"]) == (b"\x00\xff\r\n*2", 30, "active")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_directories_patterns_lists_and_addresses_give_each_file_once(spark: SparkSession, tmp_path: Path) -> None:
    for node in ("one", "two"):
        (tmp_path / node).mkdir()
        write_jobs(tmp_path / node / "disque.aof", 2, seed=len(node) + ord(node[0]))
    (tmp_path / "two" / "temp-rewriteaof-bg-7.aof").write_bytes(b"not yet")
    (tmp_path / "two" / "disque.aof.restart").write_bytes(b"no log")
    one = str(tmp_path / "one" / "disque.aof")
    two = str(tmp_path / "two" / "disque.aof")
    for paths, files in (
        ([tmp_path], [one, two]),
        ([f"file://{tmp_path}"], [one, two]),
        ([f"{tmp_path}/*/disque.aof"], [one, two]),
        ([f"{tmp_path}/t*"], [two]),
        ([one, tmp_path / "one", f"file:{one}"], [one]),
    ):
        frame = table(spark, *paths)
        assert sorted({row["file"] for row in rows(frame)}) == files, paths
        assert frame.rdd.getNumPartitions() == len(files)


@pytest.mark.slow
@pytest.mark.long
def test_compressed_file_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    write_jobs(tmp_path / "disque.aof", 10)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "disque.aof.gz").write_bytes(gzip.compress((tmp_path / "disque.aof").read_bytes()))
    plain, packed = (rows(table(spark, path).drop("file").selectExpr("'' AS file", "*")) for path in (
        tmp_path / "disque.aof", tmp_path / "old",
    ))  # fmt: skip
    assert packed == plain
    assert len(plain) == 10


@pytest.mark.slow
@pytest.mark.long
def test_long_file_read_by_several_tasks_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    ids = write_jobs(tmp_path / "disque.aof", 500)
    whole = table(spark, tmp_path)
    shared = table(spark, tmp_path, maxPartitionBytes="20k")
    assert (whole.rdd.getNumPartitions(), shared.rdd.getNumPartitions() > 3) == (1, True)
    assert rows(shared) == rows(whole)
    assert [row["id"].encode() for row in rows(shared)] == ids


# --- selection --------------------------------------------------------------------------------------------------------


def test_options_leave_out_other_queues_and_bodies(spark: SparkSession) -> None:
    found = rows(table(spark, *VALID, queues="q0, fed", includeBody="false"))
    assert {row["queue"] for row in found} == {"q0", "fed"}
    assert {row["body"] for row in found} == {None}
    assert all(row["body_size"] > 0 for row in found)


@pytest.mark.slow
@pytest.mark.long
def test_columns_can_be_selected_and_unknown_ones_are_rejected(spark: SparkSession) -> None:
    reader = spark.read.format("disque-aof").option("path", str(VECTORS / "01-addjob.aof"))
    assert reader.schema("queue string, id string").load().columns == ["queue", "id"]
    assert len(reader.schema("queue string, id string").load().collect()) == 6
    with pytest.raises(PySparkException, match="unknown column size int; the columns are file string"):
        reader.schema("size int").load().collect()


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("06-truncated.aof", "is damaged from byte [0-9]+ to [0-9]+: the end of the file cuts the record off. A node"),
        ("08-garbage.aof", "a record begins with '\\*'.*`disque-check-aof .*08-garbage.aof` lists all damaged ranges"),
    ],
)
@pytest.mark.parametrize("kind", ["jobs", "records"])
def test_damaged_file_fails_the_query_with_the_range_and_a_hint(
    spark: SparkSession, name: str, words: str, kind: str
) -> None:
    with pytest.raises(PySparkException, match=words) as caught:
        table(spark, VECTORS / name, rows=kind).collect()
    assert 'option("failOnDamage", "false")' in str(caught.value)


def test_file_of_a_later_release_is_read_by_no_option(tmp_path: Path) -> None:
    path = tmp_path / "disque.aof"
    path.write_bytes(b"*2\r\n$6\r\nFORMAT\r\n$1\r\n9\r\n")
    with pytest.raises(AofUnknown, match=r"cannot be read: it has format 9.* Use the connector of the release"):
        list(read_items(str(path)))


@pytest.mark.slow
@pytest.mark.long
def test_damaged_ranges_can_be_skipped_and_records_describe_them(spark: SparkSession, tmp_path: Path) -> None:
    write_jobs(tmp_path / "disque.aof", 10)
    data = (tmp_path / "disque.aof").read_bytes()
    (tmp_path / "disque.aof").write_bytes(data.replace(b"body of 4", b"BODY OF 4")[:-5])
    jobs = rows(table(spark, tmp_path, failOnDamage="false"))
    assert [row["body"] for row in jobs] == [b"body of %d" % n for n in range(10) if n != 4]
    assert not jobs[-1]["finished"], "its DELJOB is truncated"
    places = [row for row in rows(table(spark, tmp_path, failOnDamage="false", rows="records")) if row["damage"]]
    assert [re.sub("[^a-z ]", "", row["damage"]) for row in places] == [
        "the checksum of the job is wrong",
        "the end of the file cuts the record off",
    ]


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no file to read; pass a path such as .load"),
        ({"path": ""}, "the option path must not be empty"),
        ({"path": "x", "paths": "y"}, "path and paths conflict"),
        ({"path": "x", "rows": "lines"}, "the option rows must be one of jobs, records, not 'lines'"),
        ({"path": "x", "failOnDamge": "no"}, "(?i)unknown option failOnDamge; use failOnDamage"),
        ({"path": "x", "failOnDamage": "no"}, "must be true or false, not 'no'"),
        ({"path": "x", "queue": "mail"}, "the option queue does not apply to files; use queues"),
        ({"path": "x", "nodes": "a:1"}, "which reads live nodes"),
        ({"path": "x", "maxPartitionBytes": "0"}, "must be a size such as 64m"),
        ({"path": "x", "zzz": "1"}, "the options are path, paths, rows"),
        ({"path": "/nowhere/*.aof"}, "no append-only file at /nowhere/\\*.aof"),
    ],
)  # fmt: skip
def test_invalid_options_fail_with_a_hint(spark: SparkSession, options: dict[str, str], words: str) -> None:
    with pytest.raises(PySparkException, match=words):
        spark.read.format("disque-aof").options(**options).load().collect()
