"""SCHEDULE on one node."""

from __future__ import annotations

from typing import cast

import pytest

from disqued.client import ResponseError
from disqued.core.jobs.runs import RunOf
from disqued.testing.local import LocalClient, LocalNode, Reply
from schedule.scenes import HOUR_MS, START_MS, set_schedule, shown


def error(reply: Reply) -> str:
    assert isinstance(reply, ResponseError), reply
    return str(reply)


def times_of(client: LocalClient) -> list[int]:
    """The times at which the jobs of the queue were due, in seconds after the start; the jobs are done then."""
    found: list[int] = []
    for row in cast("list[list[bytes]]", client.call("GETJOB", "NOHANG", "COUNT", 1000, "FROM", "q") or []):
        shown_job = client.show(row[1])
        found.append((cast("int", shown_job["due-ms"]) - START_MS) // 1000)
        assert cast("int", shown_job["ctime"]) // 1_000_000 >= cast("int", shown_job["due-ms"])
        client.call("ACKJOB", row[1])
    return sorted(found)


def test_interval_adds_one_job_per_time(client: LocalClient, local: LocalNode) -> None:
    local.run(milliseconds=500)
    set_schedule(client, "every 10 s", "TTL", 900, "PRIORITY", 3, "META", "m m")
    local.run(seconds=35)
    job_id = client.call("GETJOB", "FROM", "q")
    assert isinstance(job_id, list)
    (row,) = cast("list[list[bytes]]", job_id)
    found = client.show(row[1])
    assert row[2] == b"work"
    assert (found["schedule"], found["due-ms"]) == (b"s", START_MS + 10_000)
    assert (found["priority"], found["meta"]) == (3, b"m m")
    assert row[1][11:35] == RunOf(b"s", START_MS + 10_000).characters()
    client.call("ACKJOB", row[1])
    assert times_of(client) == [20, 30]
    schedule = shown(client)
    assert (schedule.last_ms, schedule.next_ms) == (START_MS + 30_000, START_MS + 40_000)
    assert (schedule.runs, schedule.runs_missed, schedule.state) == (3, 0, "active")
    assert schedule.options == 'TTL 900 PRIORITY 3 META "m m"'
    assert schedule.node == local.node.state.view.node_id.decode()


def test_no_job_is_added_before_its_time(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "every 10 m")
    local.run(milliseconds=599_999)
    assert client.call("QLEN", "q") == 0
    local.run(milliseconds=200)
    assert client.call("QLEN", "q") == 1


def test_cron_line_follows_its_time_zone(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "10 9 * * *", "TZ", "Europe/Berlin")  # it is 9 o'clock there
    set_schedule(client, "10 9 * * *", name="utc")
    assert shown(client).next_ms == START_MS + 600_000
    assert shown(client, "utc").next_ms == START_MS + HOUR_MS + 600_000
    local.run(seconds=900)
    assert times_of(client) == [600]
    assert (shown(client).zone, shown(client, "utc").zone) == ("Europe/Berlin", "UTC")


def test_schedule_of_one_time_is_done_after_it_and_forgotten_later(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, f"at {START_MS + 5000}")
    local.run(seconds=10)
    assert times_of(client) == [5]
    assert (shown(client).state, shown(client).next_ms) == ("done", 0)
    again = down_for(local, 7 * 86_400)
    local.run(seconds=1)
    assert "no schedule" in error(again.call("SCHEDULE", "s", "SHOW"))


def test_set_again_in_the_same_way_changes_nothing_and_otherwise_begins_from_now(
    client: LocalClient, local: LocalNode
) -> None:
    set_schedule(client, "every 10 m")
    local.run(seconds=300)
    set_schedule(client, " every  10 m ")
    assert shown(client).changed_ms == START_MS
    set_schedule(client, "every 20 m")
    assert shown(client).changed_ms == START_MS + 300_000
    local.run(seconds=1000)
    assert times_of(client) == [1200]


def test_paused_schedule_does_not_run_and_makes_up_for_nothing(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "every 10 s", "MISSED", "once")
    local.run(seconds=11)
    assert client.call("SCHEDULE", "s", "PAUSE") == b"OK"
    assert (shown(client).state, shown(client).next_ms) == ("paused", 0)
    set_schedule(client, "every 5 s", "MISSED", "once")
    local.run(seconds=60)
    assert shown(client).state == "paused"
    assert times_of(client) == [10]
    assert client.call("SCHEDULE", "s", "RESUME") == b"OK"
    local.run(seconds=6)
    assert times_of(client) == [75]
    assert shown(client).runs_missed == 0


def test_run_by_hand_adds_a_job_at_once(client: LocalClient) -> None:
    set_schedule(client, "every 1 h")
    client.call("SCHEDULE", "s", "PAUSE")
    first, second = (client.call("SCHEDULE", "s", "RUN") for _ in range(2))
    assert first != second
    assert client.show(cast("bytes", first))["schedule"] == b"s"
    assert client.call("QLEN", "q") == 2
    assert shown(client).last_ms == 0


def test_deleted_schedule_does_not_run(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "every 10 s")
    local.run(seconds=11)
    assert client.call("SCHEDULE", "s", "DEL") == 1
    assert client.call("SCHEDULE", "s", "DEL") == 0
    local.run(seconds=60)
    assert times_of(client) == [10]
    set_schedule(client, "every 10 s")
    assert shown(client).runs == 0


def test_schedules_and_their_last_runs_survive_a_restart(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "every 1 m", "MISSED", "once")
    client.call("SCHEDULE", "p", "SET", "@daily", "q", b"\x00\xff \r\n", "STRICT", "no")
    client.call("SCHEDULE", "p", "PAUSE")
    local.run(seconds=130)
    local.restart()
    again = local.client()
    assert (shown(again).runs, shown(again).last_ms) == (2, START_MS + 120_000)
    paused = shown(again, "p")
    assert (paused.body, paused.state, paused.strict) == (b"\x00\xff \r\n", "paused", False)
    local.run(seconds=60)
    assert shown(again).last_ms == START_MS + 180_000


def down_for(local: LocalNode, seconds: int) -> LocalClient:
    """Shut the node down for a while."""
    local.shut_down()
    local.host.now_ms += seconds * 1000
    local.restart()
    return local.client()


@pytest.mark.parametrize("missed", ["once", "skip"])
def test_after_a_gap_only_the_latest_time_is_made_up_for(local: LocalNode, missed: str) -> None:
    set_schedule(local.client(), "every 1 m", "MISSED", missed)
    local.run(seconds=65)
    again = down_for(local, 357)
    local.run(seconds=1)
    assert local.now_ms - START_MS < 424_000
    schedule = shown(again)
    assert (schedule.last_ms, schedule.runs) == (START_MS + 420_000, 2)
    assert schedule.runs_missed == 4  # a run in the minute after the last known one would not be known


def test_time_missed_by_more_than_a_minute_is_skipped(local: LocalNode) -> None:
    set_schedule(local.client(), "every 1 h")
    set_schedule(local.client(), "every 1 h", "MISSED", "once", name="o")
    local.run(seconds=65)
    again = down_for(local, 3700)
    local.run(seconds=15)
    skipped, made_up = shown(again), shown(again, "o")
    assert (skipped.runs, skipped.runs_missed, skipped.problem) == (0, 1, "nothing ran it in time")
    assert (made_up.runs, made_up.runs_missed, made_up.last_ms) == (1, 0, START_MS + HOUR_MS)


def test_refused_job_is_tried_again_and_missed_when_it_stays_refused(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, "every 10 m")
    set_schedule(client, "every 10 m", "MISSED", "once", name="o")
    client.call("PAUSE", "q", "in")
    local.run(seconds=610)
    assert shown(client).problem == shown(client, "o").problem == "PAUSED Queue paused in input, try later"
    client.call("PAUSE", "q", "none")
    local.run(seconds=12)
    assert (shown(client).runs, shown(client).problem) == (1, "")
    assert times_of(client) == [600, 600]
    client.call("PAUSE", "q", "in")
    local.run(seconds=790)
    assert (shown(client).runs, shown(client).runs_missed) == (1, 1)
    client.call("PAUSE", "q", "none")
    local.run(seconds=12)
    assert times_of(client) == [1200]
    assert shown(client, "o").runs == 2


def test_thousand_schedules_of_a_second_all_run(client: LocalClient, local: LocalNode) -> None:
    for number in range(1000):
        client.call("SCHEDULE", f"s{number}", "SET", "every 1 s", "q", "b", "TTL", 600)
    local.run(milliseconds=5050)
    assert client.call("QLEN", "q") == 5000
    assert "1000 schedules" in error(client.call("SCHEDULE", "more", "SET", "every 1 s", "q", "b"))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("s",), "wrong number of arguments"),
        (("s", "SET", "@daily", "q"), "syntax error"),
        (("s", "SET", "@daily", "q", "b", "TTL"), "syntax error"),
        (("s", "SET", "@daily", "q", "b", "COLOR", "red"), "'COLOR' is no option of a schedule, there are: TZ, MISSED"),
        (("s", "SET", "@daily", "q", "b", "KEY", "k"), "'KEY' is no option of a schedule"),
        (("s", "SET", "@daily", "q", "b", "TTL", "0"), "TTL must be a number > 0"),
        (("s", "SET", "@daily", "q", "b", "RETRY", "0", "REPLICATE", "2"), "REPLICATE to 1"),
        (("s", "SET", "@daily", "q", "b", "MISSED", "twice"), "MISSED must be once or skip, not 'twice'"),
        (("s", "SET", "@daily", "q", "b", "STRICT", "maybe"), "STRICT must be yes or no"),
        (
            ("s", "SET", "@daily", "q", "b", "TZ", "Mars/X"),
            "needs a time zone such as Europe/Berlin or UTC, not 'Mars/X'",
        ),
        (("s", "SET", "every 5 m", "q", "b", "TZ", "UTC"), "takes a time zone (TZ) with a cron line only"),
        (("s", "SET", "every 5 weeks", "q", "b"), "needs an interval such as 'every 30 s'"),
        (("s", "SET", "every 400 d", "q", "b"), "at most 366 days"),
        (("s", "SET", "at noon", "q", "b"), "needs a time in unix milliseconds"),
        (("s", "SET", "at 1700000000000", "q", "b"), "has passed"),
        (("s", "SET", "61 * * * *", "q", "b"), "Bad minute"),
        (("s", "SET", "* * * *", "q", "b"), "Wrong number of fields"),
        (("s", "SET", "\u00fc * * * *", "q", "b"), "printable ASCII"),
        (("s*", "SET", "@daily", "q", "b"), "must not have *, ? or ["),
        (("", "SET", "@daily", "q", "b"), "1 to 256 bytes"),
        (("s", "SET", "@daily", "q", "b" * 33_000), "at most 32768 are possible"),
        (("s", "RUN"), "there is no schedule 's'"),
        (("s", "PAUSE"), "there is no schedule 's'"),
        (("s", "SHOW"), "there is no schedule 's'"),
        (("s", "SHOW", "x"), "syntax error"),
        (("s", "STOP"), "syntax error"),
    ],
)
def test_wrong_requests_change_nothing(client: LocalClient, words: tuple[str, ...], part: str) -> None:
    assert part in error(client.call("SCHEDULE", *words))
    assert client.call("SCHEDULE", "*", "SHOW") == []


def test_user_needs_the_queue_of_a_schedule_and_sees_no_others(client: LocalClient, local: LocalNode) -> None:
    set_schedule(client, name="mine")
    client.call("SCHEDULE", "theirs", "SET", "@daily", "other", "secret")
    client.call("ACL", "SETUSER", "ann", "on", ">pw", "~q", "+@queueadmin", "+@connection")
    ann = local.client()
    assert ann.call("AUTH", "ann", "pw") == b"OK"
    rows = cast("list[list[bytes]]", ann.call("SCHEDULE", "*", "SHOW"))
    assert [row[1] for row in rows] == [b"mine"]
    assert shown(ann, "mine").queue == "q"
    for words in (("theirs", "SHOW"), ("theirs", "RUN"), ("theirs", "DEL"), ("theirs", "SET", "@daily", "q", "b")):
        assert "no permissions to access the queue 'other'" in error(ann.call("SCHEDULE", *words))
    assert "the queue 'other'" in error(ann.call("SCHEDULE", "new", "SET", "@daily", "other", "b"))
