"""What happens in one room and is answered in another: rooms do not know each other, `disqued.node` connects them.

Each event is a method that does nothing here. The node overrides all of them, one line each, so that a reader finds
who answers. They are called in the middle of a change and must not raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.core.jobs.job import WAIT_REPL

if TYPE_CHECKING:
    from disqued.core.clients.blocked import WaitForCopies
    from disqued.core.clients.session import Session
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.job import Job
    from disqued.core.queues.queue import Queue
    from disqued.core.telemetry.fields import Fields


class Events:
    """Hears nothing: for a lifecycle without a node around it."""

    def copies_wanted(self, session: Session, job: Job, timeout_ms: i64, *, asynchronous: bool, external: bool) -> None:
        """A new job, not registered yet, is to be kept by `job.repl` nodes, this one among them unless `external`.

        The client is answered when it is, or at once if `asynchronous`.
        """

    def complete(self, job: Job) -> bool:
        """A job that waits for its copies is done or known elsewhere: its client is answered as if all had confirmed.

        False when the job is not here any more. Jobs that wait for nothing are left alone (True).
        """
        return job.state != WAIT_REPL

    def copy_confirmed(self, job: Job, peer: Peer) -> None:
        """A node confirmed (GOTJOB) to have a job that does not wait for its copies."""

    def leaving_changed(self) -> None:
        """This node begins to leave the cluster, or stays after all."""

    def leaving_status(self) -> Fields:
        """How far a leaving node is, for CLUSTER LEAVING STATUS."""
        return []

    def appendonly_changed(self) -> None:
        """Whether jobs are logged, or when a record counts as safe, changed (CONFIG SET appendonly, appendfsync)."""

    def directory_changed(self) -> None:
        """The working directory is another one (CONFIG SET dir)."""

    def all_dropped(self) -> None:
        """All jobs and queues were dropped at once."""

    def reload(self) -> str:
        """Forget everything and take it from the append only file (DEBUG LOADAOF). Returns why that is not possible."""
        return ""

    def persistence_status(self) -> Fields:
        """The append only file in figures, for INFO."""
        return []

    def last_records(self, *, rewrite: bool) -> str:  # noqa: ARG002 - nobody hears
        """The node ends: all that changed is to be on disk, in a file written anew if `rewrite`. What went wrong."""
        return ""

    def passed_on(self, job_id: bytes, kind: i64, message_flags: i64) -> i64:  # noqa: ARG002 - nobody hears
        """A worker says WORKING, or wants ENQUEUE, of a job that is not known here.

        If this node handed the job to another one, that is told; returns the job's retry time in seconds, otherwise -1.
        """
        return -1

    def requeued(self, job: Job, counting: i64) -> None:
        """A job that other nodes may hold is queued here, and they are to be told (QUEUED)."""

    def about_to_requeue(self, job: Job) -> None:
        """A job that other nodes may hold will be queued here in half a second (WILLQUEUE)."""

    def acknowledged(self, job: Job) -> None:
        """It is time to see whether all holders of an acknowledged job know."""

    def dropped_unplaced(self, job: Job) -> None:
        """A job is dropped before it had its copies: the client that waits is told, the copies are deleted."""

    def client_gone(self, wait: WaitForCopies) -> None:
        """The client that waited for the copies of its job is gone."""

    def queue_empty(self, queue: Queue, *, drained: bool) -> None:
        """Clients found nothing in a queue, or took the last job of it (`drained`)."""

    def queue_gone(self, queue: Queue) -> None:
        """A queue object is forgotten, and with it who wanted its jobs."""

    def peer_up(self, peer: Peer) -> None:
        """A node answers on a link that is new, or after it seemed to have failed."""

    def peer_forgotten(self, peer: Peer) -> None:
        """A node is no member any more."""
