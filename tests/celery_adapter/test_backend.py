"""The backend without a worker: its URL and options, how long results stay, and what it writes."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, states
from celery.exceptions import ImproperlyConfigured
from celery.result import AsyncResult

from disqued.celery.backend import QUEUE, DisqueBackend
from disqued.celery.chords import is_same_cluster
from disqued.celery.runs import FREE_STATES, Runs
from disqued.client import Client
from disqued.testing.processes import wait_until
from support.cluster import RealCluster


@pytest.fixture
def make(cluster: RealCluster) -> Any:
    """Makes applications with settings of their own."""
    url = f"disque://{','.join(node.address for node in cluster.nodes)}"
    return lambda **settings: made(url, **settings)


def made(url: str, **settings: Any) -> Any:
    app = Celery("made", broker="memory://", backend=url, set_as_current=False)
    app.conf.update(settings)
    return app


def test_celery_finds_the_backend_by_its_url() -> None:
    for url in ("disque://localhost", "disques://u:secret@one:7712,[::1]:7712/?insecure=yes"):
        backend = made(url).backend
        assert isinstance(backend, DisqueBackend)
        assert backend.as_uri(include_password=True) == url
        assert backend.as_uri() == url.replace("secret", "**")


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("disque://:secret@one/db", {}, "result_backend: invalid URL of a node; use disque://"),
        ("disque://one", {"queue": ""}, "queue must be a name, not ''"),
        ("disque://one", {"copies": 0}, "copies must be a number greater than 0, not 0"),
        ("disque://one", {"attempts": "3"}, "attempts must be a number greater than 0, not '3'"),
        ("disque://:secret@one?copies=two", {}, "copies must be a number greater than 0, not 'two'"),
        ("disque://:secret@one?copies=1&copies=2", {}, "result_backend: the option 'copies' in the URL must have one"),
        (
            "disque://:secret@one?attempt=1",
            {},
            "result_backend: unknown option 'attempt' in the URL; did you mean 'attempts'",
        ),
        ("disque://:secret@one?retry=30", {}, "unknown option 'retry' in the URL; use queue, copies, attempts, cafile"),
    ],
)
def test_wrong_settings_are_refused(url: str, options: dict[str, Any], message: str) -> None:
    app = made(url, result_backend_transport_options=options)
    with pytest.raises(ImproperlyConfigured, match=message) as refused:
        getattr(app, "backend")  # noqa: B009 - it is made when it is read
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("expires", "retained_s"),
    [(90, 90), (timedelta(hours=2), 7200), (0.5, 1), (None, 30 * 86400), (0, 30 * 86400), (10**9, 30 * 86400)],
)
def test_result_expires_says_how_long_nodes_keep_a_result(
    make: Any, cluster: RealCluster, expires: Any, retained_s: int
) -> None:
    backend = make(result_expires=expires).backend
    task_id = f"expires-{expires}"
    backend.store_result(task_id, {}, states.STARTED)
    with Client([cluster.nodes[0].address]) as client:
        details = client.execute("SHOW", backend.results.job_id(task_id))
        assert isinstance(details, list)
        assert details[details.index(b"retain") + 1] == retained_s


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {"queue": "shop.results", "copies": 1, "visibility_timeout": 5}),
        ("/?queue=shop.results&copies=1", {"queue": "not.this.one"}),
    ],
)
def test_queue_and_copies_can_be_chosen(make: Any, cluster: RealCluster, query: str, options: dict[str, Any]) -> None:
    app = make()
    other = app.backend
    one = made(f"{app.conf.result_backend}{query}", result_backend_transport_options=options).backend
    one.store_result("task", 42, states.SUCCESS)
    assert (one.get_state("task"), other.get_state("task")) == (states.SUCCESS, states.PENDING)
    one.store_result("unfinished", {}, states.STARTED)
    with Client([cluster.nodes[0].address]) as client:
        for backend, queue in ((one, "shop.results"), (other, QUEUE)):
            backend.store_result("unfinished", {}, states.STARTED)
            job_id = backend.results.job_id("unfinished")
            wait_until(lambda: client.show(job_id), "the copy at this node has arrived", lambda: "")  # noqa: B023 - waits here
            details = client.show(job_id)
            assert details is not None
            assert details.queue == queue


@pytest.mark.parametrize("serializer", ["json", "pickle", "yaml"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_results_of_any_serializer_and_compression_are_read_by_others(
    make: Any, serializer: str, compression: str | None
) -> None:
    accept = ["json", "pickle", "yaml"]
    writer = make(result_serializer=serializer, result_compression=compression, result_accept_content=accept)
    reader = make(result_serializer=serializer, result_accept_content=accept)
    name = f"{serializer}-{compression}"
    for task_id, value, state in ((name, {"a": [1, "ü"]}, states.SUCCESS), (f"{name}!", OSError("no"), states.FAILURE)):
        writer.backend.store_result(task_id, {"step": 1}, "PROGRESS")
        assert reader.backend.get_state(task_id) == "PROGRESS"
        writer.backend.store_result(task_id, value, state)
        found = AsyncResult(task_id, app=reader).get(timeout=60, propagate=False)
        assert (type(found), str(found)) == (type(value), str(value))


def test_a_process_that_was_forked_connects_itself(cluster: RealCluster) -> None:
    """Prefork workers inherit the application of their parent, with its connections."""
    program = f"""
import os
from celery import Celery
from celery.result import AsyncResult
app = Celery("forked", broker="memory://", backend="disque://{cluster.nodes[0].address}")
app.backend.store_result("parent", 1, "SUCCESS")
children = []
for number in range(3):
    child = os.fork()
    if not child:
        for turn in range(50):
            app.backend.store_result(f"child-{{number}}-{{turn}}", [number, turn], "SUCCESS")
        assert AsyncResult(f"child-{{number}}-49", app=app).get(timeout=60) == [number, 49]
        os._exit(0)
    children.append(child)
for turn in range(50):
    assert AsyncResult("parent", app=app).result == 1
    app.backend._cache.clear()
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
for number in range(3):
    assert AsyncResult(f"child-{{number}}-7", app=app).get(timeout=60) == [number, 7]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_chords_wait_in_the_broker_if_tasks_and_results_are_in_one_cluster() -> None:
    backend = "disques://mail:secret@a:1,b:2/?insecure=yes"
    for broker in ("disques://other:x@b:2,a:1", "disques://a:1?retry=30;disques://b:2?retry=30", backend):
        assert is_same_cluster(broker, backend)
    for other in ("disques://a:1", "redis://a:1", "", None, ["disques://a:1,b:2"]):
        assert not is_same_cluster(other, backend)


def test_states_of_a_busy_task_are_left_out_but_never_a_new_state() -> None:
    runs = Runs()
    numbers = [number for _ in range(20_000) if (number := runs.note("task", "PROGRESS")) is not None]
    assert FREE_STATES < len(numbers) < 1000
    assert [seq for _, seq in numbers] == list(range(len(numbers)))
    last = runs.note("task", "SENDING")
    assert last is not None
    runs.end("task")
    again = runs.note("task", "PROGRESS")
    assert again is not None
    assert (again[1], again[0] > last[0]) == (0, True)
