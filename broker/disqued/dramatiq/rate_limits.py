"""The backend of rate limiters and barriers: counters and events in the cluster.

The value of a counter is the number of jobs in a queue, its *units*, on one node, the home of its key: the one with the
highest hash of key and node, among the nodes of which no failure is known. One node does one thing after the other, so
"add unless there are so many" (ADDJOB MAXLEN) and "take one" (GETJOB) are atomic there. A unit ends by itself when its
time is over. Units have a single copy. When the home of a key dies or leaves, or a new node becomes its home, its
counters begin at zero.

The units of one `add` are numbered from 1, and the highest number is taken first. So whoever takes a unit knows how
many are left, and of two parties at a barrier exactly one takes the last but one.

An event is a result (`ResultJobs`): it has copies, and waiting for it does not poll.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import dramatiq.errors
from dramatiq.rate_limits import RateLimiterBackend

from disqued.client import Client, ConnectionFailed, ConnectionLost, DisqueError, Job, QueueFull, ResultJobs, calls
from disqued.client.adding import add
from disqued.client.calls import Call
from disqued.client.session import Session
from disqued.client.transport import run_now
from disqued.dramatiq.connection import Closing, PerProcess, client_maker, connection_errors
from disqued.dramatiq.members import Members

T = TypeVar("T")

NAMESPACE: Final = "dramatiq-limits"

_EVENT: Final = b"x"
_WAIT_S: Final = 60.0
"""How long one call waits for an event; without a timeout, further ones follow."""
_LOOK_AGAIN_S: Final = 5.0
"""How often to ask which nodes there are."""
_ATTEMPTS: Final = 8
_AGAIN_S: Final = 0.25
"""Between two attempts to reach the home of a key: the cluster notices meanwhile that it is down."""
_GRACE_MS: Final = 1000
"""So much later a node ends a job than its time to live says. Seconds are whole, so a window is never longer."""
_UNNUMBERED: Final = 2**31 - 1
"""The priority of units that `incr` added: they are taken before those of `add`."""


class _Homes:
    """The home of each key, as this process sees it."""

    def __init__(self, client: Client) -> None:
        self._members = Members(client.session())
        self._lock = threading.Lock()
        self._sessions: dict[str, Session | None] = {}
        self._until_s = 0.0

    def home(self, key: str) -> Session:
        """Return the session for the home of a key. Raises DisqueError."""
        with self._lock:
            if time.monotonic() >= self._until_s:
                self._sessions = self._members.sessions()
                self._until_s = time.monotonic() + _LOOK_AGAIN_S
            best = max(self._sessions, key=lambda node_id: hashlib.blake2b(f"{key}\0{node_id}".encode()).digest())
            session = self._sessions[best]
        if session is None:
            raise ConnectionFailed(f"node {best} has the counters of {key!r}, and cannot be reached from here")
        return session

    def close(self) -> None:
        """Close the connections."""
        self._members.close()

    def look_again(self) -> None:
        """Ask for the nodes before the next use: one of them did not reply."""
        self._until_s = 0.0


class _State:
    """What a process needs."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.homes = _Homes(client)
        self.events = ResultJobs(client, f"{namespace}:events")


class DisqueBackend(RateLimiterBackend, Closing):
    """A backend for rate limiters and barriers on a cluster of this broker."""

    def __init__(
        self,
        *,
        url: str | Sequence[str] | None = None,
        client: Client | None = None,
        namespace: str = NAMESPACE,
        **options: Any,
    ) -> None:
        """Configure the backend; the first use connects.

        Args:
            url: The cluster, as for `DisqueBroker`. Every node must be reachable at the address that HELLO tells.
            client: A client to use in place of one of its own. It must not be used before a fork and after.
            namespace: A prefix for the names of the queues that count.
            options: Arguments of `disqued.client.Client`, as for `DisqueBroker`.
        """
        self._namespace = namespace
        self._clients = PerProcess(client_maker(url, options) if client is None else lambda: client)
        self._state = PerProcess(lambda: _State(self._clients.here, namespace))
        self._owns_client = client is None

    def close(self) -> None:
        """Close the connections to single nodes, and those of its client unless that was given."""
        self._state.here.homes.close()
        if self._owns_client:
            self._clients.here.close()

    def add(self, key: str, value: int, ttl: int) -> bool:
        """Set a counter for `ttl` ms, rounded up to seconds. Returns false, and changes nothing, if it is not zero."""
        queue = self._queue(key)
        first, *others = [
            _unit(queue, str(number), ttl, number, at_most=1 if number == value else None)
            for number in range(value, 0, -1)
        ]
        (added,) = self._at_home(key, [first])
        if isinstance(added, QueueFull):
            return False
        _raise_errors([added, *self._at_home(key, others)])
        return True

    def incr(self, key: str, amount: int, maximum: int, ttl: int) -> bool:
        """Increase a counter by `amount` unless it would exceed `maximum`; the increase lives for `ttl` ms."""
        return self._incr(key, self._queue(key), amount, maximum, ttl)

    def incr_and_sum(self, key: str, keys: Callable[[], Sequence[str]], amount: int, maximum: int, ttl: int) -> bool:
        """Increase a counter by `amount` unless the sum of several would exceed `maximum`.

        Keys that differ only behind their last `@`, as those of a window do, share one counter, whose units live for
        `ttl` ms: so the sum is exact. Other keys are added up before, and may change meanwhile.
        """
        names = list(keys())
        if names == [key]:
            return self.incr(key, amount, maximum, ttl)
        mine = self._window(key)
        others = {self._window(other): other for other in names}
        others.pop(mine, None)
        counted = 0
        for queue, other in others.items():
            lengths = self._at_home(other, [calls.qlen(queue)])
            _raise_errors(lengths)
            counted += sum(length for length in lengths if isinstance(length, int))
        return self._incr(key, mine, amount, maximum - counted, ttl - _GRACE_MS)

    def decr(self, key: str, amount: int, minimum: int, ttl: int) -> bool:
        """Decrease a counter by `amount` unless it would fall below `minimum`.

        A `minimum` above 0 is for counters that only `add` set, as those of barriers. For others it is kept, too, but
        of several decreases at once all may be refused.
        """
        queue = self._queue(key)
        (taken,) = self._at_home(key, [calls.get(queue, count=amount, nohang=True)])
        if isinstance(taken, DisqueError):
            raise taken
        if len(taken) == amount and (minimum <= 0 or self._left(key, queue, taken) >= minimum):
            self._end(key, taken)
            return True
        returned = [_unit(queue, job.body, ttl, int(job.body) or _UNNUMBERED) for job in taken]
        _raise_errors(self._at_home(key, returned))
        self._end(key, taken)
        return False

    def wait(self, key: str, timeout: int | None) -> bool:
        """Wait up to `timeout` ms for the event of a key, None for no limit. Returns whether it happened."""
        deadline_s = math.inf if timeout is None else time.monotonic() + timeout / 1000
        with connection_errors():
            while (left_s := deadline_s - time.monotonic()) > 0:
                if self._state.here.events.wait([key], timeout_s=min(left_s, _WAIT_S)).get(key):
                    return True
        return False

    def wait_notify(self, key: str, ttl: int) -> None:
        """Have the event of a key happen, for those who wait and for those who come within `ttl` ms."""
        with connection_errors():
            self._state.here.events.store(key, _EVENT, retain_s=math.ceil(ttl / 1000))

    # Units.

    def _queue(self, key: str) -> str:
        return f"{self._namespace}:{key}"

    def _window(self, key: str) -> str:
        return f"{self._namespace}:{_base(key)}@window"

    def _incr(self, key: str, queue: str, amount: int, maximum: int, ttl: int) -> bool:
        least = maximum - amount + 1
        if least < 1:
            return False
        units = [_unit(queue, "0", ttl, _UNNUMBERED, at_most=least + number) for number in range(amount)]
        answers = self._at_home(key, units)
        refused = [answer for answer in answers if isinstance(answer, DisqueError)]
        if not refused:
            return True
        added = [str(answer) for answer in answers if not isinstance(answer, DisqueError)]
        if added:
            _raise_errors(self._at_home(key, [calls.delete(*added)]))
        _raise_errors([answer for answer in refused if not isinstance(answer, QueueFull)])
        return False

    def _left(self, key: str, queue: str, taken: Sequence[Job]) -> int:
        """How many units there were behind those that were taken."""
        number = int(taken[-1].body)
        if number:
            return number - 1
        lengths = self._at_home(key, [calls.qlen(queue)])
        _raise_errors(lengths)
        return sum(length for length in lengths if isinstance(length, int))

    def _end(self, key: str, taken: Sequence[Job]) -> None:
        if taken:
            _raise_errors(self._at_home(key, [calls.ack(*[job.id for job in taken])]))

    def _at_home(self, key: str, many: Sequence[Call[T]]) -> list[T | DisqueError]:
        """Return the results of calls at the home of a key, or their errors. A call is repeated if it was not sent.

        Raises:
            BrokerConnectionError: the home of the key cannot be reached, or did not reply.
        """
        homes = self._state.here.homes
        results: list[T | DisqueError] = []
        for attempt in range(_ATTEMPTS):
            if attempt:
                homes.look_again()
                time.sleep(_AGAIN_S)
            with connection_errors():
                results = run_now(homes.home(_base(key)).perform_many(many))
            if not any(isinstance(result, ConnectionFailed) for result in results):
                break
        lost = next((one for one in results if isinstance(one, ConnectionFailed | ConnectionLost)), None)
        if lost is not None:
            homes.look_again()
            raise dramatiq.errors.ConnectionClosed(str(lost)) from lost
        return results


def _base(key: str) -> str:
    """The part of a key that chooses its home: all counters of a bucket or a window have the same."""
    return key.rpartition("@")[0] or key


def _unit(queue: str, number: str | bytes, ttl: int, priority: int, at_most: int | None = None) -> Call[str]:
    """Add a unit, unless the queue would then have more than `at_most`. At-most-once: it is never delivered twice."""
    return add(
        queue,
        number,
        replicate=1,
        retry_s=0,
        ttl_s=max(math.ceil(ttl / 1000), 1),
        maxlen=at_most,
        priority=priority,
    )


def _raise_errors(answers: Sequence[object]) -> None:
    for answer in answers:
        if isinstance(answer, DisqueError):
            raise answer
