"""Remote control, events, pools and access of Celery workers, with three real nodes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from disqued.client import Client
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from kombu_transport.messages import until
from support.celeryworker import TESTS, CeleryWorker


def celery(url: str, *arguments: str) -> str:
    """Run a command of Celery in a process of its own, as people do."""
    return subprocess.run(
        [sys.executable, "-m", "celery", "-A", "support.celeryapp", *arguments],
        env={**os.environ, "PYTHONPATH": str(TESTS), "BROKER": url},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


@pytest.fixture
def app(url: str) -> Iterator[Celery]:
    """An application of this process that sends tasks by their names."""
    application = Celery("sender", broker=url, backend="rpc://", set_as_current=False)
    yield application
    application.close()


def test_commands_reach_all_workers_as_soon_as_they_are_ready(url: str, tmp_path: Path, app: Celery) -> None:
    directories = [tmp_path / name for name in ("a", "b")]
    for directory in directories:
        directory.mkdir()
    arguments = ("-Q", "control", "-E")
    with (
        CeleryWorker(directories[0], url, "-n", "a@h", *arguments) as first,
        CeleryWorker(directories[1], url, "-n", "b@h", *arguments) as second,
    ):
        pong = json.loads(celery(url, "inspect", "ping", "--json", "--timeout", "10", "-d", "a@h,b@h"))
        assert sorted(pong) == ["a@h", "b@h"]

        seen: list[dict[str, Any]] = []
        with app.connection() as connection:
            receiver = app.events.Receiver(connection, handlers={"*": seen.append})
            watching = threading.Thread(target=receiver.capture, kwargs={"limit": None, "timeout": 60})
            watching.start()
            until(lambda: {"a@h", "b@h"} <= {event["hostname"] for event in seen}, "both workers know the receiver")
            assert app.send_task("support.celeryapp.add", (2, 2), queue="control").get(timeout=60) == 4
            until(lambda: any(event["type"] == "task-succeeded" for event in seen), "the task's event arrives")
            receiver.should_stop = True
            watching.join()

        app.control.add_consumer("more", destination=["a@h"], reply=True, timeout=10)
        assert app.send_task("support.celeryapp.add", (3, 3), queue="more").get(timeout=60) == 6
        app.control.cancel_consumer("control", destination=["a@h"], reply=True, timeout=10)
        assert app.send_task("support.celeryapp.add", (4, 4), queue="control").get(timeout=60) == 8
        app.control.broadcast("shutdown")
        for worker in (first, second):
            worker.process.wait(60)


@pytest.mark.parametrize("pool", ["threads", "solo", "gevent"])
def test_other_pools_use_all_of_their_room(url: str, tmp_path: Path, app: Celery, pool: str) -> None:
    """With prefetch 1, a task begins when the one before has ended, not when the worker looks the next time."""
    queue = f"pool-{pool}"
    results = [app.send_task("support.celeryapp.add", (number, 1), queue=queue) for number in range(40)]
    with CeleryWorker(tmp_path, url, "-Q", queue, "-P", pool, PREFETCH="1", ACKS="late") as worker:
        began_s = time.monotonic()
        assert [result.get(timeout=60) for result in results] == list(range(1, 41))
        assert time.monotonic() - began_s < 15, "40 tasks, not one each second"
        assert worker.stop() == 0


@pytest.mark.slow
def test_flower_shows_workers_and_tasks(url: str, tmp_path: Path, app: Celery) -> None:
    port = free_port()

    def page(path: str) -> str:
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return str(reply.read().decode())
        return ""

    arguments = ("flower", f"--port={port}", "--address=127.0.0.1")
    with (
        CeleryWorker(tmp_path, url, "-n", "flower@h", "-Q", "flower", "-E"),
        subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "support.celeryapp", *arguments],
            env={**os.environ, "PYTHONPATH": str(TESTS), "BROKER": url, "FLOWER_UNAUTHENTICATED_API": "true"},
            cwd=tmp_path,
        ) as flower,
    ):
        try:
            until(lambda: "support.celeryapp.add" in page("/api/workers?refresh=1"), "it has asked the worker")
            task = app.send_task("support.celeryapp.add", (2, 2), queue="flower")
            until(lambda: '"state": "SUCCESS"' in page(f"/api/task/info/{task.id}"), "it shows the task's end")
            assert 'type="task-succeeded",worker="flower@h"} 1.0' in page("/metrics")
        finally:
            flower.terminate()


def test_purge_counts_and_deletes_also_what_waits_for_its_eta(url: str, app: Celery, broker: Client) -> None:
    for countdown in (0, 0, 3600):
        app.send_task("support.celeryapp.add", (1, 1), queue="purged", countdown=countdown)
    assert "3 messages" in celery(url, "purge", "-f", "-Q", "purged")
    assert list(broker.jscan(queue="purged")) == []


def test_worker_with_tls_and_a_user_that_may_do_only_what_it_needs(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("node")
    port = free_port()
    files = ("--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-auth-clients", "no")
    with ServerProcess(tmp_path, "--tls-port", str(port), *files) as node:
        queues = "~celery ~*.celery.pidbox ~celeryev.* ~kombu.bindings.* ~????????-????-*"
        rules = f"on >secret {queues} +@producer +@consumer +@inspect"
        assert node.ask(f"ACL SETUSER worker {rules}") == "OK"
        assert node.ask("ACL SETUSER default off") == "OK"
        url = f"disques://worker:secret@127.0.0.1:{port}?cafile={authority.certificate}"
        with CeleryWorker(tmp_path, url, "-n", "tls@h") as worker, Celery("tls", broker=url, backend="rpc://") as app:
            assert app.send_task("support.celeryapp.add", (1, 1)).get(timeout=60) == 2
            [told] = app.control.inspect(["tls@h"], timeout=10).stats().values()
            assert "secret" not in str(told)
            with pytest.raises(OperationalError, match="NOPERM"):
                app.send_task("support.celeryapp.add", (1, 1), queue="other")
            assert worker.stop() == 0
