"""Jobs that move between ordered queues and others: the same job, as the machine has it and as the table of jobs does.

A move makes a successor as moves of other jobs do (`moves.successor`), with an ID that is derived from the old one. In
a queue of jobs the successor has that ID. In an ordered queue IDs say where a job is in the log; there the derived ID
is the key of the ADD, so a repeated move adds one job.

A job keeps what only the other type knows: the group key as an attribute, and other attributes as EXTRA of the ADD.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.attributes import (
    ATTEMPTS,
    CLAIM,
    DEAD,
    GROUP,
    META,
    MOVES,
    NAMED,
    ORIGIN_ID,
    ORIGIN_QUEUE,
    REASON,
    RETAIN,
    CorruptAttributes,
    i32_value,
    i64_value,
    of,
    u32_value,
    unpack_block,
)
from disqued.core.jobs.job import CTIMES_PER_MS, MAX_COUNTER, Job
from disqued.moves.deadletters import reason_of
from disqued.moves.successor import life_s, make, successor_id
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.jobids import index_of
from disqued.orderedqueue.add import MOST_CLAIM, Add, add_head
from disqued.orderedqueue.effects import EXPIRED, LIMIT, MOVED, REJECTED, Move

KEY_WINDOW_S: Final = 3600
"""For how long an ordered queue knows the keys of successors."""
WHY: Final = {int(LIMIT): "limit", int(REJECTED): "rejected", int(EXPIRED): "expired"}
"""How counters name what ended a job."""
_KNOWN: Final = (META, RETAIN, CLAIM, ORIGIN_ID, ORIGIN_QUEUE, REASON, MOVES, ATTEMPTS, NAMED, DEAD, GROUP)
"""Attributes that an ADD has fields for."""


def job_of(queue: OrderedQueue, index: i64, created_ms: i64, data: bytes, move: Move | None) -> Job:
    """The job that the entry `index` added, as the table of jobs would have it; counters and claim come from a move."""
    add = add_head(data)
    values = _extra_of(add)
    if add.meta:
        values[META] = add.meta
    if add.retain_s > 0:
        values[RETAIN] = u32_value(int(add.retain_s))
    if add.group:
        values[GROUP] = add.group
    if add.origin_id:
        values[ORIGIN_ID] = add.origin_id
    if add.origin_queue:
        values[ORIGIN_QUEUE] = add.origin_queue
    if add.moves > 0:
        values[MOVES] = i32_value(int(add.moves))
    if add.dead_since_ms > 0:
        values[DEAD] = i64_value(int(add.dead_since_ms))
    reason = add.reason if move is None or not move.reason else move.reason
    if reason:
        values[REASON] = reason
    claim: i64 = add.claim if move is None else max(move.claim, add.claim)
    if claim > 0:
        values[CLAIM] = i64_value(int(claim))
    job_id = queue.job_id(index, add.ttl_s, add.retry_s > 0)
    copies = len(queue.replicas) if add.retry_s > 0 else 1
    ctime: i64 = created_ms * CTIMES_PER_MS
    job = Job(
        job_id, queue.name, data[add.body_at :], ctime, created_ms // 1000 + add.ttl_s, 0, add.retry_s, int(copies)
    )
    job.extra = of(values)
    if move is not None:
        job.nacks = int(min(move.nacks, MAX_COUNTER))
        job.additional_deliveries = int(min(move.additional, MAX_COUNTER))
    return job


def _extra_of(add: Add) -> dict[int, bytes]:
    """The attributes that an ADD carries for the table of jobs."""
    if not add.extra:
        return {}
    try:
        return unpack_block(add.extra, 0, len(add.extra)).values()
    except CorruptAttributes:
        return {}


def successor_of(old: Job, move: Move, now_ms: i64, ctime: i64) -> Job:
    """The successor of a job that is on its way to another queue."""
    dead = move.why != MOVED
    successor = make(
        old,
        move.target,
        ctime,
        now_ms,
        dead=dead,
        reason=reason_of(old, WHY[int(move.why)]) if dead else b"",
        lives_s=move.dead_ttl_s if dead else life_s(old),
        keep_counters=move.keeps_counters,
    )
    while index_of(successor.id) != 0:  # it must not look like the ID of a job of an ordered queue
        successor.id = successor_id(successor.id, move.target, 0)
    return successor


def add_for(job: Job, key: bytes, now_ms: i64, *, adopted: bool = False) -> bytes:
    """The ADD that adds a successor to an ordered queue under a key; `adopted`: a job itself, which then has moved."""
    add = Add(job.retry_s, max(job.expire_at_s - now_ms // 1000, 1))
    add.key = key
    add.window_s = KEY_WINDOW_S
    add.nacks = i64(job.nacks)
    add.additional = i64(job.additional_deliveries)
    extra = job.extra
    values = {} if extra is None else extra.values()
    add.meta = values.get(META, b"")
    add.group = values.get(GROUP, b"")
    add.reason = values.get(REASON, b"")
    add.origin_id = values.get(ORIGIN_ID, b"")
    add.origin_queue = values.get(ORIGIN_QUEUE, b"")
    if extra is not None:
        add.retain_s = extra.number(RETAIN) & 0xFFFFFFFF
        add.moves = max(extra.number(MOVES), 0)
        add.attempts = max(extra.number(ATTEMPTS), 0)
        add.dead_since_ms = max(extra.number(DEAD), 0)
        add.claim = min(max(extra.number(CLAIM), 0), MOST_CLAIM)
    if adopted:
        add.origin_id = add.origin_id or job.id
        add.moves += 1
    rest = of({tag: value for tag, value in values.items() if tag not in _KNOWN})
    if rest is not None:
        add.extra = rest.packed
    return add.encode(job.body)
