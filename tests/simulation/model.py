"""A naive model of a node without peers: jobs in a dict, times checked against bounds.

The model does not predict random values (the jitter of requeue times) nor when a timer fires within its bounds. It
reads these from the node, checks that they are allowed, and continues from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from disqued.testing.local import LocalClient

LATENESS_MS = 16
JITTER_MS = 250
GRACE_MS = 1000


@dataclass(eq=False)
class ModelJob:
    """One job as its producer and its workers may expect it."""

    id: bytes
    number: int
    """Order of creation."""
    queue: str
    retry_s: int
    created_ms: int
    expire_ms: int
    """The job expires at this time, at most a second later."""
    requeue_ms: int | None
    """When it is requeued; None for never."""
    queued: bool = False
    announced: bool = False
    """Whether it was queued once: later queueings are counted."""
    deliveries: int = 0
    nacks: int = 0
    additional: int = 0


@dataclass(eq=False)
class ModelWait:
    """A blocked client."""

    client: LocalClient
    queues: list[str]
    deadline_ms: int | None


@dataclass
class Model:
    """The jobs, the pauses, and the blocked clients in order of arrival."""

    observer: LocalClient
    jobs: dict[bytes, ModelJob] = field(default_factory=dict)
    pauses: dict[str, str] = field(default_factory=dict)
    waits: list[ModelWait] = field(default_factory=list)

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.observer.local.now_ms

    def waiting_jobs(self, queue: str) -> list[ModelJob]:
        """The queued jobs of a queue, the next to be delivered first."""
        return sorted((job for job in self.jobs.values() if job.queued and job.queue == queue), key=_number)

    def paused_in(self, queue: str) -> bool:
        """Whether a queue takes no jobs."""
        return self.pauses.get(queue) in {"in", "all"}

    def paused_out(self, queue: str) -> bool:
        """Whether a queue gives no jobs."""
        return self.pauses.get(queue) in {"out", "all"}

    # --- events of a job ----------------------------------------------------------------------------------------------

    def can_enqueue(self, job: ModelJob) -> bool:
        """Whether a job may be queued (again)."""
        return not job.queued and job.requeue_ms is not None

    def enqueue(self, job: ModelJob, *, nack: bool = False) -> None:
        """Queue a job."""
        assert self.can_enqueue(job)
        job.queued = True
        if nack:
            job.nacks += 1
        elif job.announced:
            job.additional += 1
        else:
            job.announced = True
        self.note_requeue(job)

    def take(self, queue: str) -> ModelJob | None:
        """The job that a client gets next."""
        waiting = [] if self.paused_out(queue) else self.waiting_jobs(queue)
        if not waiting:
            return None
        job = waiting[0]
        job.queued = False
        job.deliveries += 1
        assert job.retry_s > 0 or job.deliveries == 1, "an at-most-once job was delivered twice"
        return job

    def note_requeue(self, job: ModelJob) -> None:
        """The retry time started again: read it from the node and check its bounds."""
        if job.retry_s == 0:
            job.requeue_ms = None
            return
        self.look_at_requeue(job)
        assert job.requeue_ms is not None
        due_ms = self.now_ms + job.retry_s * 1000
        assert due_ms - JITTER_MS <= job.requeue_ms < due_ms + JITTER_MS

    def look_at_requeue(self, job: ModelJob) -> None:
        """Read the time of the next queueing from the node."""
        within_ms = self.observer.show(job.id).get("next-requeue-within")
        assert within_ms is None or isinstance(within_ms, int)
        job.requeue_ms = None if within_ms is None else self.now_ms + within_ms

    # --- time and other clients ---------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Something happened on the node, by a command or because time passed: do the same here, and check it."""
        served = self._served()
        for job in list(self.jobs.values()):
            if job.expire_ms <= self.now_ms:
                self._perhaps_expire(job)
        for job in list(self.jobs.values()):
            if job.requeue_ms is not None and not job.queued and job.requeue_ms <= self.now_ms:
                self._perhaps_requeue(job, job in served.values())
        while served:
            wait = next((wait for wait, job in served.items() if self._is_next(wait, job)), None)
            assert wait is not None, "a client was served out of turn"
            job = served.pop(wait)
            assert self.take(job.queue) is job
            self.look_at_requeue(job)
            self.waits.remove(wait)
        for wait in self.waits:
            for queue in wait.queues:
                assert self.paused_out(queue) or not self.waiting_jobs(queue), "a client waits though there is a job"

    def _served(self) -> dict[ModelWait, ModelJob]:
        """The jobs that waiting clients received; takes out the clients whose time was over."""
        served: dict[ModelWait, ModelJob] = {}
        for wait in list(self.waits):
            match wait.client.replies():
                case []:
                    in_time = wait.deadline_ms is None or self.now_ms < wait.deadline_ms + LATENESS_MS
                    assert in_time, "a wait did not end"
                case [None]:
                    assert wait.deadline_ms is not None
                    assert self.now_ms >= wait.deadline_ms, "a wait ended early"
                    self.waits.remove(wait)
                case [[[bytes(queue), bytes(job_id), _]]]:
                    job = served[wait] = self.jobs[job_id]
                    assert queue == job.queue.encode()
                    assert job.queue in wait.queues
                case replies:
                    raise AssertionError(replies)
        return served

    def _is_next(self, wait: ModelWait, job: ModelJob) -> bool:
        """Whether this client is the first in the line of a queue whose first job this is."""
        line = [other for other in self.waits if job.queue in other.queues]
        return line[0] is wait and self.waiting_jobs(job.queue)[0] is job

    def _perhaps_expire(self, job: ModelJob) -> None:
        """Between its expiry and a second later a job goes, at the latest then."""
        if self.observer.show(job.id):
            assert self.now_ms < job.expire_ms + GRACE_MS + LATENESS_MS, "a job outlived its time"
        else:
            del self.jobs[job.id]

    def _perhaps_requeue(self, job: ModelJob, served: bool) -> None:
        """Within 16 ms of its requeue time a job is queued, or put off while its queue takes none."""
        assert job.requeue_ms is not None
        shown = self.observer.show(job.id)
        if served or shown["state"] == b"queued":
            assert not (job.retry_s > 0 and self.paused_in(job.queue)), "a paused queue took a job"
            self.enqueue(job)
        elif self.paused_in(job.queue) and shown["next-requeue-within"]:
            self.note_requeue(job)
        else:
            assert self.now_ms < job.requeue_ms + LATENESS_MS, "a job was not requeued in time"


def _number(job: ModelJob) -> int:
    return job.number
