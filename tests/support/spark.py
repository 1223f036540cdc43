"""A Spark session in one process, configured to be small and fast, with additional settings of the tests."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Final

from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextlib.contextmanager
def local_spark(master: str = "local[2]", **settings: str) -> Iterator[SparkSession]:
    """Start a local session; `settings` are Spark's, with `_` instead of dots."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as directory:
        builder = SparkSession.builder.master(master).appName("tests")
        chosen = {"spark.local.dir": directory, "spark.sql.warehouse.dir": f"{directory}/warehouse", **SETTINGS}
        chosen.update((name.replace("_", "."), value) for name, value in settings.items())
        for name, value in chosen.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()
