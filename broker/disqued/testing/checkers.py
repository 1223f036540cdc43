"""Checks of the guarantees of a cluster, based on what clients saw and on the memory of the nodes."""

from __future__ import annotations

from collections import Counter

from disqued.core.fates.watches import WATCH_BYTES
from disqued.core.jobs.job import ACKED, ACTIVE, DELAYED, QUEUED, WAIT_REPL
from disqued.core.jobs.phases import WITH_WORKER, phase_of
from disqued.core.lifecycle.times import SPENT_MS_PER_S
from disqued.core.memory.accounting import (
    BASE_BYTES,
    CLIENT_BYTES,
    JOB_BYTES,
    KEY_BYTES,
    WAIT_BYTES,
    body_bytes,
    queue_bytes,
)
from disqued.dependencies.parents import CHILD_BYTES, PARENT_BYTES
from disqued.moves.room import moves_of
from disqued.replication.room import replication_of
from disqued.testing.cluster import Cluster, Member
from disqued.testing.history import Attempt, Delivery, History
from disqued.testing.logcheckers import check_no_return

LATE_MS = 8000
"""How long a job may outlive its TTL while it waits on a slow link or in a suspended process."""
EARLY_MS = 800
"""How early a holder may requeue a job, because of jitter and two clock ticks."""
TIE_MS = 20
"""Holders that queue a job within this time cannot learn of it from each other: clocks tick every 16 ms."""
TRAVEL_MS = 300
"""How long a job that was queued twice may travel to the workers of distant nodes."""
CLEANUP_MS = 3000
"""How long a completed job may stay in memory without faults."""
MET_MS = 2000
"""How long after all nodes are connected every holder knows which jobs are done."""
TWICE_MS = 400
"""How long a job may be in two queues without faults."""


class Watch:
    """Checks a cluster periodically while there are no faults."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster = cluster
        self._history = history
        self._twice: dict[bytes, int] = {}
        """Since when jobs are in two queues, or at two nodes although they can only move."""

    def look(self) -> None:
        """Check that completed jobs are deleted, and that no job stays in two queues."""
        now_ms = self._cluster.network.now_ms
        queued: Counter[bytes] = Counter()
        for member in self._cluster.members:
            for job in member.node.state.lifecycle.table.jobs():
                queued[job.id] += job.state == QUEUED or job.retry_s == 0
                attempt = self._history.attempt_of(job.body)
                if attempt is not None and attempt.retry_s > 0 and 0 < attempt.ack_replied_ms < now_ms - CLEANUP_MS:
                    self._history.violate(
                        now_ms,
                        f"job {attempt.number}, acknowledged at {attempt.ack_replied_ms}, is still known to "
                        f"{member.number} in state {job.state}",
                    )
        twice = [job_id for job_id, count in queued.items() if count > 1]
        self._twice = {job_id: self._twice.get(job_id, now_ms) for job_id in twice}
        for job_id, since_ms in self._twice.items():
            if now_ms - since_ms > TWICE_MS:
                self._history.violate(now_ms, f"{job_id!r} is in two places since {since_ms}")


def check_node(member: Member, history: History) -> None:
    """Check the invariants of the memory of a node, which hold at any time."""
    now_ms = member.net.now_ms
    state = member.node.state
    lifecycle = state.lifecycle
    used_bytes = BASE_BYTES + CLIENT_BYTES * len(state.sessions)
    used_bytes += sum(log.used_bytes for log in lifecycle.logs.values())
    queued: Counter[bytes] = Counter()
    leased: Counter[bytes] = Counter()
    unplaced = acked = delayed = 0
    highest = 1
    jobs = lifecycle.table.jobs()
    for job in jobs:
        used_bytes += JOB_BYTES + body_bytes(len(job.body)) + (0 if job.extra is None else job.extra.size_bytes)
        queued[job.queue] += job.state == QUEUED
        leased[job.queue] += phase_of(job) == WITH_WORKER
        acked += job.state == ACKED
        delayed += job.state == ACTIVE and job.flags & DELAYED != 0
        unplaced += job.state == WAIT_REPL
        if job.state != ACKED:
            highest = max(highest, job.repl)
        if job.timer_next is None:
            history.violate(now_ms, f"node {member.number}: nothing wakes {job.id!r}")
        if job.is_dummy and job.state != ACKED:
            history.violate(now_ms, f"node {member.number}: {job.id!r} has no holders")
    if (lifecycle.queued_jobs, lifecycle.replication_counts.highest()) != (queued.total(), highest):
        history.violate(now_ms, f"node {member.number}: what is queued, or the copies asked for, are miscounted")
    if (lifecycle.acked_jobs, lifecycle.queues.delayed_jobs) != (acked, delayed):
        history.violate(now_ms, f"node {member.number}: what is acknowledged, or waits for its delay, is miscounted")
    _, queues = lifecycle.queues.scan(0, 1 << 30)
    for queue in queues:
        used_bytes += queue_bytes(queue.name) + WAIT_BYTES * int(queue.waiting)
        if queue.length != queued.pop(queue.name, 0):
            history.violate(now_ms, f"node {member.number}: queue {queue.name!r} has not the jobs that are queued")
        if queue.leased != leased.pop(queue.name, 0):
            history.violate(now_ms, f"node {member.number}: queue {queue.name!r} miscounts the jobs of workers")
    if any(queued.values()) or any(leased.values()):
        history.violate(now_ms, f"node {member.number}: jobs are queued in no queue, or workers have jobs of no queue")
    if len(jobs) != lifecycle.table.count:
        history.violate(now_ms, f"node {member.number}: the job table miscounts")
    used_bytes += lifecycle.keys.count * KEY_BYTES
    used_bytes += lifecycle.records.used_bytes + WATCH_BYTES * len(lifecycle.watched)
    used_bytes += WAIT_BYTES * sum(len(pattern.waiters) for pattern in lifecycle.patterns.live)
    held = lifecycle.held
    used_bytes += PARENT_BYTES * len(held.parents) + CHILD_BYTES * (len(held.jobs) - len(held.fresh) + len(held.gone))
    if used_bytes != lifecycle.memory.used_bytes:
        wrong_bytes = lifecycle.memory.used_bytes - used_bytes
        history.violate(now_ms, f"node {member.number}: the memory count is {wrong_bytes} bytes wrong")
    waits = len(replication_of(state).waits)
    moves = sum(
        move.successor.state == WAIT_REPL and lifecycle.table.get(move.successor.id) is move.successor
        for move in moves_of(state).moving.moves.values()
    )
    if unplaced != waits + moves:
        history.violate(now_ms, f"node {member.number}: {unplaced} jobs wait for copies, but {waits} clients")
    if unplaced != lifecycle.unplaced_jobs:
        history.violate(now_ms, f"node {member.number}: the count of jobs that wait for copies is wrong")


def check_logs(member: Member, history: History) -> None:
    """Check that the log of a node has no bug report."""
    for _, text in member.host.log_lines:
        if "BUG" in text:
            history.violate(member.net.now_ms, f"node {member.number} logged: {text}")


def leftovers(cluster: Cluster) -> int:
    """How many jobs the nodes still know, including acknowledgements."""
    return sum(member.node.state.lifecycle.table.count for member in cluster.members if member.alive)


def check_end(cluster: Cluster, history: History) -> None:
    """Check what must hold some time after all faults are healed."""
    now_ms = cluster.network.now_ms
    for member in cluster.members:
        for job in member.node.state.lifecycle.table.jobs():
            attempt = history.attempt_of(job.body)
            number = attempt.number if attempt else "?"
            history.violate(now_ms, f"node {member.number} still has {job.id!r} ({number}) in state {job.state}")
        check_logs(member, history)
    if not cluster.is_whole():
        for member in cluster.members:
            nodes = encode_view(member)
            history.violate(now_ms, f"node {member.number} does not see all others: {nodes}")
    for attempt in history.attempts:
        check_attempt(attempt, history, now_ms)


def encode_view(member: Member) -> str:
    """CLUSTER NODES in one line; a member that does not serve clients has none to show."""
    if not member.serving:
        return "it serves no clients"
    return str(member.admin.call("CLUSTER", "NODES"))


def check_attempt(attempt: Attempt, history: History, now_ms: int) -> None:
    """Check the guarantees for the producer and the consumers of a job."""
    number = attempt.number
    _check_refused(attempt, history)
    for delivery in attempt.deliveries:
        if attempt.job_id is not None and delivery.job_id != attempt.job_id:
            history.violate(delivery.at_ms, f"job {number} was delivered as {delivery.job_id!r}")
        if delivery.at_ms > attempt.expires_ms + LATE_MS:
            late_ms = delivery.at_ms - attempt.expires_ms
            history.violate(delivery.at_ms, f"job {number} was delivered {late_ms} ms after its end")
    if attempt.retry_s == 0 and len(attempt.deliveries) > 1 and not _loaded_outdated_file(attempt, history):
        times = [(delivery.at_ms, delivery.member) for delivery in attempt.deliveries]
        history.violate(now_ms, f"job {number}, at most once, was delivered at {times}")
    _check_kept(attempt, history, now_ms)
    if history.lasting:
        check_no_return(attempt, history)
        _check_ended(attempt, history)
    if not history.faulty:
        _check_no_repetition(attempt, history)


def _loaded_outdated_file(attempt: Attempt, history: History) -> bool:
    """Whether a node loaded a file, between two deliveries, that was damaged or was switched off at the first one."""
    first, second = attempt.deliveries[:2]
    return any(
        setback.outdated and setback.since_ms <= first.at_ms and first.at_ms <= setback.at_ms <= second.at_ms
        for setbacks in history.setbacks.values()
        for setback in setbacks
    )


def _check_kept(attempt: Attempt, history: History, now_ms: int) -> None:
    """An added job is delivered until it is acknowledged, unless too many holders failed.

    An at-most-once job may be lost between two nodes if there are faults.
    """
    if attempt.job_id is None or attempt.acks_sent_ms or attempt.expires_ms <= now_ms:
        return
    if attempt.retry_s == 0 and (attempt.deliveries or history.faulty):
        return
    failed = history.failed_holders(attempt)
    if failed < attempt.promised:
        fate = f"delivered {len(attempt.deliveries)} times" if attempt.deliveries else "never delivered"
        history.violate(
            now_ms,
            f"job {attempt.number} ({attempt.job_id!r}), added at {attempt.added_ms}, retry {attempt.retry_s} is lost: "
            f"{fate}, {failed} of holders {attempt.holders} failed",
        )


def note_met(cluster: Cluster, history: History) -> None:
    """Note when all nodes are connected after healing, and which acknowledgements their nodes still know then."""
    if not history.healed_ms or history.met_ms or not cluster.is_whole():
        return
    history.met_ms = cluster.network.now_ms
    for attempt in history.attempts:
        member, downs = attempt.ack_kept_by
        acked_ms = attempt.ack_replied_ms
        lost = any(history.is_set_back(one, acked_ms, history.met_ms) for one in history.setbacks)
        if attempt.retry_s > 0 and member and 0 < acked_ms < history.healed_ms and not lost:
            attempt.must_end = len(cluster.members[member - 1].past_counters) == downs


def _check_ended(attempt: Attempt, history: History) -> None:
    """A job that was acknowledged at a holder that has not gone down is not delivered once all nodes have met."""
    if not attempt.must_end:
        return
    history.rare["acknowledgement known when all nodes met"] += 1
    for delivery in attempt.deliveries:
        if delivery.at_ms > history.met_ms + MET_MS:
            history.violate(
                delivery.at_ms,
                f"job {attempt.number}, acknowledged at {attempt.ack_replied_ms} by {attempt.ack_kept_by[0]}, was "
                f"delivered by {delivery.member} after all nodes had met",
            )


def _check_refused(attempt: Attempt, history: History) -> None:
    """A refused job (NOREPL) is deleted again, unless the messages that delete it are lost."""
    if attempt.refused_ms and not history.lossy and attempt.timeout_ms < attempt.retry_s * 1000 - EARLY_MS:
        for delivery in attempt.deliveries:
            history.violate(delivery.at_ms, f"job {attempt.number} was delivered, but refused at {attempt.refused_ms}")


def _check_no_repetition(attempt: Attempt, history: History) -> None:
    """Without faults, a job is delivered again only if its worker returned it or was too slow.

    Two holders may then queue it at the same moment: that is the price of at-least-once delivery.
    """
    for place, delivery in enumerate(attempt.deliveries):
        if place > 0:
            before = attempt.deliveries[place - 1]
            by_timers = place > 1 or attempt.delay_s > 0 or history.distance_ms > 0
            tied = by_timers and _tied(before, delivery, history)
            if not tied and not _excused(attempt, before, delivery, history):
                history.violate(
                    delivery.at_ms,
                    f"job {attempt.number} (retry {attempt.retry_s}), delivered by {before.member} at {before.at_ms}, "
                    f"was delivered again by {delivery.member}, acknowledged at {attempt.acks_sent_ms}",
                )
        # A pause may meet the end of a delay, and a far node may ask about a job that travels. A node that was killed
        # does not know whether it has delivered its jobs.
        crashes = sum(attempt.at_ms <= at_ms <= delivery.at_ms for at_ms in history.killed_ms.values())
        if delivery.counted > 2 * place + crashes and attempt.delay_s == 0 and history.distance_ms == 0:
            history.violate(
                delivery.at_ms,
                f"job {attempt.number} was queued again {delivery.counted} times, delivered {place} times",
            )


def _tied(before: Delivery, after: Delivery, history: History) -> bool:
    """Whether two holders may have requeued the job before they learned of each other."""
    window_ms = TIE_MS + 2 * history.distance_ms
    if history.distance_ms > 0:
        window_ms += TRAVEL_MS
    return after.at_ms - before.at_ms <= window_ms


def _excused(attempt: Attempt, before: Delivery, after: Delivery, history: History) -> bool:
    """Whether the worker returned the job, or neither acknowledged nor extended it in time.

    The retry time counts from the delivery, minus the time in the queue if that was less than an eighth of it.
    """
    if any(before.at_ms <= at_ms <= after.at_ms for at_ms in attempt.nacks_ms):
        return True
    known_ms = after.at_ms - 2 - 2 * history.distance_ms - history.hold_ms
    held_ms = after.at_ms - max([before.at_ms, *[at_ms for at_ms in attempt.works_ms if at_ms < known_ms]])
    acknowledged = any(at_ms < known_ms for at_ms in attempt.acks_sent_ms)
    return held_ms >= attempt.retry_s * SPENT_MS_PER_S - EARLY_MS and not acknowledged
