"""Three nodes, an application of Celery whose results they keep, and a worker in a thread of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from celery import signals
from celery.contrib.testing.worker import start_worker

from celery_adapter.tasks import app as tasks_app
from support.cluster import RealCluster


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def leave_logging_alone(**_: object) -> None:
    """Keep how the tests log, which a worker in their process would change: with a receiver, Celery leaves it alone."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three nodes."""
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def app(cluster: RealCluster) -> Iterator[Any]:
    """The application with a worker that has one thread."""
    tasks_app.conf.result_backend = f"disque://{','.join(node.address for node in cluster.nodes)}"
    with start_worker(tasks_app, pool="threads", concurrency=4, perform_ping_check=False):
        yield tasks_app
