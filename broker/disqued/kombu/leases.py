"""The jobs that a connection has: one thread renews, acknowledges and returns them.

A job is renewed with WORKING while its message is unacknowledged, also when it was only fetched ahead. So there is no
visibility timeout, and a task may run for days. Acknowledgements and returns are collected and sent together within
milliseconds; the program does not wait for them. If the node is gone, the client uses another one, and what was not
sent waits until one answers. `close` sends the rest.

The thread does one thing after the other, because a WORKING that arrives after the NACK of the same job would take it
out of its queue again for a whole retry time.

A child that is forked has none of these jobs: they stay with the process that fetched them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from disqued.client import (
    Client,
    ConnectionFailed,
    ConnectionLost,
    DisqueError,
    Job,
    JobAcknowledged,
    Loading,
    NodeLeaving,
    NoSuchJob,
    TooLate,
)
from disqued.client.renewals import RenewalSchedule
from disqued.kombu.nodeclients import NodeClients

log = logging.getLogger("disqued.kombu")

JOBS_PER_COMMAND: Final = 256
TRY_AGAIN_S: Final = 0.5
"""How long to wait before what could not be sent is sent again."""
LONGEST_WAIT_S: Final = 60.0

REQUEUED: Final = "requeued by its consumer"
REJECTED: Final = "rejected by its consumer"
"""The reasons that the broker keeps with the jobs."""

UNSENT: Final = (ConnectionFailed, NodeLeaving, Loading)
"""Errors after which the command is sent again."""
UNREACHED: Final = (*UNSENT, ConnectionLost)
"""Those of an acknowledgement. A NACK may have been executed, and another worker may have the job by now."""
ENDED: Final = (NoSuchJob, JobAcknowledged, TooLate)
"""Errors of WORKING after which a job cannot be renewed any more."""


@dataclass(slots=True)
class Unsent:
    """Jobs whose end the node does not know yet."""

    acknowledged: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    """They go back to their queues, and no attempt is counted."""
    failed: list[str] = field(default_factory=list)
    """They go back to their queues as failed attempts, which a queue may limit."""
    rejected: list[str] = field(default_factory=list)
    """They become dead letters, or end if their queue has none."""

    def __bool__(self) -> bool:
        return bool(self.acknowledged or self.returned or self.failed or self.rejected)


class Leases:
    """The jobs of one connection. Any thread may call the methods."""

    def __init__(self, make_client: Callable[[], Client], make_nodes: Callable[[Client], NodeClients]) -> None:
        self._make_client = make_client
        self._make_nodes = make_nodes
        self._begin()

    def _begin(self) -> None:
        self.owner = os.getpid()
        self.client = self._make_client()
        """The client of the connection; threads share it."""
        self.nodes = self._make_nodes(self.client)
        """Clients of single nodes."""
        self._schedule = RenewalSchedule()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._wake = threading.Event()
        self._unsent = Unsent()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._is_cut_off = False

    def forget(self) -> None:
        """Begin without jobs and with new sockets, in a child process. The old ones close here only."""
        self.nodes.forget()
        self.client.close()
        self._begin()

    def __len__(self) -> int:
        return len(self._schedule)

    def hold(self, jobs: Iterable[Job]) -> None:
        """Renew these jobs, which were just fetched with the time until their next delivery, from now on."""
        now_s = time.monotonic()
        for job in jobs:
            self._schedule.hold_leased(job.id, -1 if job.requeue_in_ms is None else job.requeue_in_ms, now_s)
        self._start()
        self._wake.set()

    def acknowledge(self, job_id: str) -> None:
        """The job is done."""
        self._note(job_id, lambda unsent: unsent.acknowledged)

    def give_back(self, job_id: str) -> None:
        """The job returns to its queue at once; no attempt is counted."""
        self._note(job_id, lambda unsent: unsent.returned)

    def fail(self, job_id: str) -> None:
        """The job returns to its queue as a failed attempt: at once, or after the back-off that its queue has set."""
        self._note(job_id, lambda unsent: unsent.failed)

    def reject(self, job_id: str) -> None:
        """The job becomes a dead letter."""
        self._note(job_id, lambda unsent: unsent.rejected)

    def _note(self, job_id: str, where: Callable[[Unsent], list[str]]) -> None:
        self._schedule.release(job_id)
        with self._lock:
            where(self._unsent).append(job_id)
        if self._closed:
            self.flush()
        else:
            self._start()
            self._wake.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="disqued.kombu", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(self._wait_s())
            self._wake.clear()
            self._send()
            self._renew()

    def _wait_s(self) -> float:
        return self._schedule.wait_s(time.monotonic(), TRY_AGAIN_S if self._unsent else LONGEST_WAIT_S)

    def flush(self) -> None:
        """Send what was noted, and return when the node has replied, or cannot be reached.

        When the connection was lost and closed, a task may still have run to its end: its acknowledgement has a
        connection of its own.
        """
        if not self._closed:
            self._send()
            return
        with self._make_client() as self.client:
            self._send()

    def close(self) -> None:
        """Send what was noted, and stop renewing. Later acknowledgements are sent at once."""
        self._closed = True
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._send()
        self.nodes.close()

    def _send(self) -> None:
        if not self._unsent:
            return
        with self._sending:  # no renewal is in flight
            with self._lock:
                unsent, self._unsent = self._unsent, Unsent()
            self._finish(unsent.acknowledged, self.client.ack, UNREACHED)
            self._finish(unsent.returned, lambda *ids: self.client.nack(*ids, uncounted=True), UNSENT)
            self._finish(unsent.failed, lambda *ids: self.client.nack(*ids, reason=REQUEUED), UNSENT)
            self._finish(unsent.rejected, lambda *ids: self.client.nack(*ids, reason=REJECTED, dead=True), UNSENT)
            with self._lock:
                self._unsent.acknowledged[:0] = unsent.acknowledged
                self._unsent.returned[:0] = unsent.returned
                self._unsent.failed[:0] = unsent.failed
                self._unsent.rejected[:0] = unsent.rejected

    def _finish(self, ids: list[str], call: Callable[..., int], unreached: tuple[type[DisqueError], ...]) -> None:
        """Send the command for all jobs; those stay that no node received."""
        while ids:
            some = ids[:JOBS_PER_COMMAND]
            try:
                call(*some)
            except unreached as error:
                self._say_cut_off(error)
                return
            except DisqueError as error:
                log.warning("the end of jobs was not taken jobs=%s error=%r", ",".join(some), str(error))
            self._is_cut_off = False
            del ids[: len(some)]

    def _say_cut_off(self, error: DisqueError) -> None:
        if not self._is_cut_off:
            log.warning("no node can be reached, acknowledgements wait error=%r", str(error))
        self._is_cut_off = True

    def _renew(self) -> None:
        with self._sending:
            ids = self._schedule.due(time.monotonic())
            if not ids:
                return
            results = self._working(self.client, ids)
            unknown = [job_id for job_id, result in results.items() if isinstance(result, NoSuchJob)]
            if unknown:
                results.update(self._working_elsewhere(unknown))
            now_s = time.monotonic()
            for job_id, result in results.items():
                self._renewed(job_id, result, now_s)

    def _working(self, client: Client, ids: Sequence[str]) -> dict[str, int | DisqueError]:
        try:
            return dict(zip(ids, client.working_many(ids), strict=True))
        except DisqueError as error:
            return dict.fromkeys(ids, error)

    def _working_elsewhere(self, ids: Sequence[str]) -> dict[str, int | DisqueError]:
        """Renew jobs at the nodes that have copies: the node that delivered them has gone, and this one has none."""
        renewed: dict[str, int | DisqueError] = {}
        with suppress(DisqueError):
            for client in list(self.nodes.live().values())[1:]:
                left = [job_id for job_id in ids if job_id not in renewed]
                if not left:
                    break
                results = self._working(client, left)
                renewed.update({job_id: result for job_id, result in results.items() if isinstance(result, int)})
        return renewed

    def _renewed(self, job_id: str, result: int | DisqueError, now_s: float) -> None:
        if isinstance(result, int):
            self._schedule.renewed(job_id, result, now_s)
        elif isinstance(result, ENDED):
            self._schedule.not_renewable(job_id)
            log.warning("job cannot be renewed, it may be delivered again job=%s error=%r", job_id, str(result))
        else:
            self._schedule.not_renewed(job_id, now_s)
            log.warning("renewal failed job=%s error=%r", job_id, str(result))
