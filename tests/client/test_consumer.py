"""Both consumers with a real node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from disqued.client import AsyncClient, Client, Job, Reject, ResponseError, Retry
from disqued.testing.processes import ServerProcess
from support.proxies import CHUNK_BYTES, Proxy

LONG_S = 20.0
"""Longer than any of these scenarios takes."""


class Handler:
    """Records its jobs; with `hold`, blocks until `release`; fails for bodies that begin with `bad`."""

    def __init__(self, *, hold: bool = False) -> None:
        self.seen: list[Job] = []
        self._gate = threading.Event()
        self._arrivals = threading.Semaphore(0)
        if not hold:
            self._gate.set()

    def __call__(self, job: Job) -> None:
        self.seen.append(job)
        self._arrivals.release()
        assert self._gate.wait(LONG_S)
        if job.body.startswith(b"bad") and job.nacks == 0:
            raise ValueError("bad job")

    def wait_for(self, arrivals: int) -> None:
        for _ in range(arrivals):
            assert self._arrivals.acquire(timeout=LONG_S)

    def release(self) -> None:
        self._gate.set()


class NodeOfTheOriginal(Proxy):
    """It refuses GETJOB WITHREQUEUE and options of NACK as nodes of the original do."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.refused = 0
        self.refused_nacks = 0

    def forward(self, downstream: socket.socket) -> None:
        """Forward requests that such a node knows, and all replies."""
        with self.connect() as upstream:
            threading.Thread(target=self._replies, args=(downstream, upstream), daemon=True).start()
            while data := downstream.recv(CHUNK_BYTES):
                if b"WITHREQUEUE" in data:
                    self.refused += 1
                    downstream.sendall(b"-ERR syntax error\r\n")
                elif b"NACK" in data and (b"REASON" in data or b"UNCOUNTED" in data):
                    self.refused_nacks += 1
                    downstream.sendall(b"-BADID Invalid Job ID format.\r\n")
                else:
                    upstream.sendall(data)

    def _replies(self, downstream: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError), downstream:
            while data := upstream.recv(CHUNK_BYTES):
                downstream.sendall(data)


def until(condition: Any) -> None:
    """Wait until `condition()` holds; each check is a round trip to the node."""
    while not condition():
        pass


def test_jobs_are_handled_and_acknowledged(client: Any) -> None:
    handler = Handler()
    ids = client.add_many("mail", [f"{number}" for number in range(20)])
    with client.consumer("mail", handler, concurrency=3):
        handler.wait_for(20)
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
    assert {job.id for job in handler.seen} == set(ids)


def test_consumer_gives_handlers_the_metadata_and_the_priority(client: Any) -> None:
    handler = Handler()
    client.add("mail", "x", priority=3, meta=b"trace 7")
    with client.consumer("mail", handler, with_meta=True):
        handler.wait_for(1)
    assert [(job.meta, job.priority) for job in handler.seen] == [(b"trace 7", 3)]


def test_consumer_can_use_fastack(client: Any) -> None:
    handler = Handler()
    client.add("mail", "x")
    with client.consumer("mail", handler, fast_ack=True):
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
    stats = client.info("commandstats")
    assert "cmdstat_fastack" in stats
    assert "cmdstat_ackjob" not in stats


def test_job_is_delivered_again_when_its_handler_raises(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler()
    job_id = client.add("mail", "bad job")
    with caplog.at_level(logging.ERROR, "disqued.client"), client.consumer(["mail"], handler):
        handler.wait_for(2)
        until(lambda: client.show(job_id) is None)
    assert [(job.id, job.nacks, job.additional_deliveries) for job in handler.seen] == [(job_id, 0, 0), (job_id, 1, 0)]
    assert job_id in caplog.text
    assert "ValueError: bad job" in caplog.text


def test_concurrency_limits_running_handlers(client: Any) -> None:
    handler = Handler(hold=True)
    client.add_many("mail", ["x"] * 5)
    with client.consumer("mail", handler, concurrency=2):
        handler.wait_for(2)
        assert client.get("nothing", timeout_ms=150) == []  # time for a third handler to start
        assert (len(handler.seen), client.qlen("mail")) == (2, 3)
        handler.release()
        handler.wait_for(3)


def test_running_and_prefetched_jobs_are_renewed(client: Any) -> None:
    handler = Handler(hold=True)
    ids = client.add_many("mail", ["running", "fetched ahead"], retry_s=1)
    with client.consumer("mail", handler, prefetch=1):
        handler.wait_for(1)
        assert client.get("mail", timeout_ms=2500) == [], "no other client gets it after its retry time"
        handler.release()
        handler.wait_for(1)
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
    assert [(job.id, job.additional_deliveries) for job in handler.seen] == [(job_id, 0) for job_id in ids]


def test_first_renewal_can_be_sent_with_the_fetch(client: Any) -> None:
    handler = Handler(hold=True)
    client.add_many("mail", ["x", "y"], retry_s=50)
    with client.consumer("mail", handler, concurrency=2, working_after_s=0):
        handler.wait_for(2)
        assert client.info("commandstats")["cmdstat_working"].startswith("calls=2,")
        handler.release()


def test_short_handlers_need_no_working(client: Any) -> None:
    handler = Handler()
    client.add_many("mail", ["x"] * 50, retry_s=50)
    with client.consumer("mail", handler, concurrency=2, prefetch=20):
        handler.wait_for(50)
        assert client.get("nothing", timeout_ms=600) == [], "longer than nodes of the original are given"
    stats = client.info("commandstats")
    assert "cmdstat_working" not in stats
    assert client.info("jobs")["registered_jobs"] == "0"


def test_at_most_once_jobs_are_never_renewed(client: Any) -> None:
    handler = Handler(hold=True)
    client.add("mail", "x", retry_s=0, replicate=1)
    with client.consumer("mail", handler):
        handler.wait_for(1)
        assert client.get("nothing", timeout_ms=600) == []
        assert "cmdstat_working" not in client.info("commandstats")
        handler.release()


def test_results_of_a_batch_are_sent_together(client: Any) -> None:
    handler = Handler(hold=True)
    client.add_many("mail", ["x"] * 200)
    with client.consumer("mail", handler, prefetch=199):
        handler.wait_for(1)
        until(lambda: client.qlen("mail") == 0)
        handler.release()
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
    calls = int(client.info("commandstats")["cmdstat_ackjob"].removeprefix("calls=").split(",")[0])
    assert calls < 100


def test_jobs_of_a_node_that_does_not_tell_leases_are_handled_and_renewed(connect: Any, server: ServerProcess) -> None:
    handler = Handler(hold=True)
    with NodeOfTheOriginal(server.port) as node:
        client = connect([f"127.0.0.1:{node.port}"], discover=False)
        client.add_many("mail", ["x"] * 3, retry_s=50)
        with client.consumer("mail", handler, concurrency=3):
            handler.wait_for(3)
            until(lambda: client.info("commandstats").get("cmdstat_working", "").startswith("calls=3,"))
            handler.release()
            until(lambda: client.info("jobs")["registered_jobs"] == "0")
        assert node.refused == 1


def test_handlers_get_no_metadata_from_a_node_that_does_not_know_it(connect: Any, server: ServerProcess) -> None:
    handler = Handler()
    with NodeOfTheOriginal(server.port) as node:
        client = connect([f"127.0.0.1:{node.port}"], discover=False)
        client.add_many("mail", ["x"] * 3)
        with client.consumer("mail", handler, with_meta=True):
            handler.wait_for(3)
            until(lambda: client.info("jobs")["registered_jobs"] == "0")
        assert node.refused == 2
    assert {job.meta for job in handler.seen} == {None}


def test_node_of_the_original_gets_jobs_back_without_reasons(connect: Any, server: ServerProcess) -> None:
    handler = Handler()
    with NodeOfTheOriginal(server.port) as node:
        client = connect([f"127.0.0.1:{node.port}"], discover=False)
        client.add("mail", "bad job")
        with client.consumer("mail", handler):
            handler.wait_for(2)
            until(lambda: client.info("jobs")["registered_jobs"] == "0")
        assert node.refused_nacks == 1
    assert [job.nacks for job in handler.seen] == [0, 1]


def test_exception_of_a_handler_is_the_reason_of_its_dead_letter(client: Any) -> None:
    handler = Handler()
    client.qconf_set("mail", {"limit": 1})
    client.add("mail", "bad job", retry_s=30)
    with client.consumer("mail", handler):
        until(lambda: client.qlen("mail.dead") == 1)
    [dead] = client.jscan_details(queue="mail.dead")
    assert (dead.reason, dead.origin_queue, dead.attempts_before) == ("ValueError: bad job", "mail", 1)
    assert dead.dead_since_ms is not None


def test_handler_can_delay_or_reject_its_job(client: Any) -> None:
    def handler(job: Job) -> None:
        if job.body == b"later":
            raise Retry(delay_s=60, reason="not yet")
        raise Reject("never")

    later = client.add("mail", "later")
    client.add("mail", "never", retry_s=30)
    with client.consumer("mail", handler):
        until(lambda: client.qlen("mail.dead") == 1 and client.show(later).nacks == 1)
    details = client.show(later)
    assert (details.state, details.reason) == ("active", "not yet")
    [dead] = client.jscan_details(queue="mail.dead")
    assert (dead.reason, dead.body) == ("never", b"never")


def test_finished_job_is_not_renewed_any_more(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler(hold=True)
    job_id = client.add("mail", "x")
    with client.consumer("mail", handler, working_after_s=0.05):
        handler.wait_for(1)
        client.ack(job_id)
        until(lambda: "job cannot be renewed" in caplog.text or not client.ping())
        handler.release()
    assert caplog.text.count(job_id) == 1


def test_stop_waits_for_running_handlers_and_returns_prefetched_jobs(client: Any) -> None:
    handler = Handler(hold=True)
    running, waiting = client.add_many("mail", ["running", "waiting"])
    with client.consumer("mail", handler, prefetch=1) as consumer:
        handler.wait_for(1)
        until(lambda: client.qlen("mail") == 0)
        consumer_stop = threading.Thread(target=consumer.stop)
        consumer_stop.start()
        until(lambda: client.qlen("mail") == 1)
        assert client.show(running).state == "active"
        handler.release()
        consumer_stop.join(LONG_S)
    assert client.show(running) is None
    assert [(job.id, job.attempts) for job in client.get("mail", with_counters=True)] == [(waiting, 0)], "uncounted"
    assert len(handler.seen) == 1


def test_stop_returns_jobs_whose_handlers_exceed_the_deadline(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler(hold=True)
    job_id = client.add("mail", "endless")
    with client.consumer("mail", handler, stop_within_s=0.05):
        handler.wait_for(1)
    details = client.show(job_id)
    assert (details.state, details.attempts) == ("queued", 1)
    assert details.reason == "the worker stopped before the handler ended"
    assert "stop timed out" in caplog.text
    handler.release()


def test_consumer_survives_a_restart_of_the_node(connect: Any, tmp_path: Path) -> None:
    handler = Handler()
    with ServerProcess(tmp_path) as first:
        client = connect([f"127.0.0.1:{first.port}"])
        client.add("mail", "before")
        consumer = client.consumer("mail", handler)
        consumer.__enter__()
        handler.wait_for(1)
    with ServerProcess(tmp_path, port=first.port):
        client.add("mail", "after")
        handler.wait_for(1)
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
        consumer.stop()
    assert [job.body for job in handler.seen] == [b"before", b"after"]


def test_result_is_sent_after_a_lost_connection(client: Any) -> None:
    handler = Handler(hold=True)
    client.add("mail", "x")
    with client.consumer("mail", handler):
        handler.wait_for(1)
        client.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        handler.release()
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
    assert len(handler.seen) == 1


def test_refused_fetch_ends_the_consumer_with_the_error(connect: Any, tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--requirepass", "secret") as server:
        client = connect([f"127.0.0.1:{server.port}"], discover=False)
        with pytest.raises(ResponseError, match="NOAUTH"):
            client.consumer("mail", Handler()).run()


def test_invalid_options_are_refused(client: Any) -> None:
    with pytest.raises(ValueError, match="concurrency >= 1"):
        client.consumer("mail", Handler(), concurrency=0)


def test_run_returns_when_a_handler_requests_a_stop(server: ServerProcess) -> None:
    with Client([f"127.0.0.1:{server.port}"]) as client:
        client.add("mail", "last one")
        consumer = client.consumer("mail", lambda _: consumer.request_stop())
        consumer.run()
        assert client.info("jobs")["registered_jobs"] == "0"


def test_coroutine_handlers_are_cancelled_at_the_deadline(server: ServerProcess) -> None:
    cancelled: list[bytes] = []

    async def scenario() -> None:
        begun = asyncio.Event()

        async def handler(job: Job) -> None:
            begun.set()
            try:
                await asyncio.sleep(0 if job.body == b"short" else LONG_S)
            except asyncio.CancelledError:
                cancelled.append(job.body)
                raise

        async with AsyncClient([f"127.0.0.1:{server.port}"]) as client:
            short, long = await client.add("mail", "short"), await client.add("mail", "long")
            async with client.consumer("mail", handler, concurrency=2, stop_within_s=0):
                await begun.wait()
                while await client.show(short) is not None or await client.qlen("mail"):
                    pass
            details = await client.show(long)
            assert details is not None
            assert (details.state, details.nacks) == ("queued", 1)

    asyncio.run(scenario())
    assert cancelled == [b"long"]


def test_cancelled_run_returns_held_jobs(server: ServerProcess) -> None:
    async def scenario() -> None:
        async with AsyncClient([f"127.0.0.1:{server.port}"]) as client:
            job_id = await client.add("mail", "x")
            begun = asyncio.Event()

            async def handler(_: Job) -> None:
                begun.set()
                await asyncio.sleep(LONG_S)

            running = asyncio.create_task(client.consumer("mail", handler).run())
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            details = await client.show(job_id)
            assert details is not None
            assert details.state == "queued"

    asyncio.run(scenario())


def test_cancelled_run_returns_unstarted_jobs_uncounted(server: ServerProcess) -> None:
    async def scenario() -> None:
        async with AsyncClient([f"127.0.0.1:{server.port}"]) as client:
            running, waiting = await client.add("mail", "running"), await client.add("mail", "waiting")
            begun = asyncio.Event()

            async def handler(_: Job) -> None:
                begun.set()
                await asyncio.sleep(LONG_S)

            task = asyncio.create_task(client.consumer("mail", handler, prefetch=1).run())
            await begun.wait()
            while await client.qlen("mail"):
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            found = [await client.show(job_id) for job_id in (running, waiting)]
            assert [(job.state, job.attempts) for job in found if job is not None] == [("queued", 1), ("queued", 0)]

    asyncio.run(scenario())


def test_renewal_in_flight_does_not_undo_a_nack(client: Any) -> None:
    """Handlers fail when their jobs are due for WORKING: each job must still be delivered again at once."""
    ready = threading.Event()

    def handler(job: Job) -> None:
        if job.nacks == 0:
            ready.wait(0.02)
            raise ValueError("bad job")

    client.add_many("mail", ["x"] * 300, retry_s=300)
    with client.consumer("mail", handler, concurrency=16, prefetch=16, working_after_s=0.02):
        until(lambda: client.info("jobs")["registered_jobs"] == "0")
