"""The jobs that a connection has: one thread renews, acknowledges and returns them.

A job is renewed with WORKING while its message is unacknowledged, also when it was only fetched ahead. So there is no
visibility timeout, and a task may run for days. Acknowledgements and returns are collected and sent together within
milliseconds; the program does not wait for them. If the node is gone, the client uses another one, and what was not
sent waits until one answers. `close` sends the rest.

The thread does one thing after the other, because a WORKING that arrives after the NACK of the same job would take it
out of its queue again for a whole retry time.

Celery ends jobs in the handlers of signals, which run between any two steps of the main thread, also while it sends.
So what happens to jobs is noted without a lock, and a handler that interrupts a thread that sends leaves its notes to
that thread.

A child that is forked has none of these jobs: they stay with the process that fetched them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from queue import Empty, SimpleQueue
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


class End(Enum):
    """What happened to a job, in the order in which the node is told."""

    ACKNOWLEDGED = auto()
    RETURNED = auto()
    """It goes back to its queue, and no attempt is counted."""
    FAILED = auto()
    """It goes back to its queue as a failed attempt, which a queue may limit."""
    REJECTED = auto()
    """It becomes a dead letter, or ends if its queue has none."""


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
        self._notes: deque[tuple[End, str]] = deque()
        """What happened to jobs since the last sending."""
        self._wake: SimpleQueue[None] = SimpleQueue()
        """Has an element when the thread has something to do. Unlike an event, a signal handler can use it."""
        self._sending = threading.RLock()
        self._sender = 0
        """The thread that sends."""
        self._unsent: dict[End, list[str]] = {end: [] for end in End}
        """The jobs whose end the node does not know yet. Only for who sends."""
        self._starting = threading.RLock()
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
        self._wake.put(None)

    def acknowledge(self, job_id: str) -> None:
        """The job is done."""
        self._note(job_id, End.ACKNOWLEDGED)

    def give_back(self, job_id: str) -> None:
        """The job returns to its queue at once; no attempt is counted."""
        self._note(job_id, End.RETURNED)

    def fail(self, job_id: str) -> None:
        """The job returns to its queue as a failed attempt: at once, or after the back-off that its queue has set."""
        self._note(job_id, End.FAILED)

    def reject(self, job_id: str) -> None:
        """The job becomes a dead letter."""
        self._note(job_id, End.REJECTED)

    def _note(self, job_id: str, end: End) -> None:
        self._schedule.release(job_id)
        self._notes.append((end, job_id))
        if self._closed:
            self.flush()
        else:
            self._start()
            self._wake.put(None)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="disqued.kombu", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            with suppress(Empty):
                self._wake.get(timeout=self._wait_s())
                while True:
                    self._wake.get_nowait()
            self._send(self.client)
            self._renew()

    def _wait_s(self) -> float:
        return self._schedule.wait_s(time.monotonic(), TRY_AGAIN_S if any(self._unsent.values()) else LONGEST_WAIT_S)

    def flush(self) -> None:
        """Send what was noted, and return when the node has replied, or cannot be reached.

        In a signal handler that interrupts this thread while it sends, return at once: it is sent after the handler.

        When the connection was lost and closed, a task may still have run to its end: its acknowledgement has a
        connection of its own.
        """
        if not self._closed:
            self._send(self.client)
        elif not self._is_sender:
            with self._make_client() as client:
                self._send(client)

    def close(self) -> None:
        """Send what was noted, and stop renewing. Later acknowledgements are sent at once."""
        self._closed = True
        self._wake.put(None)
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._send(self.client)
        self.nodes.close()

    @property
    def _is_sender(self) -> bool:
        return self._sender == threading.get_ident()

    def _send(self, client: Client) -> None:
        if self._is_sender:
            return
        with self._sending:  # no renewal is in flight
            while True:
                self._sender = threading.get_ident()
                try:
                    self._send_notes(client)
                finally:
                    self._sender = 0
                if not self._notes:  # of a signal handler that interrupted this
                    return

    def _send_notes(self, client: Client) -> None:
        while self._notes:
            end, job_id = self._notes.popleft()
            self._unsent[end].append(job_id)
        self._finish(End.ACKNOWLEDGED, client.ack, UNREACHED)
        self._finish(End.RETURNED, lambda *ids: client.nack(*ids, uncounted=True), UNSENT)
        self._finish(End.FAILED, lambda *ids: client.nack(*ids, reason=REQUEUED), UNSENT)
        self._finish(End.REJECTED, lambda *ids: client.nack(*ids, reason=REJECTED, dead=True), UNSENT)

    def _finish(self, end: End, call: Callable[..., int], unreached: tuple[type[DisqueError], ...]) -> None:
        """Send the command for all jobs with this end; those stay that no node received."""
        ids = self._unsent[end]
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
