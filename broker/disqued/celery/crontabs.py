"""From the times of beat to those of SCHEDULE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from celery.schedules import crontab, schedule, solar

_STEP: Final = re.compile(r"\*/\d+")
_WEEK: Final = 7
_FULL_WEEKS: Final = 4
"""Days 1 to 28 of a month are four weeks: `MON#2` is the Monday of the second one."""
_MOST_INTERVAL_S: Final = 366 * 86400


class UnsupportedEntryError(ValueError):
    """The cluster cannot run an entry of beat; the text says why, and what to use instead."""


def when_of(times: Any, zone: str | None) -> tuple[str, str | None]:
    """Return the arguments `when` and `zone` of `schedule_set` for the times of an entry.

    Args:
        times: The schedule of the entry.
        zone: The name of the application's time zone; None if it has none.

    Raises:
        UnsupportedEntryError: SCHEDULE has no such times.
    """
    if isinstance(times, crontab):
        if times.nowfun is not None:
            raise UnsupportedEntryError("a crontab with a nowfun is not possible: use `timezone` of the application")
        if zone is None:
            raise UnsupportedEntryError("the application has no named time zone: set `timezone`")
        return _line_of(times), zone
    if isinstance(times, solar):
        raise UnsupportedEntryError("solar times are not possible: use a crontab")
    if isinstance(times, schedule):
        return _interval_of(times.run_every), None
    raise UnsupportedEntryError(f"times of type {type(times).__name__} are not possible: use a crontab or seconds")


def _interval_of(every: timedelta) -> str:
    seconds = every.total_seconds()
    if seconds < 1 or seconds != int(seconds) or seconds > _MOST_INTERVAL_S:
        raise UnsupportedEntryError(f"an interval of {seconds:g} s is not possible: use whole seconds, up to 366 days")
    return f"every {int(seconds)} s"


def _line_of(times: Any) -> str:
    """Return the cron line: names and ranges become numbers, only `*` and steps of `*` stay.

    A cron line means either of the days of the month and of the week if it restricts both; Celery means both.
    """
    minute = _field(times._orig_minute, times.minute, range(60))  # noqa: SLF001 - there is no public name
    hour = _field(times._orig_hour, times.hour, range(24))  # noqa: SLF001 - as above
    month = _field(None, times.month_of_year, range(1, 13))
    days, weekdays = sorted(times.day_of_month), sorted(times.day_of_week)
    day = _field(None, days, range(1, 32))
    weekday = _field(None, weekdays, range(_WEEK))
    if day != "*" and weekday != "*":
        day, weekday = "*", _weekdays_of_weeks(days, weekdays)
    return f"{minute} {hour} {day} {month} {weekday}"


def _field(given: object, values: Iterable[int], every: range) -> str:
    """Return one field. Steps stay, because lines with steps follow the hours that pass when the clocks change."""
    if isinstance(given, str) and _STEP.fullmatch(given):
        return given
    numbers = sorted(values)
    return "*" if numbers == list(every) else ",".join(map(str, numbers))


def _weekdays_of_weeks(days: list[int], weekdays: list[int]) -> str:
    """Return days of the week in whole weeks of a month, for example the first Monday."""
    weeks = [week for week in range(_FULL_WEEKS) if week * _WEEK + 1 in days]
    if days != [week * _WEEK + day for week in weeks for day in range(1, _WEEK + 1)]:
        raise UnsupportedEntryError(
            "a crontab with day_of_week and day_of_month is only possible for whole weeks of the month, for example "
            "1-7 for the first one: use two entries, or look at the date in the task"
        )
    return ",".join(f"{weekday}#{week + 1}" for weekday in weekdays for week in weeks)
