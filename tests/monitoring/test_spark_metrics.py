"""A Spark job with the settings of manifests/spark exports every series of the Spark dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from dashboards.alerts.files import ROOT
from dashboards.spark import SPARK
from monitoring.queries import SPARK as SERIES
from monitoring.queries import names_in

SETTINGS = ROOT / "manifests" / "spark" / "spark-defaults.conf"
HAVE = r"(\w+)\{([^}]*)\} "
ADDED = {"app", "query"}
"""Labels that the PodMonitor and the queries add."""
pytestmark = pytest.mark.timeout(300)  # starts Spark, which is slow on a busy machine
NAME = "nightly drain"

PROGRAM = """
import json, sys, urllib.request
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().dropDuplicates(["value"])
query = rows.writeStream.queryName(sys.argv[2]).format("noop").start()
while not (query.lastProgress and query.lastProgress["batchId"]):
    assert query.exception() is None, query.exception()
    query.awaitTermination(1)
pages = ("/metrics/prometheus/", "/metrics/executors/prometheus/")
print(json.dumps([urllib.request.urlopen(spark.sparkContext.uiWebUrl + page).read().decode() for page in pages]))
query.stop()
spark.stop()
"""
"""A stream that prints the metrics of its driver after a micro-batch. It needs a process with its own settings."""


def settings() -> dict[str, str]:
    """Return the metrics settings of Spark on Kubernetes."""
    lines = (line.split(None, 1) for line in SETTINGS.read_text().splitlines() if line and not line.startswith("#"))
    return {name: value.strip() for name, value in lines if not name.startswith("spark.kubernetes.")}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the series of a running Spark job with their labels."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer, which is not here")
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.sql.shuffle.partitions": "1",
    }
    program = tmp_path_factory.mktemp("spark") / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, str(program), json.dumps(settings() | local), NAME]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    pages = json.loads(done.stdout.splitlines()[-1])
    found = [pair for page in pages for pair in re.findall(HAVE, page)]
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in found}


@pytest.mark.slow
@pytest.mark.long
def test_every_series_of_the_dashboard_exists_with_its_labels(shown: dict[str, set[str]]) -> None:
    for pattern, labels in SERIES.items():
        found = [name for name in shown if re.fullmatch(pattern, name)]
        assert len(found) == 1, pattern
        assert labels - ADDED <= shown[found[0]], pattern


@pytest.mark.slow
@pytest.mark.long
def test_stream_is_identified_by_its_name(shown: dict[str, set[str]]) -> None:
    assert "metrics_spark_driver_spark_streaming_nightly_drain_latency_Value" in shown


def test_every_listed_series_is_used() -> None:
    asked = {name for panel in SPARK.panels() for query in panel.queries for name in names_in(query.expr)}
    assert asked >= SERIES.keys()
