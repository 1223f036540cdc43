"""A real Spark in this process' JVM, and a cluster of three real brokers, for the tests of the connector."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.cluster import RealCluster
from support.spark import local_spark


def pytest_runtest_setup() -> None:
    """Skip all tests of this folder without Java."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or newer")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three nodes shared by the tests of a module; each test uses its own queues."""
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


@pytest.fixture
def nodes(cluster: RealCluster) -> str:
    """The value of the option `nodes`."""
    return ",".join(node.address for node in cluster.nodes)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
