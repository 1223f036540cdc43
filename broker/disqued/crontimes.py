"""The times of cron lines in a time zone, from the libraries `cronsim` and `zoneinfo`.

Nodes get them through their `Host`, because zone data is on disk. Lines have five fields, or six with seconds first,
and what cronsim understands: names, lists, ranges, steps, `L`, `LW`, `#`. A line whose minute and hour are fixed runs
as with Debian's cron: at the end of the gap if its local time is skipped, and once if that is repeated. Other lines
follow the hours that pass.
"""

from __future__ import annotations

from datetime import UTC, datetime
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
    try:
        times = CronSim(ALIASES.get(line.lower(), line), begin)
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
        found_ms = int(found.astimezone(UTC).timestamp()) * 1000
        if found_ms > after_ms:  # local times are repeated when the clocks are set back
            return found_ms


def _zone(name: str) -> ZoneInfo:
    """A time zone. Raises ValueError if its data is not known here."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"needs a time zone such as Europe/Berlin or UTC, not '{name}'") from None
