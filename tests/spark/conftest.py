"""A real Spark in this process' JVM, and a cluster of three real brokers, for the tests of the connector."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import RealCluster

pytest.importorskip("pyspark", reason="PySpark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java 17 or newer, which is not here", allow_module_level=True)

from pyspark.sql import SparkSession

from support.spark import local_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with local_spark() as session:
        yield session


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three nodes that a module's tests share: each takes queues of its own."""
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


@pytest.fixture
def nodes(cluster: RealCluster) -> str:
    """The option of that name."""
    return ",".join(node.address for node in cluster.nodes)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
