"""What runs in the pods of the load: `produce`, `consume` or `fill`, by the project's client, through a service.

Every fact is a line of the log, written before anything depends on it; `support.account` reads them:

    add <kind> <milliseconds> <key> <job ID> …    ADDJOB was answered with an ID; how long each took
    unknown <key> <kind> <error>                  it was not: the job may exist
    got <job ID> <key> …                          jobs were delivered; they are acknowledged next
    took <job ID> <key> …                         jobs were delivered, and are not acknowledged
    failed <call> <error>                         a call of a consumer failed with all its repetitions
    end                                           SIGTERM, or all is done

Only the Python of the image is needed: this file comes by a ConfigMap, its settings by the variable LOAD as JSON. The
password is read from a mounted Secret, again and again: it may be rotated.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from disqued.client import AsyncClient, DisqueError, Job

PASSWORD = Path("/auth/password")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"retry_s": 10},
    "delayed": {"retry_s": 10, "delay_s": 2},
    "once": {"retry_s": 0, "replicate": 1},
    "far": {"retry_s": 30, "delay_s": 45},
    "held": {"retry_s": 60},
}
"""How jobs of each kind are added; `far` ones are still delayed, `held` ones with a worker, while something happens."""
QUEUES = {
    "plain": ("work-0", "work-1", "work-2"),
    "delayed": ("late",),
    "once": ("once",),
    "far": ("far",),
    "held": ("held",),
}
STEADY = ("plain", "delayed", "plain", "once", "plain", "plain", "delayed", "plain", "plain", "plain")
"""Kinds in turn."""
FETCH_MS = 500
AT_ONCE = 100
"""Jobs in a line of the log: kubelets cut long lines, and keep only so much of a log."""


def say(*words: object) -> None:
    """A line of the log."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def named(jobs: list[Job]) -> list[str]:
    """The ID and the key of each."""
    return [word for job in jobs for word in (job.id, job.body.decode())]


class Connection:
    """The client, anew when the password was rotated."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._nodes = [settings["service"]]
        self._password: str | None = None
        self._client: AsyncClient | None = None

    def client(self) -> AsyncClient:
        """A client that has the password of now."""
        password = PASSWORD.read_text().strip() if PASSWORD.exists() else None
        if self._client is None or password != self._password:
            self._password = password
            self._client = AsyncClient(self._nodes, password=password, timeout_s=10)
        return self._client


def options(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """How a job of a kind is added."""
    return {"replicate": settings.get("replicate", 2), "repeat": True} | KINDS[kind]


async def produce(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Add jobs at a steady rate until the end; who is held up catches up."""
    connection = Connection(settings)
    tasks = settings.get("tasks", 4)
    interval_s = tasks / settings.get("rate", 40)
    await asyncio.gather(
        *(_produce(f"{settings['name']}.{task}", connection, settings, interval_s, ending) for task in range(tasks))
    )


async def _produce(
    name: str, connection: Connection, settings: dict[str, Any], interval_s: float, ending: asyncio.Event
) -> None:
    begin_s = time.monotonic()
    number = 0
    while not ending.is_set():
        kind = STEADY[number % len(STEADY)]
        queues = QUEUES[kind]
        key = f"{name}.{number}"
        called_s = time.monotonic()
        try:
            job_id = await connection.client().add(queues[number % len(queues)], key, **options(kind, settings))
            say("add", kind, round((time.monotonic() - called_s) * 1000), key, job_id)
        except DisqueError as error:
            say("unknown", key, kind, type(error).__name__, str(error).replace("\n", " "))
        number += 1
        await asyncio.sleep(max(0.0, begin_s + number * interval_s - time.monotonic()))


async def consume(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Take and acknowledge jobs until the end."""
    connection = Connection(settings)
    await asyncio.gather(*(_consume(connection, ending) for _ in range(settings.get("tasks", 2))))


async def _consume(connection: Connection, ending: asyncio.Event) -> None:
    queues = sorted({queue for names in QUEUES.values() for queue in names})
    while not ending.is_set():
        call = "get"
        try:
            client = connection.client()
            jobs = await client.get(queues, count=AT_ONCE, timeout_ms=FETCH_MS)
            call = "ack"
            if jobs:
                say("got", *named(jobs))
                await client.ack(*(job.id for job in jobs))
        except DisqueError as error:
            say("failed", call, type(error).__name__, str(error).replace("\n", " "))


async def fill(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Add so many jobs of each kind, and take some that are not acknowledged; then wait for the end."""
    client = Connection(settings).client()
    for kind, count in settings["jobs"].items():
        keys = [f"{settings['name']}.{kind}.{number}" for number in range(count)]
        queue = QUEUES[kind][0]
        called_s = time.monotonic()
        results = await client.add_many(queue, keys, **options(kind, settings))
        failed = [result for result in results if isinstance(result, DisqueError)]
        if failed:
            raise failed[0]  # nothing has happened to the cluster yet
        each_ms = round((time.monotonic() - called_s) * 1000 / max(1, count))
        answered = list(zip(keys, results, strict=True))
        for at in range(0, count, AT_ONCE):
            say("add", kind, each_ms, *(word for pair in answered[at : at + AT_ONCE] for word in pair))
    take = settings.get("take", 0)
    taken = await client.get(QUEUES["held"], count=take, nohang=True) if take else []
    for at in range(0, len(taken), AT_ONCE):
        say("took", *named(taken[at : at + AT_ONCE]))
    say("filled")
    await ending.wait()


async def main() -> None:
    """Run what the command line says until SIGTERM."""
    settings: dict[str, Any] = json.loads(os.environ["LOAD"])
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await {"produce": produce, "consume": consume, "fill": fill}[sys.argv[1]](settings, ending)
    say("end")


if __name__ == "__main__":
    asyncio.run(main())
