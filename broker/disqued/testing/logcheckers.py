"""Checks of the guarantees of append-only files, based on the files, the state of nodes and what clients saw."""

from __future__ import annotations

from typing import Final

from disqued.core.jobs.job import ACTIVE, DELIVERED, QUEUED
from disqued.core.lifecycle.times import EXPIRY_GRACE_MS
from disqued.core.queues.queue import PAUSE_NAMES
from disqued.persistence.marker import MARKER
from disqued.testing.cluster import Cluster, Member
from disqued.testing.history import Attempt, History
from disqued.testing.logged import LOG_NAME, Contents, contents
from disqued.testing.network import Sent
from disqued.testing.purgeload import is_purged
from disqued.testing.snapshot import NEARLY_OVER_MS, differences, snapshot

SETTLED_MS: Final = 1500
"""How long it takes without faults until all holders have logged an acknowledgement."""


def log_state(member: Member) -> object:
    """The state of the append-only file of a node: off, wait-rewrite or on."""
    return dict(member.node.state.events.persistence_status())["aof_state"]


class LoadWatch:
    """Compares what nodes have loaded with what was on their disks."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._files: dict[int, Contents] = {}

    def before(self, member: Member) -> None:
        """Read the file of a node that is about to start."""
        if member.config.appendonly or member.config.aof_enqueue_jobs_once:
            self._files[member.number] = contents(member.host.disk.files)

    def serving(self, member: Member) -> None:
        """Check a node that has loaded its jobs and sent nothing yet."""
        history = self._history
        history.away.pop(member.number, None)
        self._check_promises(member)
        found = self._files.pop(member.number, None)
        if found is not None and found.sound and found.records:
            self._compare(member, found)
        before = history.expected.pop(member.number, None)
        if before is not None:
            after = snapshot(member)
            for job_id, was in list(before.jobs.items()):
                if job_id not in after.jobs and is_purged(member, was.body):
                    del before.jobs[job_id]
            for text in differences(before, after, member.now_ms):
                history.violate(member.net.now_ms, f"node {member.number} after a controlled restart: {text}")
            self._check_one_restart(member)
            queued = sum(job.queued for job in after.jobs.values())
            history.rare["job queued by a controlled restart"] += queued
        else:
            self._check_at_most_once(member)

    def watch(self, sent: Sent) -> None:
        """Record what a node confirms to another one."""
        if sent.kind in {"GOTJOB", "GOTJOBS"} and isinstance(sent.sender, Member):
            for job_id in sent.job_ids:
                job = sent.sender.node.state.lifecycle.table.get(job_id)
                if job is not None:
                    self._history.promise(sent.sender.number, job)

    def _check_promises(self, member: Member) -> None:
        """A node has everything again that it had confirmed and had when it went down, unless it was purged.

        The other jobs that it found are promised from now on, too, if the next loss cannot take them: after a killed
        process, the end of the file may only be in the memory of the system, which a power loss takes.
        """
        table = member.node.state.lifecycle.table
        owed = self._history.owed.pop(member.number, {})
        for job_id, was in owed.items():
            is_over = was.expires_ms <= member.net.now_ms + NEARLY_OVER_MS or is_purged(member, was.body)
            if table.get(job_id) is None and not is_over:
                self._violate(member, f"{job_id!r} is not there any more, as was promised")
        disk, name = member.host.disk, member.config.appendfilename
        size = len(disk.files.get(name, b""))
        safe = self._history.policy != "always" or size == 0 or disk.synced_bytes(name) == size
        for job in table.jobs():
            if safe or job.id in owed:
                self._history.promise(member.number, job)

    def _check_one_restart(self, member: Member) -> None:
        """A controlled restart happens once.

        The next restart finds neither the option nor a valid marker nor, if the node keeps no AOF, the file.
        """
        if "aof-enqueue-jobs-once yes" in (member.host.config_text or "") or member.config.aof_enqueue_jobs_once:
            self._violate(member, "aof-enqueue-jobs-once is still on")
        if member.host.disk.files.get(LOG_NAME + MARKER):
            self._violate(member, "the restart marker still counts")
        left = LOG_NAME in member.host.disk.files and not member.config.appendonly
        if left and not self._history.is_in_trouble(member.number, member.net.now_ms):
            self._violate(member, "the file of a controlled restart will be loaded again")

    def _check_at_most_once(self, member: Member) -> None:
        """Jobs that were delivered at most once are not there again, unless the disk lost that record."""
        history = self._history
        for job in member.node.state.lifecycle.table.jobs():
            if job.retry_s > 0:
                continue
            history.rare["at-most-once job not queued again"] += job.requeue_at_ms == 0
            if job.state == QUEUED:
                self._violate(member, f"{job.id!r}, at most once, is queued again")
            attempt = history.attempt_of(job.body)
            if attempt is None or not attempt.deliveries:
                continue
            if job.requeue_at_ms == 0 and all(delivery.member != member.number for delivery in attempt.deliveries):
                continue  # a copy that another node had as well, and that is never queued here
            told_ms = [delivery.at_ms for delivery in attempt.deliveries]
            # The job may have been moving to the node that delivered it when this one lost power.
            if not history.is_set_back(member.number, attempt.at_ms, told_ms[0]):
                self._violate(member, f"{job.id!r}, delivered at most once at {told_ms}, is there again")

    def _compare(self, member: Member, found: Contents) -> None:
        """The job table equals the file, except for expired jobs."""
        now_ms = member.now_ms
        table = member.node.state.lifecycle.table
        for job_id, stored in found.jobs.items():
            loaded = table.get(job_id)
            ends_ms = stored.expire_at_s * 1000 + EXPIRY_GRACE_MS
            if loaded is None:
                wrong = ends_ms > now_ms + NEARLY_OVER_MS and not is_purged(member, stored.body)
            else:
                wrong = (loaded.body, loaded.queue, loaded.ctime) != (stored.body, stored.queue, stored.ctime)
            if wrong:
                self._violate(member, f"{job_id!r} is on disk, and {'not' if loaded is None else 'otherwise'} loaded")
        for job in table.jobs():
            if job.id not in found.jobs:
                self._violate(member, f"{job.id!r} is loaded, and not on disk")
        _, queues = member.node.state.lifecycle.queues.scan(0, 1 << 30)
        paused = {queue.name for queue in queues if queue.local_pause}
        if paused != set(found.pauses):
            self._violate(member, f"queues {sorted(paused)} are paused, on disk {sorted(found.pauses)}")

    def _violate(self, member: Member, text: str) -> None:
        self._history.violate(member.net.now_ms, f"node {member.number}: {text}")


def check_log(member: Member, history: History) -> None:
    """Check that the file equals the memory of the node while nothing waits for the disk."""
    state = member.node.state
    if state.ready.changes or state.ready.safe < state.ready.logged or log_state(member) != "on":
        return
    found = contents(member.host.disk.files)
    if not found.sound:
        return  # it is damaged and about to be rewritten
    now_ms = member.net.now_ms
    lasting = [job for job in state.lifecycle.table.jobs() if job.state in {ACTIVE, QUEUED}]
    disk_ms = max(member.now_ms, member.host.wall_us() // 1000)  # times on disk follow a clock that is set forward
    kept = {job.id for job in lasting if job.retry_s > 0 or not job.flags & DELIVERED}
    for job_id, stored in found.jobs.items():
        if stored.retry_s == 0 and stored.flags & DELIVERED:
            continue  # the later record that deletes it was damaged: it is never queued again
        if job_id not in kept and stored.expire_at_s * 1000 + EXPIRY_GRACE_MS > disk_ms:
            history.violate(now_ms, f"node {member.number}: {job_id!r} is on disk, and must not be kept")
    for job in lasting:
        if job.id in kept and job.id not in found.jobs:
            history.violate(now_ms, f"node {member.number}: {job.id!r} is not on disk")
    _, queues = state.lifecycle.queues.scan(0, 1 << 30)
    pauses = {queue.name: PAUSE_NAMES[queue.local_pause] for queue in queues if queue.local_pause}
    if pauses != found.pauses:
        history.violate(now_ms, f"node {member.number}: queues are paused {pauses}, on disk {found.pauses}")


def check_logs_idle(cluster: Cluster, history: History) -> None:
    """Check that in the end nothing waits for a disk and no write is refused."""
    for member in cluster.members:
        state = member.node.state
        waiting = {
            "changes": len(state.ready.changes),
            "groups": int(state.ready.logged - state.ready.safe),
            "replies": int(not member.barrier_empty),
            "works": len(member.host.disk.pending),
            "refusal": len(state.write_refusal),
        }
        if any(waiting.values()):
            history.violate(cluster.network.now_ms, f"node {member.number}: something waits for its disk: {waiting}")


def check_files(cluster: Cluster, history: History) -> None:
    """Check that in the end, after a rewrite, the files have no jobs, and no temporary files are left."""
    now_ms = cluster.network.now_ms
    for member in cluster.members:
        files = member.host.disk.files
        found = contents(files)
        if found.jobs or not found.sound or found.records > len(found.pauses) + found.ended:
            history.violate(now_ms, f"node {member.number}: the file holds {found.records} records, all jobs are gone")
        left = [name for name in files if name.startswith("temp")]
        if left:
            history.violate(now_ms, f"node {member.number} leaves {left}")


def check_no_return(attempt: Attempt, history: History) -> None:
    """Check that a job acknowledged without faults does not come back, whichever node is killed later.

    A node whose disk has just been repaired may have held back the reply to a worker that got the job before.
    """
    acked_ms = attempt.ack_replied_ms
    settled_ms = acked_ms + SETTLED_MS
    returned = [delivery for delivery in attempt.deliveries if delivery.at_ms > settled_ms] if acked_ms else []
    if not returned:
        return
    if any(history.is_set_back(member, acked_ms, settled_ms) for member in history.setbacks):
        history.rare["acknowledged job came back after a power loss"] += 1
    elif history.is_in_trouble(returned[0].member, acked_ms):
        return
    elif attempt.ack_settled and history.was_quiet(acked_ms - SETTLED_MS, settled_ms):
        history.violate(
            returned[0].at_ms,
            f"job {attempt.number}, acknowledged at {acked_ms}, was delivered again by {returned[0].member}",
        )
