"""What a REDRIVE is to do, and the message of the same name about it.

One message asks a node to move some more jobs (GRANT), one reports what it has done (REPORT), one ends the task on the
node that runs it (CANCEL). The payload is a row of words, each as its length in four bytes and its bytes.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus.frame import MAX_NAME_BYTES
from disqued.config.glob import Glob
from disqued.core.jobs.attributes import DEAD, ORIGIN_QUEUE, REASON
from disqued.core.jobs.job import Job

GRANT: Final = b"grant"
REPORT: Final = b"report"
CANCEL: Final = b"cancel"
_KINDS: Final = (GRANT, REPORT, CANCEL)
_WORDS: Final = 10
_LENGTH_BYTES: Final = 4
_MOST_DIGITS: Final = 18
MOST_JOBS: Final = (1 << 31) - 1
"""The highest number of jobs in a message: products of two such numbers are computed."""
MOST_PATTERN_BYTES: Final = 256


class MalformedError(Exception):
    """The payload is not that of a REDRIVE."""


@mypyc_attr(acyclic=True)
class Task:
    """One REDRIVE, as its client asked for it."""

    def __init__(self, queue: bytes, target: bytes, reason: bytes, older_s: int, started_ms: i64) -> None:
        self.queue = queue
        self.target = target
        """Where the jobs go; empty for the queue that each of them comes from."""
        self.reason = reason
        """A glob that the reason of a job must match; empty for any."""
        self._glob = Glob(reason)
        self.older_s = older_s
        """Only jobs that were dead letters for so many seconds."""
        self.started_ms: i64 = started_ms
        """When it began, by the clock of the node that runs it."""

    def takes(self, job: Job) -> bool:
        """Whether a job that was there when the task began is one of those to move."""
        extra = job.extra
        if self.older_s > 0:
            since_ms = extra.number(DEAD) if extra is not None and extra.dead else job.created_ms
            if since_ms > self.started_ms - self.older_s * 1000:
                return False
        if not self.reason:
            return True
        given = None if extra is None else extra.get(REASON)
        return self._glob.matches(given or b"")

    def target_of(self, job: Job) -> bytes:
        """The queue to which a job goes; empty if it does not say where it comes from."""
        if self.target:
            return self.target
        origin = None if job.extra is None else job.extra.get(ORIGIN_QUEUE)
        return origin or b""


@mypyc_attr(acyclic=True)
class RedriveMessage:
    """A REDRIVE between nodes."""

    def __init__(
        self, kind: bytes, task: Task, granted: i64 = 0, moved: i64 = 0, left: i64 = 0, failed: i64 = 0
    ) -> None:
        self.kind = kind
        self.task = task
        self.granted: i64 = granted
        """In a grant, how many more jobs the node may move; in a report, how many it was granted in all."""
        self.moved: i64 = moved
        """How many jobs were moved so far: by the node in a report, by all nodes in a grant."""
        self.left: i64 = left
        """How many jobs may be left to move."""
        self.failed: i64 = failed
        """Jobs without an origin, if no target was given."""

    def pack(self) -> bytes:
        """The payload."""
        task = self.task
        numbers = (task.older_s, task.started_ms, self.granted, self.moved, self.left, self.failed)
        words = [self.kind, task.queue, task.target, task.reason, *[b"%d" % number for number in numbers]]
        return b"".join([len(word).to_bytes(_LENGTH_BYTES, "big") + word for word in words])


def unpack(payload: bytes) -> RedriveMessage:
    """The message in a payload. Raises MalformedError."""
    words: list[bytes] = []
    at = 0
    while at < len(payload):
        end = at + _LENGTH_BYTES + int.from_bytes(payload[at : at + _LENGTH_BYTES], "big")
        if end > len(payload) or len(words) == _WORDS:
            raise MalformedError(f"{len(words)} words, then {len(payload) - at} bytes")
        words.append(payload[at + _LENGTH_BYTES : end])
        at = end
    if len(words) != _WORDS or words[0] not in _KINDS:
        raise MalformedError(f"{len(words)} words")
    numbers: list[int] = []
    for word in words[4:]:
        if not word.isdigit() or len(word) > _MOST_DIGITS:
            raise MalformedError(f"{word[:40]!r} instead of a number")
        numbers.append(int(word))
    if max(numbers[2:]) > MOST_JOBS or max(map(len, words[1:3])) > MAX_NAME_BYTES or len(words[3]) > MOST_PATTERN_BYTES:
        raise MalformedError("numbers or names out of range")
    task = Task(words[1], words[2], words[3], numbers[0], numbers[1])
    return RedriveMessage(words[0], task, numbers[2], numbers[3], numbers[4], numbers[5])
