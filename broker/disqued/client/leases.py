"""The jobs a worker has in hand, and when each must be reported as still worked on.

A fetched job goes back to its queue when its retry time passes without an acknowledgement, counted from when it was
queued, not from when it was fetched, and GETJOB tells neither. So the first WORKING comes soon after the fetch; it
sets the clock anew and answers the retry time, and the next ones follow at a fixed share of it.

Pure: the time comes in with each call, in seconds of any monotonic clock. Several threads may share it.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

RENEW_SHARE = 0.55
"""Part of the retry time after which it is renewed: late enough to be rare, early enough for a second attempt."""

TRY_AGAIN_S = 0.25
"""When the renewal could not be delivered."""


@dataclass(slots=True)
class Lease:
    """One job in hand; `due_s` is when to renew it, never (infinity) when that is of no use."""

    due_s: float


class Leases:
    """All jobs in hand, by ID."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def hold(self, job_id: str, due_s: float) -> None:
        """The job was fetched and its first renewal is due then."""
        with self._lock:
            self._leases[job_id] = Lease(due_s)

    def release(self, job_id: str) -> bool:
        """The job is settled; False when it was not in hand any more."""
        with self._lock:
            return self._leases.pop(job_id, None) is not None

    def release_all(self) -> list[str]:
        """Everything that was in hand, the oldest first."""
        with self._lock:
            ids = list(self._leases)
            self._leases.clear()
            return ids

    def due(self, now_s: float) -> list[str]:
        """Which jobs to renew now."""
        with self._lock:
            return [job_id for job_id, lease in self._leases.items() if lease.due_s <= now_s]

    def renewed(self, job_id: str, retry_s: int, now_s: float) -> None:
        """The node has moved the next delivery; at-most-once jobs (`retry_s` 0) need no further renewal."""
        self._set_due(job_id, now_s + RENEW_SHARE * retry_s if retry_s else math.inf)

    def not_renewed(self, job_id: str, now_s: float) -> None:
        """The node could not be asked."""
        self._set_due(job_id, now_s + TRY_AGAIN_S)

    def not_renewable(self, job_id: str) -> None:
        """The job is about to end, or the node will not move its next delivery any more."""
        self._set_due(job_id, math.inf)

    def _set_due(self, job_id: str, due_s: float) -> None:
        with self._lock:
            lease = self._leases.get(job_id)
            if lease is not None:
                lease.due_s = due_s

    def wait_s(self, now_s: float, longest_s: float) -> float:
        """How long nothing is due, at most `longest_s`."""
        with self._lock:
            due_s = min((lease.due_s for lease in self._leases.values()), default=math.inf)
        return min(longest_s, max(0.0, due_s - now_s))
