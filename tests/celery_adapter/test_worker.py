"""Results with the broker's own transport and workers of several processes, as in production."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, chord, group, states

from disqued.client import Client
from support.celeryworker import CeleryWorker
from support.cluster import RealCluster

WAIT_S = 60
RETRY_S = 2
"""Tasks that a node had sent to the worker when it was killed are delivered again after this time."""


@pytest.fixture(scope="module")
def url(cluster: RealCluster) -> str:
    return f"disque://{','.join(node.address for node in cluster.nodes)}"


@pytest.fixture(scope="module")
def worker(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryWorker]:
    with CeleryWorker(tmp_path_factory.mktemp("worker"), url, app="celery_adapter.tasks", BACKEND=url) as process:
        yield process


@pytest.fixture
def app(url: str, worker: CeleryWorker) -> Iterator[Any]:
    """What a web server has: it knows the names of the tasks only."""
    assert worker.process.poll() is None
    client = Celery("web", broker=url, backend=url, set_as_current=False)
    client.conf.broker_transport_options = {"retry": RETRY_S}
    yield client
    client.close()


def task(app: Any, name: str, *args: Any) -> Any:
    return app.signature(f"celery_adapter.tasks.{name}", args=args)


def test_canvases_work_with_workers_of_several_processes(app: Any) -> None:
    assert chain(task(app, "add", 1, 2), task(app, "add", 3))().get(timeout=WAIT_S) == 6
    header = [task(app, "add", number, 1) for number in range(20)]
    assert chord(header, task(app, "total"))().get(timeout=WAIT_S) == 210
    with pytest.raises(ValueError, match="no"):
        task(app, "fail", "no").delay().get(timeout=WAIT_S)


@pytest.mark.parametrize("others", [2, 100])
def test_body_of_a_chord_runs_when_its_header_is_done_without_polling(
    app: Any, cluster: RealCluster, tmp_path: Path, others: int
) -> None:
    """Celery's own way would look again after an hour."""
    gate = tmp_path / "gate"
    header = [task(app, "add", 1, 1)] * (others - 1) + [task(app, "fail", "a part"), task(app, "wait_for", str(gate))]
    broken = chord(header, task(app, "total")).apply_async(interval=3600)
    header = [*[task(app, "add", 1, 1)] * others, task(app, "wait_for", str(gate))]
    whole = chord(header, task(app, "total")).apply_async(interval=3600)
    with Client([cluster.nodes[0].address]) as client:
        cluster.wait_until(lambda: client.qcount("celery").held == 2, "the tasks that look after the chords wait")
    gate.touch()
    assert whole.get(timeout=WAIT_S) == 2 * others + 1
    with pytest.raises(Exception, match="a part"):
        broken.get(timeout=WAIT_S)


def test_task_whose_process_is_killed_is_done_and_has_one_result(app: Any, tmp_path: Path) -> None:
    result = task(app, "die_once", str(tmp_path / "died")).delay()
    assert result.get(timeout=WAIT_S) == "survived"
    assert result.state == states.SUCCESS


@pytest.mark.slow
def test_all_results_arrive_although_nodes_die_meanwhile(app: Any, cluster: RealCluster) -> None:
    for node in cluster.nodes[:2]:
        many = group(task(app, "add", number, number) for number in range(200))()
        waiting = many.iter_native(timeout=WAIT_S)
        found = [next(waiting)[1]["result"]]
        node.kill()
        found += [meta["result"] for _, meta in waiting]
        assert sorted(found) == [2 * number for number in range(200)]
        node.restart()
        cluster.wait_whole()
