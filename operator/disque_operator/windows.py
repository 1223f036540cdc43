"""Maintenance windows: whether one is open, and when the next one opens.

A window is given in the local time of a zone. It belongs to the day on which it opens, also if it ends after midnight.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from disque_operator.spec import UpgradeWindow

_WEEK_DAYS = 7


def zone_problem(time_zone: str) -> str:
    """Return what is wrong with a time zone; empty if nothing is."""
    try:
        ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{time_zone!r} is not a time zone: use a name such as Europe/Berlin or UTC"
    return ""


def is_open(window: UpgradeWindow, now_s: float) -> bool:
    """Return whether the window is open. A window whose end is not after its start ends on the next day."""
    local = _local(window, now_s)
    clock, day = f"{local:%H:%M}", f"{local:%A}"
    if window.start < window.end:
        return day in window.days and window.start <= clock < window.end
    yesterday = f"{local - timedelta(days=1):%A}"
    return (day in window.days and clock >= window.start) or (yesterday in window.days and clock < window.end)


def next_opening(window: UpgradeWindow, now_s: float) -> str:
    """Return when a closed window opens next, for example `Saturday 22:00 Europe/Berlin`."""
    local = _local(window, now_s)
    first = 0 if f"{local:%H:%M}" < window.start else 1
    days = (f"{local + timedelta(days=ahead):%A}" for ahead in range(first, first + _WEEK_DAYS))
    return f"{next(day for day in days if day in window.days)} {window.start} {window.time_zone}"


def _local(window: UpgradeWindow, now_s: float) -> datetime:
    return datetime.fromtimestamp(now_s, UTC).astimezone(ZoneInfo(window.time_zone))
