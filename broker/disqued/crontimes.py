"""The times of cron lines in a time zone, from the libraries `cronsim` and `zoneinfo`.

Nodes get them through their `Host`, because zone data is on disk. Lines have five fields, or six with seconds first,
and what cronsim understands: names, lists, ranges, steps, `L`, `LW`, `#`.

When the clocks change, a line runs as with Debian's cron. If no field of the time of day begins with `*`, the line
means local times: those that are skipped are one run at the end of the gap, and those that are repeated run the first
time. Other lines follow the hours that pass. cronsim has this rule for lines of five fields only, so it is here for
both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DATE_FIELDS: Final = 3
_MINUTE: Final = timedelta(minutes=1)
_LAST_MS: Final = 253_370_764_800_000
"""The year 9999: the library cannot compute later times."""


@lru_cache(maxsize=4096)
def next_time(line: str, zone: str, after_ms: int) -> int:
    """The first time of a cron line after a time, in unix milliseconds; 0 if there is none within 50 years.

    Raises:
        ValueError: the line or the zone is invalid; the text says what is wrong with it.
    """
    place = _zone(zone)
    if not 0 <= after_ms < _LAST_MS:
        return 0
    begin = datetime.fromtimestamp(after_ms // 1000, place)
    words = ALIASES.get(line.lower(), line)
    local = not any(word.startswith("*") for word in words.split()[:-_DATE_FIELDS])
    try:
        times = CronSim(words, begin.replace(tzinfo=None) if local else begin)
    except CronSimError as error:
        raise ValueError(
            f"is no cron line of 5 or 6 fields, @hourly, @daily, @weekly, @monthly or @yearly: {error}"
        ) from None
    except (AssertionError, TypeError, IndexError):  # the library's checks are not complete, for example of "L/2/2"
        raise ValueError("is no cron line of 5 or 6 fields") from None
    while True:
        try:
            found = next(times)
        except (StopIteration, OverflowError):
            return 0
        if local:
            found = _existing(found.replace(tzinfo=place))
        found_ms = int(found.astimezone(UTC).timestamp()) * 1000
        if found_ms > after_ms:  # local times are repeated when the clocks are set back
            return found_ms


def _existing(time: datetime) -> datetime:
    """The first of two times that are the same on the clock; the end of the gap for a time that is skipped."""
    if _exists(time):
        return time
    time = time.replace(second=0)
    while not _exists(time):
        time += _MINUTE
    return time


def _exists(time: datetime) -> bool:
    """Whether the clocks show a local time."""
    return time.astimezone(UTC).astimezone(time.tzinfo).replace(tzinfo=None) == time.replace(tzinfo=None)


def _zone(name: str) -> ZoneInfo:
    """A time zone. Raises ValueError if its data is not known here."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"needs a time zone such as Europe/Berlin or UTC, not '{name}'") from None
