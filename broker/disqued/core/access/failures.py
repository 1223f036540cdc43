"""Failed logins: how many an origin had (`clients.origin`), and how long the next refusal is delayed.

The first failures of an origin are answered at once, because they are mistakes. From then on each answer takes twice as
long as the one before. Right passwords are never delayed, so that nobody can lock out others behind the same address.
So a program that reconnects instead of waiting is only slowed down: long random passwords hold off guessing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

FREE_FAILURES: Final = 5
"""How many failures of an address are answered at once."""
FIRST_DELAY_MS: Final = 100
LONGEST_DELAY_MS: Final = 10_000
FORGOTTEN_MS: Final = 60_000
"""An address without a failure for this long counts as new."""
_MOST_ADDRESSES: Final = 4096
_LOG_INTERVAL_MS: Final = 1000


class Failures:
    """The failures of one address."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.last_ms: i64 = 0


class LoginFailures:
    """The failures of all addresses of one node."""

    def __init__(self) -> None:
        self._by_origin: dict[str, Failures] = {}
        self._next_log_ms: i64 = 0
        self._not_logged: i64 = 0

    def note(self, origin: str, now_ms: i64) -> i64:
        """Count a failure and return after how many milliseconds the client gets its answer."""
        one = self._by_origin.pop(origin, None)
        if one is None or now_ms - one.last_ms > FORGOTTEN_MS:
            one = Failures()
        self._by_origin[origin] = one  # the latest is the last one
        if len(self._by_origin) > _MOST_ADDRESSES:
            del self._by_origin[next(iter(self._by_origin))]
        one.count += 1
        one.last_ms = now_ms
        return _delay_ms(one.count)

    def wait_ms(self, origin: str, now_ms: i64) -> i64:
        """For how long an address cannot log in where answers are not delayed: on the HTTP port."""
        one = self._by_origin.get(origin)
        if one is None:
            return 0
        return max(one.last_ms + _delay_ms(one.count) - now_ms, 0)

    def to_log(self, now_ms: i64) -> int:
        """How many failures a log line about this one stands for; 0 for no line, because there was one just now."""
        self._not_logged += 1
        if now_ms < self._next_log_ms:
            return 0
        self._next_log_ms = now_ms + _LOG_INTERVAL_MS
        count = int(self._not_logged)
        self._not_logged = 0
        return count


def _delay_ms(failures: i64) -> i64:
    """The delay after so many failures."""
    if failures <= FREE_FAILURES:
        return 0
    doubled = min(failures - FREE_FAILURES - 1, 20)
    return min(i64(FIRST_DELAY_MS) << doubled, i64(LONGEST_DELAY_MS))
