"""The times of beat and those of SCHEDULE are the same."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar

from disqued.celery.crontabs import UnsupportedEntryError, when_of
from disqued.crontimes import next_time

FIELDS: dict[str, tuple[Any, ...]] = {
    "minute": ("*", "*/7", "*/15", 0, "5,35", "10-20", "3-50/9", [1, 59]),
    "hour": ("*", "*/5", 3, "0,23", "8-17", "22-23"),
    "day_of_month": ("*", "*/2", 1, "10-20", 31, "1-7,15-21"),
    "month_of_year": ("*", "*/3", "feb", "1,12", 2),
    "day_of_week": ("*", "mon-fri", "sun", 0, "sat,1", "5-6"),
}
BEGIN = datetime(2027, 1, 31, 22, 17, 33, tzinfo=UTC)


@pytest.fixture(scope="module")
def app() -> Any:
    return Celery("times", broker="memory://", set_as_current=False)


def times_of(app: Any, fields: dict[str, Any], count: int) -> list[datetime]:
    """When beat would run an entry."""
    found: list[datetime] = []
    at = BEGIN
    for _ in range(count):
        times = crontab(**fields, app=app, nowfun=lambda at=at: at)
        at += times.remaining_estimate(at)
        found.append(at)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_cron_lines_run_when_beat_would(app: Any, seed: int) -> None:
    rng = random.Random(seed)
    fields = {name: rng.choice(choices) for name, choices in FIELDS.items()}
    if rng.random() < 0.7:
        fields[rng.choice(["day_of_month", "day_of_week"])] = "*"
    else:
        fields["day_of_month"] = rng.choice(["1-7", "8-14,22-28"])
    if {fields["day_of_month"], fields["month_of_year"]} & {31} and fields["month_of_year"] != "*":
        fields["month_of_year"] = "*"  # beat fails for days that a month does not have
    line, zone = when_of(crontab(**fields, app=app), "UTC")
    assert zone == "UTC"
    at_ms = int(BEGIN.timestamp() * 1000)
    for expected in times_of(app, fields, 8):
        at_ms = next_time(line, zone, at_ms)
        assert datetime.fromtimestamp(at_ms / 1000, UTC) == expected.replace(microsecond=0), (fields, line)


@pytest.mark.parametrize(
    ("every", "when"), [(1, "every 1 s"), (90.0, "every 90 s"), (timedelta(days=2), "every 172800 s")]
)
def test_intervals_become_seconds(app: Any, every: Any, when: str) -> None:
    assert when_of(schedule(every, app=app), None) == (when, None)


class Other:
    pass


@pytest.mark.parametrize(
    ("times", "zone", "message"),
    [
        (schedule(0.5), "UTC", "an interval of 0.5 s is not possible: use whole seconds"),
        (schedule(timedelta(days=400)), "UTC", "up to 366 days"),
        (solar.__new__(solar), "UTC", "solar times are not possible: use a crontab"),
        (Other(), "UTC", "times of type Other are not possible"),
        (crontab(hour=3), None, "set `timezone`"),
        (crontab(hour=3, nowfun=datetime.now), "UTC", "a crontab with a nowfun"),
        (crontab(day_of_month="1-10", day_of_week="mon"), "UTC", "only possible for whole weeks of the month"),
        (crontab(day_of_month="29-31", day_of_week="mon"), "UTC", "only possible for whole weeks of the month"),
    ],
)
def test_other_times_are_refused(times: Any, zone: str | None, message: str) -> None:
    with pytest.raises(UnsupportedEntryError, match=message):
        when_of(times, zone)
