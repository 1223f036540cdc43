"""Questions about an ordered queue, which the leader answers from its machine: QLEN, QSTAT, QPEEK, SHOW and PAUSE.

A question is the words of the command, each behind its length (4 bytes). The answer is the reply to the client in
RESP. The bodies of jobs are in the log: those that are not in memory are read first (`missing`), and then the question
is asked again.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disqued.config.glob import Glob
from disqued.core.jobs.attributes import CLAIM, NOTE, REASON, changed, described
from disqued.errors import CommandSyntaxError
from disqued.ordered.catalog import OrderedQueue
from disqued.ordered.delivered import Delivered
from disqued.ordered.deliverypayload import pack_delivery
from disqued.ordered.jobids import index_of
from disqued.ordered.successors import job_of
from disqued.orderedqueue.add import add_head
from disqued.orderedqueue.effects import Assigned
from disqued.orderedqueue.job import DELAYED, LEASED, MOVING, READY, Job
from disqued.orderedqueue.machine import Machine
from disqued.raft.entry import Entry
from disqued.resp.integers import require_integer
from disqued.resp.writer import NULL_BULK, array_header, bulk, integer

_LENGTH: Final = struct.Struct(">I")
MOST_PEEKED: Final = 1000
MOST_REDRIVEN: Final = 500
"""How many jobs REDRIVE looks at in one round."""
PAUSES: Final = (b"none", b"in", b"out", b"all")
_STATES: Final = {int(READY): b"queued", int(LEASED): b"active", int(DELAYED): b"delayed", int(MOVING): b"moving"}


def pack_question(words: list[bytes]) -> bytes:
    """The words of a command as a question."""
    return b"".join([_LENGTH.pack(len(word)) + word for word in words])


def unpack_question(data: bytes) -> list[bytes]:
    """The words of a question; none if it is malformed."""
    words: list[bytes] = []
    at = 0
    while at + _LENGTH.size <= len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        words.append(data[at : at + size])
        at += size
    return words if at == len(data) else []


def _claim(job: Job) -> int:
    return int(job.claim)


class Reading:
    """Answers the questions about one queue."""

    def __init__(self, queue: OrderedQueue, machine: Machine, entries: dict[int, Entry], now_ms: i64) -> None:
        self._queue = queue
        self._machine = machine
        self._entries = entries
        """Entries that were read for this question."""
        self._now_ms: i64 = now_ms
        self.missing: list[int] = []
        """Indexes of entries that must be read first."""
        self.lag = 0
        """How many entries the replica that is furthest behind has not confirmed."""

    def answer(self, words: list[bytes]) -> bytes:
        """The reply. It is of no use if `missing` is not empty. Raises ReplyError."""
        name = words[0].lower() if words else b""
        if name == b"qlen":
            return integer(int(self._machine.length))
        if name == b"unfinished":
            return integer(int(self._machine.count))
        if name == b"qstat":
            return self._qstat()
        if name == b"qpeek" and len(words) == 3:
            return self._qpeek(require_integer(words[2]))
        if name == b"show" and len(words) == 2:
            return self._show(words[1])
        if name == b"leases" and len(words) == 3:
            return self._leases(words[1], require_integer(words[2]))
        if name == b"index":
            return integer(int(self._machine.index))
        if name == b"qcount":
            return self._qcount()
        if name == b"redrive" and len(words) == 7:
            return self._redrive([require_integer(word) for word in words[1:5]], words[5], words[6])
        if name == b"moving":
            return integer(sum(self._is_moving(require_integer(word)) for word in words[1:]))
        if name == b"entry" and len(words) == 2:
            return self._entry(require_integer(words[1]))
        if name == b"pause":
            return b"+" + PAUSES[int(self._machine.paused)] + b"\r\n"
        raise CommandSyntaxError

    def _leases(self, consumer: bytes, since: i64) -> bytes:
        """The jobs that a consumer has by claims greater than `since`, as in a DELIVER."""
        parts: list[bytes] = []
        for job in sorted(self._machine.leases(consumer), key=_claim):
            if job.claim <= since:
                continue
            entry = self._entries.get(int(job.index))
            if entry is None:
                self.missing.append(int(job.index))
                continue
            assigned = Assigned(job.index, job.claim, consumer, job.until_ms, job.nacks, job.additional)
            part = pack_delivery(
                int(self._queue.group), consumer, 0, Delivered(assigned), int(self._now_ms), entry.data
            )
            parts.append(part)
        self.missing.sort()
        return b"".join(parts)

    def _entry(self, index: int) -> bytes:
        """The entry that added a job; empty if the job has ended."""
        if not self._machine.has(index):
            return b""
        entry = self._entries.get(index)
        if entry is None:
            self.missing.append(index)
            return b""
        return entry.data

    def _is_moving(self, index: int) -> bool:
        """Whether a job is on its way to another queue."""
        job = self._machine.job(index)
        return job is not None and job.state == MOVING

    def _redrive(self, numbers: list[int], target: bytes, reason: bytes) -> bytes:
        """The next waiting jobs that REDRIVE moves, with their targets.

        The words are the index of the last job that was looked at, 0 if there are no more, the number of jobs without a
        target, then index and target of each.
        """
        after, last, wanted, before_ms = numbers
        glob = Glob(reason)
        found: list[bytes] = []
        failed = 0
        indexes = [index for index in self._machine.peek(MOST_REDRIVEN, after) if index <= last]
        for index in indexes:
            if len(found) == 2 * wanted:
                break
            after = index
            entry = self._entries.get(index)
            job = self._machine.job(index)
            if entry is None or job is None:
                self.missing.append(index)
                continue
            add = add_head(entry.data)
            since_ms = add.dead_since_ms if add.dead_since_ms > 0 else job.created_ms
            if (before_ms > 0 and since_ms > before_ms) or (reason and not glob.matches(job.reason or add.reason)):
                continue
            to = target or add.origin_queue
            if not to or to == self._queue.name:
                failed += 1
                continue
            found += (b"%d" % index, to)
        is_over = len(indexes) < MOST_REDRIVEN and (not indexes or after == indexes[-1])
        return pack_question([b"0" if is_over else b"%d" % after, b"%d" % failed, *found])

    def _qcount(self) -> bytes:
        machine = self._machine
        replicas = len(self._queue.replicas)
        fields: list[tuple[bytes, int]] = [
            (b"queued", int(machine.length - machine.dead)),
            (b"leased", int(machine.leased)),
            (b"delayed", int(machine.delayed)),
            (b"dead", int(machine.dead)),
            (b"held", 0),
            (b"records", int(machine.record_count)),
            (b"nodes-answered", replicas),
            (b"nodes-known", replicas),
        ]
        return array_header(2 * len(fields)) + b"".join([bulk(name) + integer(value) for name, value in fields])

    def _qstat(self) -> bytes:
        machine = self._machine
        oldest_ms = machine.oldest_ms()
        fields: list[tuple[bytes, bytes]] = [
            (b"name", bulk(self._queue.name)),
            (b"type", bulk(b"ordered")),
            (b"len", integer(int(machine.length))),
            (b"idle", integer(int(max(self._now_ms - machine.now_ms, 0) // 1000))),
            (b"blocked", integer(int(self._blocked()))),
            (b"import-from", array_header(0)),
            (b"import-rate", integer(0)),
            (b"jobs-in", integer(int(machine.added))),
            (b"jobs-out", integer(int(machine.delivered))),
            (b"pause", bulk(PAUSES[int(machine.paused)])),
            (b"leased", integer(int(machine.leased))),
            (b"delayed", integer(int(machine.delayed))),
            (b"dead", integer(int(machine.dead))),
            (b"moving", integer(len(machine.moves()))),
            (b"oldest-ms", integer(int(max(self._now_ms - oldest_ms, 0)) if oldest_ms > 0 else 0)),
            (b"consumers", integer(len(machine.consumers()))),
            (b"index", integer(int(machine.index))),
            (b"lag", integer(self.lag)),
        ]
        return array_header(2 * len(fields)) + b"".join([bulk(name) + value for name, value in fields])

    def _blocked(self) -> i64:
        """How many more jobs the clients that wait would take."""
        blocked: i64 = 0
        for consumer in self._machine.consumers():
            blocked += consumer.credit
        return blocked

    def _qpeek(self, count: int) -> bytes:
        wanted = min(abs(count), MOST_PEEKED)
        indexes = self._machine.peek(wanted if count >= 0 else -wanted)
        parts = [array_header(len(indexes))]
        for index in indexes:
            entry = self._entries.get(index)
            if entry is None:
                self.missing.append(index)
                continue
            add = add_head(entry.data)
            job_id = self._queue.job_id(index, add.ttl_s, add.retry_s > 0)
            parts += (b"*3\r\n", bulk(self._queue.name), bulk(job_id), bulk(entry.data[add.body_at :]))
        return b"".join(parts)

    def _show(self, job_id: bytes) -> bytes:
        index = index_of(job_id)
        job = self._machine.job(index)
        if job is None:
            return NULL_BULK
        entry = self._entries.get(int(index))
        if entry is None:
            self.missing.append(int(index))
            return b""
        return self._describe(job_id, job, entry)

    def _describe(self, job_id: bytes, job: Job, entry: Entry) -> bytes:
        add = add_head(entry.data)
        left_ms = max(job.expires_ms - self._now_ms, 0)
        until_ms = max(job.until_ms - self._now_ms, 0) if job.until_ms > 0 else -1
        until = NULL_BULK if until_ms < 0 else integer(int(until_ms))
        consumer = job.consumer
        nodes = [replica[:40] for replica in self._queue.replicas]
        fields: list[tuple[bytes, bytes]] = [
            (b"id", bulk(job_id)),
            (b"queue", bulk(self._queue.name)),
            (b"state", bulk(_STATES[int(job.state)])),
            (b"repl", integer(len(nodes))),
            (b"ttl", integer(int(left_ms // 1000))),
            (b"ctime", integer(int(job.created_ms) * 1_000_000)),
            (b"delay", integer(int(add.delay_ms // 1000))),
            (b"retry", integer(int(add.retry_s))),
            (b"nacks", integer(int(job.nacks))),
            (b"additional-deliveries", integer(int(job.additional))),
            (b"nodes-delivered", array_header(len(nodes)) + b"".join([bulk(node) for node in nodes])),
            (b"nodes-confirmed", array_header(0)),
            (b"next-requeue-within", until),
            (b"next-awake-within", until),
            (b"body", bulk(entry.data[add.body_at :])),
            (b"index", integer(int(job.index))),
            (b"claim", integer(int(job.claim))),
            (b"consumer", bulk(b"" if consumer is None else consumer.name)),
        ]
        changes: dict[int, bytes | None] = {CLAIM: None}
        if job.reason:
            changes[REASON] = job.reason
        if job.note:
            changes[NOTE] = job.note
        extra = changed(job_of(self._queue, job.index, job.created_ms, entry.data, None).extra, changes)
        if extra is not None:
            for name, value in described(extra):
                fields.append((name.encode(), bulk(value) if isinstance(value, bytes) else integer(value)))
        return array_header(2 * len(fields)) + b"".join([bulk(name) + value for name, value in fields])
