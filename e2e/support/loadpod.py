"""The program in the pods of the load: `produce`, `consume`, `fill`, `order` or `follow`.

It uses the project's client, through a Service. It logs each event as a line, before anything depends on the event;
`support.account` reads the lines:

    add <kind> <milliseconds> <key> <job ID> …    ADDJOB replied with an ID; its duration
    unknown <key> <kind> <error>                  ADDJOB failed; the job may exist
    got <job ID> <key> …                          jobs were delivered, and are acknowledged next
    took <job ID> <key> …                         jobs were delivered, and are not acknowledged
    acked <job ID> …                              jobs of the ordered queue are acknowledged, with an answer
    failed <call> <error>                         a call of a consumer failed after all retries
    again <key or call> <error>                   a call about the ordered queue failed, and is made again
    end                                           the program ends, after SIGTERM

It needs only the Python of the image. The file is mounted from a ConfigMap, and its settings are JSON in the variable
LOAD. The password is read from a mounted Secret before each call, because it may be rotated.
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
"""ADDJOB options of each kind. While the cluster changes, `far` jobs are delayed and `held` jobs are unacknowledged."""
QUEUES = {
    "plain": ("work-0", "work-1", "work-2"),
    "delayed": ("late",),
    "once": ("once",),
    "far": ("far",),
    "held": ("held",),
}
STEADY = ("plain", "delayed", "plain", "once", "plain", "plain", "delayed", "plain", "plain", "plain")
"""The sequence of kinds that a producer repeats."""
FETCH_MS = 500
ORDERED = "payments"
"""The ordered queue."""
ORDERED_RETRY_S = 10
ADD_MS = 5000
AGAIN_S = 0.2
BATCH = 100
"""Jobs in a log line; kubelets cut long lines and limit the size of a log."""


def log(*words: object) -> None:
    """Write a line to the log."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def named(jobs: list[Job]) -> list[str]:
    """Return the ID and the key of each job, in one list."""
    return [word for job in jobs for word in (job.id, job.body.decode())]


class Connection:
    """Holds the client, and replaces it after a password rotation."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._nodes = [settings["service"]]
        self._password: str | None = None
        self._client: AsyncClient | None = None

    def client(self) -> AsyncClient:
        """Return a client with the current password."""
        password = PASSWORD.read_text().strip() if PASSWORD.exists() else None
        if self._client is None or password != self._password:
            self._password = password
            self._client = AsyncClient(self._nodes, password=password, timeout_s=10)
        return self._client


def options(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the ADDJOB options for a kind of job."""
    return {"replicate": settings.get("replicate", 2), "repeat": True} | KINDS[kind]


async def produce(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Add jobs at a steady rate until the end; a delayed task catches up."""
    connection = Connection(settings)
    tasks = settings.get("tasks", 4)
    interval_s = tasks / settings.get("rate", 40)
    await asyncio.gather(
        *(_produce(f"{settings['name']}.{task}", connection, settings, interval_s, ending) for task in range(tasks))
    )


async def _produce(
    name: str, connection: Connection, settings: dict[str, Any], interval_s: float, ending: asyncio.Event
) -> None:
    start_s = time.monotonic()
    number = 0
    while not ending.is_set():
        kind = STEADY[number % len(STEADY)]
        queues = QUEUES[kind]
        key = f"{name}.{number}"
        called_s = time.monotonic()
        try:
            job_id = await connection.client().add(queues[number % len(queues)], key, **options(kind, settings))
            log("add", kind, round((time.monotonic() - called_s) * 1000), key, job_id)
        except DisqueError as error:
            log("unknown", key, kind, type(error).__name__, str(error).replace("\n", " "))
        number += 1
        await asyncio.sleep(max(0.0, start_s + number * interval_s - time.monotonic()))


async def consume(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Fetch and acknowledge jobs until the end."""
    connection = Connection(settings)
    await asyncio.gather(*(_consume(connection, ending) for _ in range(settings.get("tasks", 2))))


async def _consume(connection: Connection, ending: asyncio.Event) -> None:
    queues = sorted({queue for names in QUEUES.values() for queue in names})
    while not ending.is_set():
        call = "get"
        try:
            client = connection.client()
            jobs = await client.get(queues, count=BATCH, timeout_ms=FETCH_MS)
            call = "ack"
            if jobs:
                log("got", *named(jobs))
                await client.ack(*(job.id for job in jobs))
        except DisqueError as error:
            log("failed", call, type(error).__name__, str(error).replace("\n", " "))


async def fill(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Add the jobs of each kind, fetch some without acknowledging them, then wait for the end."""
    client = Connection(settings).client()
    for kind, count in settings["jobs"].items():
        keys = [f"{settings['name']}.{kind}.{number}" for number in range(count)]
        queue = QUEUES[kind][0]
        called_s = time.monotonic()
        results = await client.add_many(queue, keys, **options(kind, settings))
        failed = [result for result in results if isinstance(result, DisqueError)]
        if failed:
            raise failed[0]  # an error is a failure here: nothing has disturbed the cluster yet
        each_ms = round((time.monotonic() - called_s) * 1000 / max(1, count))
        answered = list(zip(keys, results, strict=True))
        for at in range(0, count, BATCH):
            log("add", kind, each_ms, *(word for pair in answered[at : at + BATCH] for word in pair))
    take = settings.get("take", 0)
    taken = await client.get(QUEUES["held"], count=take, nohang=True) if take else []
    for at in range(0, len(taken), BATCH):
        log("took", *named(taken[at : at + BATCH]))
    log("filled")
    await ending.wait()


async def order(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Add jobs to the ordered queue until the end: each task adds its next job when the one before is answered."""
    connection = Connection(settings)
    tasks = settings.get("tasks", 4)
    interval_s = tasks / settings.get("rate", 40)
    await asyncio.gather(
        *(_order(f"{settings['name']}.{task}", connection, interval_s, ending) for task in range(tasks))
    )


async def _order(name: str, connection: Connection, interval_s: float, ending: asyncio.Event) -> None:
    """Add the jobs of one task. With a KEY, a job whose reply was lost is added again and is one job."""
    number = 0
    while not ending.is_set():
        key = f"{name}.{number}"
        called_s = time.monotonic()
        words = ("ADDJOB", ORDERED, key, ADD_MS, "KEY", key, "RETRY", ORDERED_RETRY_S)
        job_id = ""
        while not job_id:
            try:
                reply = await connection.client().execute(*words, repeat=True, wait_s=ADD_MS / 1000)
                job_id = reply.decode() if isinstance(reply, bytes) else str(reply)
            except DisqueError as error:
                log("again", key, type(error).__name__, str(error).replace("\n", " "))
                await asyncio.sleep(AGAIN_S)
        log("add", "ordered", round((time.monotonic() - called_s) * 1000), key, job_id)
        number += 1
        await asyncio.sleep(interval_s)


async def follow(settings: dict[str, Any], ending: asyncio.Event) -> None:
    """Fetch and acknowledge the jobs of the ordered queue until the end, one after the other."""
    connection = Connection(settings)
    while not ending.is_set():
        call = "get"
        try:
            jobs = await connection.client().get(ORDERED, count=1, timeout_ms=FETCH_MS)
            call = "ack"
            if jobs:
                log("got", *named(jobs))
                await connection.client().ack(*(job.id for job in jobs))
                log("acked", *(job.id for job in jobs))
        except DisqueError as error:
            log("again", call, type(error).__name__, str(error).replace("\n", " "))
            await asyncio.sleep(AGAIN_S)


async def main() -> None:
    """Run the task on the command line until SIGTERM."""
    settings: dict[str, Any] = json.loads(os.environ["LOAD"])
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    tasks = {"produce": produce, "consume": consume, "fill": fill, "order": order, "follow": follow}
    await tasks[sys.argv[1]](settings, ending)
    log("end")


if __name__ == "__main__":
    asyncio.run(main())
