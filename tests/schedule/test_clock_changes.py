"""Schedules when the clocks of a time zone change: a local time is skipped in spring, and repeated in autumn."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from disqued.crontimes import next_time
from disqued.testing.local import LocalClient, LocalNode
from schedule.scenes import HOUR_MS, set_schedule, shown

BERLIN = "Europe/Berlin"
SPRING = datetime(2027, 3, 28, tzinfo=ZoneInfo(BERLIN))
"""At 2:00 the clocks are put forward to 3:00."""
AUTUMN = datetime(2027, 10, 31, tzinfo=ZoneInfo(BERLIN))
"""At 3:00 the clocks are put back to 2:00."""


def unix_ms(time: datetime) -> int:
    return int(time.timestamp()) * 1000


def times_of(line: str, begin: datetime, hours: int = 6) -> list[str]:
    """The local times of a line after a time, for some hours that pass, each with its offset from UTC in hours."""
    assert begin.tzinfo is not None
    found: list[str] = []
    at_ms = unix_ms(begin)
    end_ms = at_ms + hours * HOUR_MS
    while 0 < (at_ms := next_time(line, str(begin.tzinfo), at_ms)) <= end_ms:
        time = datetime.fromtimestamp(at_ms / 1000, begin.tzinfo)
        found.append(f"{time:%H:%M:%S}".removesuffix(":00") + f"{time:%z}".removesuffix("00"))
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("30 2 * * *", ["03:00+02"]),
        ("0 2 * * *", ["03:00+02"]),
        ("0 30 2 * * *", ["03:00+02"]),
        ("15 30 2 * * *", ["03:00+02"]),
        ("0,20,40 2 * * *", ["03:00+02"]),
        ("0 2,3 * * *", ["03:00+02"]),
        ("30 1-3 * * *", ["01:30+01", "03:00+02", "03:30+02"]),
        ("59 1 * * *", ["01:59+01"]),
        ("0 3 * * *", ["03:00+02"]),
    ],
)
def test_local_time_that_is_skipped_runs_once_at_the_end_of_the_gap(line: str, expected: list[str]) -> None:
    assert times_of(line, SPRING) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("30 2 * * *", ["02:30+02"]),
        ("0 2 * * *", ["02:00+02"]),
        ("0 30 2 * * *", ["02:30+02"]),
        ("15 30 2 * * *", ["02:30:15+02"]),
        ("0,30 2 * * *", ["02:00+02", "02:30+02"]),
        ("30 1-3 * * *", ["01:30+02", "02:30+02", "03:30+01"]),
        ("0 3 * * *", ["03:00+01"]),
    ],
)
def test_local_time_that_is_repeated_runs_the_first_time_only(line: str, expected: list[str]) -> None:
    assert times_of(line, AUTUMN) == expected


@pytest.mark.parametrize(
    ("line", "begin", "expected"),
    [
        ("@hourly", SPRING, ["01:00+01", "03:00+02", "04:00+02", "05:00+02", "06:00+02", "07:00+02"]),
        ("@hourly", AUTUMN, ["01:00+02", "02:00+02", "02:00+01", "03:00+01", "04:00+01", "05:00+01"]),
        ("*/30 2 * * *", SPRING, []),
        ("*/30 2 * * *", AUTUMN, ["02:00+02", "02:30+02", "02:00+01", "02:30+01"]),
        ("*/30 59 2 * * *", SPRING, []),
        ("*/30 59 2 * * *", AUTUMN, ["02:59+02", "02:59:30+02", "02:59+01", "02:59:30+01"]),
        ("30 */2 * * *", SPRING, ["00:30+01", "04:30+02", "06:30+02"]),
    ],
)
def test_line_with_a_star_in_the_time_of_day_follows_the_hours_that_pass(
    line: str, begin: datetime, expected: list[str]
) -> None:
    assert times_of(line, begin) == expected


def test_midnight_that_is_skipped_runs_at_the_first_time_of_the_day() -> None:
    before = datetime(2027, 3, 13, 12, tzinfo=ZoneInfo("America/Havana"))  # at 0:00 of the 14th it is 1:00
    assert times_of("@daily", before, 24) == ["01:00-04"]


def test_day_that_a_zone_left_out_runs_once_at_its_end() -> None:
    before = datetime(2011, 12, 29, 12, tzinfo=ZoneInfo("Pacific/Apia"))  # there was no 30th of December
    assert times_of("30 8,16 30 12 *", before, 24) == ["00:00+14"]


@pytest.mark.parametrize("begin", [SPRING, AUTUMN])
@pytest.mark.parametrize(
    "line", ["30 2 * * *", "15 30 2 * * *", "30 1-3 * * *", "*/30 2 * * *", "@hourly", "*/7 * * * *"]
)
def test_next_time_is_the_same_from_every_second_before_it(begin: datetime, line: str) -> None:
    start_ms = unix_ms(begin)
    times_ms = [start_ms]
    while times_ms[-1] < start_ms + 6 * HOUR_MS:
        times_ms.append(next_time(line, BERLIN, times_ms[-1]))
    for before_ms, time_ms in pairwise(times_ms):
        for after_ms in range(before_ms, min(time_ms, start_ms + 6 * HOUR_MS), 97_000):
            assert next_time(line, BERLIN, after_ms) == time_ms, after_ms


def due_hours(client: LocalClient, after: datetime) -> list[float]:
    """The times of the jobs that are queued, in hours after a time."""
    rows = cast("list[list[bytes]]", client.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", "q"))
    return sorted((cast("int", client.show(row[1])["due-ms"]) - unix_ms(after)) / HOUR_MS for row in rows)


def start_before(local: LocalNode, time: datetime) -> LocalClient:
    """Have the node down until an hour before a time."""
    local.shut_down()
    local.host.now_ms = unix_ms(time) - HOUR_MS
    local.restart()
    return local.client()


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        (datetime(2027, 3, 28, 1, tzinfo=UTC), 0, 23.5),  # 3:00, and 2:30 of the next day
        (datetime(2027, 10, 31, 1, tzinfo=UTC), -0.5, 24.5),  # 2:30 in summer time, and of the next day
    ],
    ids=["spring", "autumn"],
)
def test_nightly_schedule_runs_once_in_the_night_in_which_the_clocks_change(
    local: LocalNode, change: datetime, first: float, second: float
) -> None:
    client = start_before(local, change)
    set_schedule(client, "30 2 * * *", "TZ", BERLIN)
    local.run(seconds=2 * 3600)
    assert due_hours(client, change) == [first]
    assert (shown(client).runs, shown(client).runs_missed) == (1, 0)
    assert (shown(client).next_ms - unix_ms(change)) / HOUR_MS == second


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_interval_does_not_change_with_the_clocks(local: LocalNode, day: datetime) -> None:
    change = day.replace(hour=1, tzinfo=UTC)
    client = start_before(local, change)
    set_schedule(client, "every 30 m")
    local.run(seconds=2 * 3600 + 1)
    assert due_hours(client, change) == [-0.5, 0, 0.5, 1]
