"""Fetches jobs by ID, for the tasks of a stream. A replayed batch gets the same rows this way.

SHOW changes nothing, so any node can be asked, any number of times. The fetcher asks the node that granted the lease
first, then every other node. Jobs move between nodes, so a job that no node knows is looked up again. While a member
that may know the job is unreachable, the fetcher retries until `giveUpAfter` has passed. Only then is the job lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from disqued.client import ConnectionFailed
from pyspark_disque.clock import RETRY_PAUSE_S, Clock, RetryDeadline
from pyspark_disque.columns import Row
from pyspark_disque.jobreader import JobReader, by_preference, execute_all
from pyspark_disque.offsets import JobGroup
from pyspark_disque.options import Options

LOG: Final = logging.getLogger("pyspark_disque")
JOBS_PER_SLICE: Final = 100
"""The number of jobs in memory at a time, in addition to the rows being collected."""
ATTEMPTS: Final = 3
"""A job that no node knows after this many attempts is lost."""
MAX_NAMED: Final = 5
"""The number of lost jobs that a message names."""


class JobsLost(RuntimeError):
    """Jobs of a batch no longer exist, and `failOnDataLoss` is true."""


class JobFetcher:
    """Fetches jobs. For use by one thread."""

    def __init__(self, options: Options, reader: JobReader, clock: Clock) -> None:
        self._options = options
        self._reader = reader
        self._clock = clock

    def rows(self, groups: Iterable[JobGroup]) -> Iterator[Row]:
        """Yield a row for each job, in the given order.

        Raises:
            JobsLost: some jobs no longer exist.
            ConnectionFailed: no node can be reached.
        """
        for group in groups:
            for first in range(0, len(group.ids), JOBS_PER_SLICE):
                part = group._replace(ids=group.ids[first : first + JOBS_PER_SLICE])
                found = self._find(part)
                lost = [job_id for job_id in part.ids if job_id not in found]
                if lost:
                    self._report(lost)
                yield from (found[job_id] for job_id in part.ids if job_id in found)

    def _find(self, jobs: JobGroup) -> dict[bytes, Row]:
        """Return the rows of the jobs that exist, by job ID."""
        found: dict[bytes, Row] = {}
        deadline = RetryDeadline(self._options.give_up_after_s, self._clock)
        attempts = 0
        while attempts < ATTEMPTS:
            try:
                all_answered = self._ask_nodes(jobs, found)
            except ConnectionFailed as error:
                deadline.retry_or_raise(error)
                continue
            if len(found) == len(jobs.ids) or (not all_answered and deadline.note_failure()):
                break
            attempts += all_answered
            if attempts < ATTEMPTS:
                self._clock.sleep(RETRY_PAUSE_S)
        return found

    def _ask_nodes(self, jobs: JobGroup, found: dict[bytes, Row]) -> bool:
        """Add the rows of the jobs to `found`, asking one node after another.

        Return whether all the nodes that had to be asked answered.
        """
        all_answered = True
        for member in by_preference(self._reader.members(), jobs.node):
            missing = [job_id for job_id in jobs.ids if job_id not in found]
            if not missing:
                break
            calls = [("SHOW", job_id) for job_id in missing]
            replies = self._reader.call(member, partial(execute_all, calls=calls))
            if replies is None:
                all_answered = False
                continue
            rows = ((job_id, _row(jobs, job_id, flat)) for job_id, flat in zip(missing, replies, strict=True))
            found.update((job_id, row) for job_id, row in rows if row is not None)
        return all_answered

    def _report(self, lost: Sequence[bytes]) -> None:
        names = b", ".join(lost[:MAX_NAMED]).decode("ascii")
        names += f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
        unreachable = [m.address for m in self._reader.members() if self._reader.unreachable_for_s(m) > 0]
        where = f"; unreachable nodes: {', '.join(unreachable)}" if unreachable else ""
        text = (
            f"{len(lost)} jobs of this batch no longer exist: {names}{where}. Since the batch began, another client "
            "acknowledged or deleted them, or their ttl expired"
        )
        if self._options.fail_on_data_loss:
            raise JobsLost(f'{text}. To continue without them, set .option("failOnDataLoss", "false")')
        LOG.warning("%s; continuing without them because failOnDataLoss is false", text)


def _row(group: JobGroup, job_id: bytes, flat: Any) -> Row | None:
    """Return the row of a job from its SHOW reply; None if the node knows nothing of it or only its acknowledgement."""
    if flat is None:
        return None
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    if fields[b"body"] is None or fields[b"queue"] is None:
        return None
    return Row.of(group.queue, job_id.decode("ascii"), group.node, fields)
