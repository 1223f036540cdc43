"""Reads and writes with TLS, at a node that requires a certificate of the client and a password."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess

pytestmark = pytest.mark.slow

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("node", "client"):
        made.issue(name)
    return made


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[int]:
    directory, number = tmp_path_factory.mktemp("node"), free_port()
    for name in ("node.crt", "node.key", "ca.crt"):
        shutil.copy(authority.directory / name, directory)
    files = ("--tls-cert-file", "node.crt", "--tls-key-file", "node.key", "--tls-ca-cert-file", "ca.crt")
    secret = ("--requirepass", PASSWORD)
    with ServerProcess(directory, "--tls-port", str(number), *files, *secret):
        yield number


@pytest.fixture
def options(port: int, authority: Authority, tmp_path: Path) -> dict[str, str]:
    """The options that the node requires."""
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    return {
        "nodes": f"disques://default@localhost:{port}",
        "passwordFile": str(tmp_path / "password"),
        "tlsCaFile": str(authority.certificate),
        "tlsCertFile": str(authority.directory / "client.crt"),
        "tlsKeyFile": str(authority.directory / "client.key"),
        "replicate": "1",
        "giveUpAfter": "0",
    }


def read(spark: SparkSession, options: dict[str, str], **more: str) -> DataFrame:
    reading = {name: value for name, value in options.items() if name != "replicate"}
    return spark.read.format("disque").options(**reading, **more).load()


def write(spark: SparkSession, options: dict[str, str], **more: str) -> None:
    rows = spark.createDataFrame([(f"letter {number}",) for number in range(200)], "body string")
    rows.write.format("disque").options(**{**options, **more}).mode("append").save()


def test_jobs_are_written_and_consumed_with_a_certificate_and_a_user(
    spark: SparkSession, options: dict[str, str]
) -> None:
    write(spark, options, queue="mail", mode="deduplicated")
    rows = read(spark, options, queue="mail", consume="true").collect()
    assert sorted(bytes(row.body).decode() for row in rows) == sorted(f"letter {number}" for number in range(200))
    assert read(spark, options, queue="mail").count() == 0


def test_stream_reads_over_tls(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    write(spark, options, queue="stream")
    reading = {name: value for name, value in options.items() if name != "replicate"}
    jobs = spark.readStream.format("disque").options(**reading, queue="stream").load()
    query = (
        jobs.writeStream.format("memory")
        .queryName("over_tls")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert spark.table("over_tls").count() == 200


def test_node_that_is_not_trusted_is_refused_with_the_reason(
    spark: SparkSession, options: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")
    with pytest.raises(PySparkException, match="certificate verify failed"):
        write(spark, options, queue="mail", tlsCaFile=str(other.certificate))


def test_missing_file_fails_with_its_option_before_anything_is_read(
    spark: SparkSession, options: dict[str, str]
) -> None:
    with pytest.raises(PySparkException, match=r"tlsCaFile /nowhere/ca\.crt"):
        read(spark, {**options, "tlsCaFile": "/nowhere/ca.crt"}, queue="mail").collect()
