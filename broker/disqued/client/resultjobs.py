"""Results by key: for frameworks whose tasks have IDs of their own.

A *result job* stands for the result of one key, for example the UUID of a task. Its ID is computed from its queue and
the key, so every process can add, end, read and await it, at any node, whoever was first. No worker gets it: it is
delayed until its life is over. Its progress log has the states on the way (LOGJOB), its end the result (ACKJOB RESULT).

Of several results of one job the nodes keep the one with the greatest claim, and under equal claims the earliest. The
claims that are chosen here let the first final result stand, or without one the last result.
"""

from __future__ import annotations

import math
import time
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final

from disqued.client import adding, calls, fates, progress
from disqued.client.blocking import Client
from disqued.client.calls import Call
from disqued.client.errors import (
    DisqueError,
    JobAcknowledged,
    LogFull,
    NoSuchJob,
    NotReplicated,
    ResponseError,
    ResultTooLong,
    StaleClaim,
)
from disqued.client.nodes import NORMAL_PRIORITY
from disqued.client.transport import run_now
from disqued.client.values import JobId

MOST_RESULT_BYTES: Final = 64 << 10
"""The longest result that nodes keep."""
MOST_KEYS: Final = 1000
"""The most keys that one call can wait for."""
MOST_RETAIN_S: Final = 30 * 86400
"""The longest time for which nodes keep a result."""
LIFE_S: Final = 7 * 86400
"""How long a key without a result is remembered after its first state. It is a part of the ID, so it never changes."""
DEFAULT_RETAIN_S: Final = 86400
_SUFFIX: Final = f"-{LIFE_S // 60 | 1:04x}"
_RETRY_S: Final = 300
_TIMEOUT_MS: Final = 5000
_COUNT_NODES_EVERY_S: Final = 60.0

_RUN_BITS: Final = 16
"""Claims count in these steps: the broker gives a meaning to the lowest 16 bits of a claim."""
_REPLACEABLE: Final = 1 << 60
_FINAL: Final = 1 << 61
_FORGOTTEN: Final = (1 << 62) - (1 << _RUN_BITS)


class ResultJobs:
    """The results that programs keep in a queue, by keys of their own. Threads can share it."""

    def __init__(self, client: Client, queue: str, *, retain_s: int = DEFAULT_RETAIN_S, copies: int = 2) -> None:
        """Configure the access; the first call connects.

        Args:
            client: What connects to the nodes.
            queue: The queue of the result jobs, which nothing else uses. It is a part of what the ID is made of.
            retain_s: For how long the nodes keep a result, at most 30 days. Each process may choose its own time.
            copies: How many nodes must know a result before it counts as stored; fewer if fewer can be reached. With 1,
                storing is several times as fast, and the death of a machine can lose results of its last moment.
        """
        self._session = client._session  # noqa: SLF001 - this is a part of the client
        self._queue = queue
        self._retain_s = retain_s
        self._most_copies = copies
        self._copies = 0
        self._counted_s = -math.inf

    def job_id(self, key: str) -> JobId:
        """Return the ID of the job that stands for the result of a key."""
        queue = self._queue.encode()
        words = len(queue).to_bytes(8, "big") + queue + key.encode()
        middle = b64encode(blake2b(words, digest_size=18, person=b"disque-result").digest()).decode()
        return JobId(f"D-00000000-{middle}{_SUFFIX}")

    def add(self, keys: Sequence[str]) -> list[JobId]:
        """Add the jobs of keys before there is a state, so that other jobs can wait for their ends (`after`)."""
        for adjust in (self._use_another_node, self._count_again, None):
            copies = self._count_copies()
            answers = self._perform([self._add(key, None, copies) for key in keys])
            if adjust is None or not any(map(_may_fit, answers)):
                break
            adjust()
        for answer in answers:
            _raise_error(answer)
        return [self.job_id(key) for key in keys]

    def store(self, key: str, result: bytes, *, final: bool = True, retain_s: int | None = None) -> None:
        """End the job of a key with a result, which must not be empty.

        Of several final results the first one stands. Without `final`, the result is replaced by each later one. When
        the call returns, as many nodes know the result as `copies` says, if so many can be reached.

        Raises:
            ResultTooLong: the result has more than `MOST_RESULT_BYTES`.
            NotReplicated: too few nodes know the result. It may stand nevertheless; store it again.
        """
        if len(result) > MOST_RESULT_BYTES:
            raise ResultTooLong(len(result), MOST_RESULT_BYTES)
        self._end(key, result, _FINAL if final else _REPLACEABLE + _claim_at(time.time() * 1000), retain_s)

    def forget(self, key: str) -> None:
        """Drop the result of a key. Nothing can be stored for it until its job is no longer remembered."""
        self._end(key, b"", _FORGOTTEN, None)

    def log(self, key: str, entry: bytes, *, run: int, seq: int) -> bool:
        """Note a state on the way to the result; False if the nodes did not take it, which the caller may ignore.

        They do not if there is a result or a later run, or if the log is full (`job-log-entries`, `job-log-bytes`).

        Args:
            key: The key.
            entry: The state.
            run: The unix milliseconds when this attempt began to write. A later one wins.
            seq: The number of the entry in this attempt, from 0 on.
        """
        request = progress.logjob(self.job_id(key), entry, claim=_claim_at(run), seq=seq)
        logged: object = NoSuchJob("")
        if seq > 0:
            (logged,) = self._perform([request])
        if isinstance(logged, NoSuchJob):
            added, logged = self._perform([self._add(key, None), request])
            _raise_error(added)
        if isinstance(logged, JobAcknowledged | LogFull | NoSuchJob | StaleClaim):
            return False
        _raise_error(logged)
        return True

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the results of the keys that have one, without waiting."""
        found: dict[str, bytes] = {}
        remaining = iter(keys)
        while names := list(islice(remaining, MOST_KEYS)):
            by_id = {self.job_id(key): key for key in names}
            ends = run_now(self._session.perform(fates.results(list(by_id))))
            found |= {
                by_id[JobId(job_id)]: end.result for job_id, end in ends.items() if end is not None and end.result
            }
        return found

    def latest(self, key: str) -> tuple[bytes, bool] | None:
        """Return the result of a key and True, or its last state and False; None if there is neither."""
        job_id = self.job_id(key)
        end = run_now(self._session.perform(fates.result(job_id)))
        if end is None:
            return None
        if end.outcome != "waiting":
            return (end.result, True) if end.result else None
        try:
            entries = run_now(self._session.perform(progress.showlog(job_id)))
        except NoSuchJob:  # it ended meanwhile, or its node has just gone
            return None
        return (entries[-1].entry, False) if entries else None

    def wait(self, keys: Sequence[str], *, timeout_s: float) -> dict[str, bytes | None]:
        """Wait until a key has a result, and return the results that are there; nothing if the time is over first.

        None stands for a key that will have no result: it was forgotten, or its first state was `LIFE_S` ago.

        Raises:
            ValueError: there are more than `MOST_KEYS` keys, or none.
        """
        if not 0 < len(keys) <= MOST_KEYS:
            raise ValueError(f"wait() takes 1 to {MOST_KEYS} keys, not {len(keys)}")
        by_id = {self.job_id(key): key for key in keys}
        request = fates.wait(list(by_id), any=True, timeout_ms=max(1, math.ceil(timeout_s * 1000)))
        ends = run_now(self._session.perform(request))
        return {by_id[JobId(job_id)]: end.result or None for job_id, end in ends.items()}

    # Adding and ending.

    def _end(self, key: str, result: bytes, claim: int, retain_s: int | None) -> None:
        for is_last in (False, True):
            copies = self._count_copies()
            confirmed = copies if copies > 1 else None
            ended = calls.ack(self.job_id(key), claim=claim, result=result, copies=confirmed, timeout_ms=_TIMEOUT_MS)
            added, acked = self._perform([self._add(key, retain_s), ended])
            if isinstance(acked, StaleClaim):  # a result that wins over this one stands
                return
            if is_last or not (_may_fit(added) or _may_fit(acked)):
                break
            self._count_again()
        _raise_error(added)
        _raise_error(acked)

    def _add(self, key: str, retain_s: int | None, sync: int = 1) -> Call[JobId]:
        """Return the call that adds the job of a key; what follows it may wait for the other nodes instead."""
        kept_s = min(self._retain_s if retain_s is None else retain_s, MOST_RETAIN_S)
        return adding.add(
            self._queue,
            key,
            timeout_ms=_TIMEOUT_MS,
            job_id=self.job_id(key),
            ttl_s=LIFE_S,
            delay_s=LIFE_S - 1,
            retry_s=_RETRY_S,
            retain_s=max(kept_s, 1),
            sync=sync,
        )

    def _count_copies(self) -> int:
        """How many nodes must know something before a call returns: as many as wanted, or as can be reached."""
        now_s = time.monotonic()
        if now_s - self._counted_s > _COUNT_NODES_EVERY_S:
            nodes = run_now(self._session.perform(calls.hello())).nodes
            reachable = sum(node.priority <= NORMAL_PRIORITY for node in nodes)
            self._copies = max(1, min(self._most_copies, reachable))
            self._counted_s = now_s
        return self._copies

    def _use_another_node(self) -> None:
        """The node in use may be cut off from the others: what waits for the results will be added elsewhere."""
        self._session.use_another_node()

    def _count_again(self) -> None:
        """Fewer nodes can be reached than the last time."""
        self._counted_s = -math.inf

    def _perform(self, many: Sequence[Call[object]]) -> list[object]:
        return run_now(self._session.perform_many(many))


def _claim_at(unix_ms: float) -> int:
    return int(unix_ms) << _RUN_BITS


def _may_fit(answer: object) -> bool:
    """Whether the call may succeed with fewer copies."""
    return isinstance(answer, NotReplicated) or (isinstance(answer, ResponseError) and "SYNC must be" in str(answer))


def _raise_error(answer: object) -> None:
    if isinstance(answer, DisqueError):
        raise answer
