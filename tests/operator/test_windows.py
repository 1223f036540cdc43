"""Maintenance windows in their time zone."""

from __future__ import annotations

from datetime import datetime

import pytest

from disque_operator.spec import UpgradeWindow
from disque_operator.windows import is_open, next_opening, zone_problem

NIGHT = UpgradeWindow(days=("Friday", "Saturday"), start="22:00", end="04:00", time_zone="Europe/Berlin")
NOON = UpgradeWindow(start="11:30", end="12:30")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("window", "time", "open_"),
    [
        (NIGHT, "2026-11-27T21:59:59+01:00", False),
        (NIGHT, "2026-11-27T22:00:00+01:00", True),
        (NIGHT, "2026-11-28T03:59:59+01:00", True),
        (NIGHT, "2026-11-28T04:00:00+01:00", False),
        (NIGHT, "2026-11-29T03:00:00+01:00", True),  # Sunday, but the window of Saturday
        (NIGHT, "2026-11-29T22:30:00+01:00", False),
        (NIGHT, "2026-11-27T03:00:00+01:00", False),  # Friday, but the window would be that of Thursday
        (NIGHT, "2026-07-03T20:30:00+00:00", True),  # 22:30 in summer
        (NIGHT, "2026-11-27T20:30:00+00:00", False),  # 21:30 in winter
        (NOON, "2026-11-25T12:00:00+00:00", True),
        (NOON, "2026-11-25T12:30:00+00:00", False),
    ],
)
def test_window(window: UpgradeWindow, time: str, open_: bool) -> None:
    assert is_open(window, at(time)) == open_


@pytest.mark.parametrize(
    ("time", "opening"),
    [
        ("2026-11-25T12:00:00+01:00", "Friday 22:00 Europe/Berlin"),
        ("2026-11-27T21:00:00+01:00", "Friday 22:00 Europe/Berlin"),
        ("2026-11-28T05:00:00+01:00", "Saturday 22:00 Europe/Berlin"),
        ("2026-11-29T05:00:00+01:00", "Friday 22:00 Europe/Berlin"),
    ],
)
def test_next_opening(time: str, opening: str) -> None:
    assert next_opening(NIGHT, at(time)) == opening


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "Europe", "berlin time"])
def test_unknown_time_zone_is_a_problem(zone: str) -> None:
    assert "is not a time zone" in zone_problem(zone)


def test_known_time_zone_is_no_problem() -> None:
    assert zone_problem(NIGHT.time_zone) == ""
