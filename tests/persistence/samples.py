"""Append-only files for tests: random jobs, records of every kind, and the entries that a reader finds in bytes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from disqued.core.cluster.holders import Holders
from disqued.core.fates.fate import DONE, Fate
from disqued.core.fates.stored import store
from disqued.core.jobs.attributes import META, PRIORITY, i32_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED, QUEUED, Job
from disqued.core.lifecycle.records import sealed
from disqued.core.queues.queue import PAUSE_NAMES
from disqued.node import ROOMS
from disqued.persistence.parse import Damage, Entry
from disqued.persistence.reader import EntryReader
from disqued.persistence.records import forget, keep
from disqued.resp.writer import request

VECTORS = Path(__file__).parents[1] / "vectors" / "aof"
"""Files that the original wrote, with their contents."""
NODE_IDS = (b"5ca1ab1e" * 5, b"0ddba11a" * 5, b"cafef00d" * 5)
BORN_MS = 1_800_000_000_000
ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

Item = tuple[int, int, tuple[object, ...]]
"""Offset of the beginning, offset of the end, and contents."""


def job_id(chance: random.Random) -> bytes:
    return b"D-5ca1ab1e-" + bytes(chance.choices(ALPHABET, k=24)) + b"-05a1"


def make_job(chance: random.Random, body: bytes | None = None, *, with_attributes: bool = False) -> Job:
    """Return a random job with a unique body."""
    job = Job(
        job_id(chance),
        chance.choice((b"mail", b"images", b"\x00\xff\r\n")),
        chance.randbytes(chance.choice((8, 12, 90, 700))) if body is None else body,
        (BORN_MS + chance.randrange(10**6)) * 10**6,
        BORN_MS // 1000 + 86_400,
        chance.choice((0, 0, 30)),
        chance.choice((0, 300)),
        chance.choice((1, 2, 3)),
    )
    job.state = chance.choice((ACTIVE, QUEUED))
    job.flags = chance.choice((0, BCAST_QUEUED, BCAST_QUEUED | BCAST_WILLQUEUE, BCAST_QUEUED | DELIVERED))
    job.nacks = chance.randrange(3)
    job.additional_deliveries = chance.randrange(3)
    job.delivered = NODE_IDS[: job.repl]
    if with_attributes:
        job.extra = attributes_of({PRIORITY: i32_value(chance.randrange(-9, 9)), META: chance.randbytes(20)})
    return job


def kept(job: Job, *, with_sum: bool = True) -> bytes:
    """Return the record of a job."""
    return keep(job, Holders(), NODE_IDS[0], int(job.state), with_sum=with_sum)


def paused(queue: bytes, word: bytes) -> bytes:
    """Return the record of a pause."""
    return b"*3\r\n$5\r\nPAUSE\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(queue), queue, len(word), word)


def postponed(job: Job, at_ms: int) -> bytes:
    """Return the record of a job that a worker gave back for later."""
    return request((b"POSTPONE", sealed(b"POSTPONE", b"%b %d 1 1" % (job.id, at_ms))))


def claimed(job: Job, claim: int) -> bytes:
    """Return the record of a claim."""
    return request((b"CLAIM", sealed(b"CLAIM", b"%b %d" % (job.id, claim))))


def recorded(job: Job, outcome: int = DONE, result: bytes | None = b"42") -> bytes:
    """Return the record of a job that has ended."""
    content = store(job.id, job.queue, job.id, Fate(outcome, BORN_MS, 0, 0, None, result), BORN_MS + 3_600_000, 0)
    return request((b"RECORD", sealed(b"RECORD", content)))


def make_records(seed: int, count: int, *, with_sum: bool = True) -> list[bytes]:
    """Return random records: mostly jobs, some deletions of these jobs, and a few pauses."""
    chance = random.Random(seed)
    ids: list[bytes] = []
    records: list[bytes] = []
    while len(records) < count:
        kind = chance.random()
        if kind < 0.75 or not ids:
            job = make_job(chance)
            ids.append(job.id)
            records.append(kept(job, with_sum=with_sum))
        elif kind < 0.95:
            records.append(forget(ids.pop(chance.randrange(len(ids)))))
        else:
            records.append(paused(b"mail", chance.choice(PAUSE_NAMES)))
    return records


def starts(records: Iterable[bytes]) -> list[int]:
    """Return the offset of each record in the file, and the length of the file."""
    return [0, *itertools.accumulate(len(record) for record in records)]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the data in pieces, cut at these offsets."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def read(*pieces: bytes) -> list[Entry | Damage]:
    """Return everything that a reader finds in a file that is fed in these pieces."""
    reader = EntryReader(ROOMS.record_table)
    found: list[Entry | Damage] = []
    for piece in (*pieces, None):
        if piece is None:
            reader.end()
        else:
            reader.feed(piece)
        while (item := reader.next()) is not None:
            found.append(item)
    return found


def items(*pieces: bytes) -> list[Item]:
    """Return the same as `read`, as values that can be compared."""
    return [
        (item.offset, item.end, (*item.words, item.checksum) if isinstance(item, Entry) else (item.kind, item.why))
        for item in read(*pieces)
    ]


def entries(*pieces: bytes) -> list[Entry]:
    return [item for item in read(*pieces) if isinstance(item, Entry)]


def damages(*pieces: bytes) -> list[Damage]:
    return [item for item in read(*pieces) if isinstance(item, Damage)]
