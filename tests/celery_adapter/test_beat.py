"""Entries of beat as schedules of the broker: loaded from an application, run by the nodes and real workers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, states
from celery.beat import BeatLazyFunc
from celery.result import AsyncResult
from celery.schedules import crontab

from disqued.celery.beat import BeatSchedules, UnsupportedEntriesError
from disqued.client import Client
from disqued.kombu.scheduled import task_id_of
from disqued.testing.processes import wait_until
from support.celeryworker import TESTS, CeleryWorker
from support.cluster import RealCluster

RUN = "celery_adapter.tasks.run"
DAILY = crontab(minute=0, hour=3)
WAIT_S = 60


@pytest.fixture(scope="module")
def url(cluster: RealCluster) -> str:
    return f"disque://{','.join(node.address for node in cluster.nodes)}"


@pytest.fixture(scope="module")
def client(cluster: RealCluster) -> Iterator[Client]:
    with Client([node.address for node in cluster.nodes]) as made:
        yield made


@pytest.fixture
def app(url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """An application of its own name for each test, whose schedules are gone afterwards."""
    made = Celery(request.node.name, broker=url, backend=url, set_as_current=False)
    yield made
    BeatSchedules(made).remove()
    made.close()


def entry(times: Any = DAILY, *args: Any, **options: Any) -> dict[str, Any]:
    return {"task": RUN, "schedule": times, "args": args, "options": options}


def schedule_of(app: Any, name: str) -> str:
    """The name of the schedule of an entry."""
    return f"celery/{app.main}/{name}"


def test_loading_again_changes_only_what_has_changed(app: Any, client: Client) -> None:
    app.conf.timezone = "Europe/Berlin"
    app.conf.beat_schedule = {
        "nightly": entry(crontab(minute="5", hour="3,4", day_of_week="mon-fri"), queue="reports", priority=3),
        "every [2] *": entry(2.0, countdown=10, expires=60),
        "gone soon": entry(),
    }
    schedules = BeatSchedules(app)
    assert schedules.load(dry_run=True).added == ["every [2] *", "gone soon", "nightly"]
    assert schedules.show() == []
    assert schedules.load().added == ["every [2] *", "gone soon", "nightly"]
    nightly = client.schedule_show(schedule_of(app, "nightly"))
    assert (nightly.when, nightly.zone, nightly.queue) == ("5 3,4 * * 1,2,3,4,5", "Europe/Berlin", "reports")
    assert (nightly.missed, "PRIORITY 3" in nightly.options) == ("once", True)
    odd = client.schedule_show(schedule_of(app, "every %5B2] %2A"))
    assert (odd.when, odd.zone, "DELAY 10" in odd.options) == ("every 2 s", "", True)

    del app.conf.beat_schedule["gone soon"]
    app.conf.beat_schedule["nightly"]["schedule"] = crontab(minute=6, hour=3)
    app.add_periodic_task(30, app.signature(RUN), name="added by a call")
    changes = schedules.load()
    assert (changes.added, changes.changed) == (["added by a call"], ["nightly"])
    assert (changes.unchanged, changes.removed) == (["every [2] *"], ["gone soon"])
    assert client.schedule_show(odd.name).changed_ms == odd.changed_ms
    assert [schedules.entry_name(one.name) for one in schedules.show()] == ["added by a call", "every [2] *", "nightly"]
    assert BeatSchedules(app, "other/").load().added == ["added by a call", "every [2] *", "nightly"]
    assert len(BeatSchedules(app, "other/").remove()) == len(schedules.show()) == 3


def test_entries_that_cannot_run_are_named_and_nothing_is_changed(app: Any) -> None:
    app.conf.beat_schedule = {
        "fine": entry(),
        "lazy": entry(DAILY, BeatLazyFunc(time.time)),
        "half": entry(0.5),
        "fixed": entry(DAILY, expires=datetime.now(UTC)),
        "eta": entry(DAILY, eta=datetime.now(UTC)),
        "nowhere": entry(DAILY, exchange="unbound", exchange_type="topic", routing_key="x"),
    }
    with pytest.raises(UnsupportedEntriesError) as refused:
        BeatSchedules(app).load()
    assert {name: reason[:20] for name, reason in refused.value.reasons.items()} == {
        "lazy": "arguments that are c",
        "half": "an interval of 0.5 s",
        "fixed": "`eta` and `expires` ",
        "eta": "`eta` and `expires` ",
        "nowhere": "a schedule adds to o",
    }
    assert BeatSchedules(app).show() == []


def test_each_run_is_a_task_of_its_own_with_a_result(app: Any, url: str, client: Client, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    app.conf.beat_schedule = {
        "often": entry(1, str(noted)),
        "daily": entry(DAILY, expires=3600),
        "late": entry(DAILY, queue="late", expires=1),
    }
    BeatSchedules(app).load()
    late_id = task_id_of(client.schedule_run(schedule_of(app, "late")))
    late_s = time.time() + 1.1
    wait_until(lambda: time.time() > late_s, "the run is late", lambda: "")
    with CeleryWorker(tmp_path, url, "-Q", "celery,late", app="celery_adapter.tasks", BACKEND=url) as worker:
        worker.wait_until(lambda: noted.exists() and len(noted.read_text().split()) > 2, "it runs every second")
        task_ids = noted.read_text().split()
        assert len(set(task_ids)) == len(task_ids)
        for task_id in task_ids[:2]:
            found = AsyncResult(task_id, app=app).get(timeout=WAIT_S)
            assert found == [task_id, task_id, task_id, "None"]

        began = datetime.now(UTC)
        task_id = task_id_of(client.schedule_run(schedule_of(app, "daily")))
        expires = AsyncResult(task_id, app=app).get(timeout=WAIT_S)[-1]
        assert abs(datetime.fromisoformat(expires) - began - timedelta(hours=1)) < timedelta(minutes=5)

        late = AsyncResult(late_id, app=app)
        wait_until(lambda: late.state in states.READY_STATES, "the late run is looked at", lambda: worker.output)
        assert late.state == states.REVOKED


def run_celery(directory: Path, broker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "BROKER": broker}
    command = [sys.executable, "-m", "celery", "-A", "celery_adapter.tasks", *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_command_loads_shows_and_removes(url: str, tmp_path: Path) -> None:
    def output(*arguments: str) -> list[str]:
        done = run_celery(tmp_path, url, "disque-schedules", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert output("load", "--dry-run") == ["added nightly total"]
    assert output("load") == ["added nightly total"]
    first, second = output("show")
    assert first == "nightly total: 0 3 * * 1,2,3,4,5 UTC active"
    assert "queue=celery" in second
    assert output("load", "--scheduler", "celery.beat:Scheduler") == ["unchanged nightly total"]
    assert output("remove") == ["removed nightly total"]
    refused = run_celery(tmp_path, "memory://", "disque-schedules", "load")
    assert refused.returncode == 1
    assert "schedules need the transport disque://" in refused.stderr
