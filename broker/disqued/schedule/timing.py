"""When a schedule is due: a cron line, an interval, or one time.

Intervals are counted from the beginning of 1970 (UTC), so all nodes agree on them: `every 6 h` is due at 0, 6, 12 and
18 o'clock UTC, whenever the schedule was set.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

from disqued.core.host.host import Host

MOST_SPEC_BYTES: Final = 256
MOST_ZONE_BYTES: Final = 64
DEFAULT_ZONE: Final = "UTC"
_EVERY: Final = re.compile(r"every +([1-9]\d{0,8}) *(s|m|h|d)", re.IGNORECASE)
_AT: Final = re.compile(r"at +([1-9]\d{0,14})", re.IGNORECASE)
DONE_KEPT_MS: Final = 7 * 86_400_000
"""How long a schedule of one time is kept after that."""
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_PERIOD_MS: Final = 366 * 86_400_000
_FIRST_SPAN_MS: Final = 15_000
_WIDER: Final = 8
_FEW: Final = 3
"""So many times are tried one after the other before the latest one is searched from the end."""


class Timing:
    """The times at which a schedule is due, in unix milliseconds. One of `period_ms`, `at_ms` and `line` is set."""

    def __init__(self, period_ms: i64, at_ms: i64, line: str, zone: str) -> None:
        self.period_ms: i64 = period_ms
        self.at_ms: i64 = at_ms
        self.line = line
        self.zone = zone

    @property
    def forgotten_ms(self) -> i64:
        """When the schedule is forgotten; 0 for never."""
        return self.at_ms + DONE_KEPT_MS if self.at_ms > 0 else 0

    def next_ms(self, host: Host, after_ms: i64) -> i64:
        """The first time after another one; 0 if there is none."""
        if self.period_ms > 0:
            return (after_ms // self.period_ms + 1) * self.period_ms
        if self.at_ms > 0:
            return self.at_ms if self.at_ms > after_ms else 0
        try:
            return host.next_time(self.line, self.zone, int(after_ms))
        except ValueError:  # another node knows the zone or the syntax, this one does not
            return 0

    def latest_ms(self, host: Host, after_ms: i64, now_ms: i64) -> i64:
        """The last time after `after_ms` that has come; 0 if there is none."""
        if self.period_ms > 0:
            latest = now_ms // self.period_ms * self.period_ms
            return latest if latest > after_ms else 0
        found = self.next_ms(host, after_ms)
        if found == 0 or found > now_ms:
            return 0
        for _ in range(_FEW):
            following = self.next_ms(host, found)
            if following == 0 or following > now_ms:
                return found
            found = following
        return self._search_ms(host, found, now_ms)

    def _search_ms(self, host: Host, known_ms: i64, now_ms: i64) -> i64:
        """The last time up to now, searched in spans before now that grow; `known_ms` is one that has come."""
        span_ms: i64 = _FIRST_SPAN_MS
        while now_ms - span_ms > known_ms:
            found = self._last_ms(host, now_ms - span_ms, now_ms)
            if found > 0:
                return found
            span_ms *= _WIDER
        return max(self._last_ms(host, known_ms, now_ms), known_ms)

    def _last_ms(self, host: Host, after_ms: i64, now_ms: i64) -> i64:
        """The last of the times from one time to another; 0 if there is none."""
        latest: i64 = 0
        found = self.next_ms(host, after_ms)
        while 0 < found <= now_ms:
            latest = found
            found = self.next_ms(host, found)
        return latest

    def count(self, host: Host, after_ms: i64, before_ms: i64, most: i64) -> i64:
        """How many times there are between two times, both excluded; `most` at most."""
        if self.period_ms > 0:
            return max(min((before_ms - 1) // self.period_ms - after_ms // self.period_ms, most), 0)
        count: i64 = 0
        found = self.next_ms(host, after_ms)
        while 0 < found < before_ms and count < most:
            count += 1
            found = self.next_ms(host, found)
        return count


def parse_timing(host: Host, spec: str, zone: str) -> Timing:
    """The timing that a specification describes; `zone` is empty if none was given.

    Raises:
        ValueError: what is wrong with it.
    """
    words = spec.strip()
    every = _EVERY.fullmatch(words)
    if every is not None:
        period_ms = int(every[1]) * _UNITS_MS[every[2].lower()]
        if period_ms > _MOST_PERIOD_MS:
            raise ValueError("needs an interval of at most 366 days")
        _refuse_zone(zone)
        return Timing(period_ms, 0, "", "")
    at = _AT.fullmatch(words)
    if at is not None:
        _refuse_zone(zone)
        return Timing(0, int(at[1]), "", "")
    first = words.split(" ", 1)[0].lower()
    if first == "every":
        raise ValueError("needs an interval such as 'every 30 s', with s, m, h or d")
    if first == "at":
        raise ValueError("needs a time in unix milliseconds, such as 'at 1800000000000'")
    host.next_time(words, zone or DEFAULT_ZONE, 0)
    return Timing(0, 0, words, zone or DEFAULT_ZONE)


def _refuse_zone(zone: str) -> None:
    if zone:
        raise ValueError("takes a time zone (TZ) with a cron line only")
