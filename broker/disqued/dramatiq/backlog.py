"""Whether a queue has messages that are not finished, looked up now and at all nodes.

QCOUNT counts over the cluster, but its figures may be a second old. So each node is asked for what it knows at once.
"""

from __future__ import annotations

import time
from typing import Final

from disqued.client import DisqueError, calls
from disqued.client.session import ONE_ATTEMPT, Session
from disqued.client.transport import run_now
from disqued.dramatiq.members import Members

_COUNTED_AFTER_S: Final = 1.1
"""This long after the beginning, QCOUNT tells nothing that is older than it."""


class Backlog:
    """The unfinished messages of one queue, from the time at which this is made."""

    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._queue = queue
        self._members = Members(session)
        self._began_s = time.monotonic()

    def close(self) -> None:
        """Close the connections."""
        self._members.close()

    def is_empty(self) -> bool:
        """Whether no message is due, delayed or with a worker, on any node. Dead letters do not count.

        It looks twice, because a message may travel from one node to another meanwhile.

        Raises:
            DisqueError: no node replied.
        """
        return self._is_empty_now() and self._is_empty_now()

    def _is_empty_now(self) -> bool:
        for session in self._members.sessions().values():
            if session is None:
                return self._counts_nothing()
            try:
                stats = run_now(session.perform(calls.qstat(self._queue), ONE_ATTEMPT))
            except DisqueError:
                return False  # it may have failed, and HELLO will say so
            if stats is not None and stats.length - stats.dead + stats.leased + stats.delayed + stats.held:
                return False
        return True

    def _counts_nothing(self) -> bool:
        """Whether QCOUNT finds nothing: for clusters with nodes that cannot be reached from here."""
        count = run_now(self._session.perform(calls.qcount(self._queue)))
        found = count.queued + count.leased + count.delayed + count.held
        return found == 0 and time.monotonic() - self._began_s > _COUNTED_AFTER_S
