"""Schedules over HTTP: set, show, list, pause, resume, run, delete."""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from disqued.httpapi.schemas import SCHEMAS
from httpapi.nodes import ApiNode, OpenNode, basic

HOURLY: dict[str, Any] = {"when": "every 1 h", "queue": "reports", "body": "sales"}


def put(node: ApiNode, name: str, **fields: object) -> None:
    answer = node.ask("PUT", f"schedules/{quote(name, safe='')}", {**HOURLY, **fields})
    assert (answer.status, answer.json) == (200, {}), answer.data


def listed(node: ApiNode, pattern: str) -> list[str]:
    """The names of the schedules that match a pattern."""
    answer = node.ask("GET", f"schedules?pattern={quote(pattern)}").json
    return [schedule["name"] for schedule in answer["schedules"]]


def test_schedule_is_set_shown_and_deleted(node: ApiNode) -> None:
    put(node, "nightly", when="0 3 * * *", zone="Europe/Berlin", missed="once", strict=False, ttl_s=900, meta="m m")
    shown = node.ask("GET", "schedules/nightly").json
    assert set(SCHEMAS["Schedule"]["properties"]) - {"body_base64"} == set(shown)
    assert (shown["name"], shown["when"], shown["zone"]) == ("nightly", "0 3 * * *", "Europe/Berlin")
    assert (shown["queue"], shown["body"], shown["options"]) == ("reports", "sales", 'TTL 900 META "m m"')
    assert (shown["missed"], shown["strict"], shown["state"]) == ("once", False, "active")
    assert (shown["last_ms"], shown["last_job"], shown["runs"], shown["problem"]) == (None, None, 0, None)
    assert shown["next_ms"] > shown["changed_ms"]
    assert shown["node"] == node.id
    assert node.ask("DELETE", "schedules/nightly").json == {}
    assert node.ask("GET", "schedules/nightly").code == "NOSCHEDULE"


def test_schedule_that_is_set_again_in_the_same_way_stays_as_it_is(node: ApiNode) -> None:
    put(node, "same")
    changed_ms = node.ask("GET", "schedules/same").json["changed_ms"]
    put(node, "same")
    assert node.ask("GET", "schedules/same").json["changed_ms"] == changed_ms


def test_schedules_are_listed_by_pattern_without_their_bodies(node: ApiNode) -> None:
    put(node, "list-b")
    put(node, "list-a")
    assert listed(node, "list-*") == ["list-a", "list-b"]
    assert listed(node, "none-*") == []
    [one] = node.ask("GET", "schedules?pattern=list-a").json["schedules"]
    assert set(one) == set(SCHEMAS["ListedSchedule"]["properties"])
    assert node.ask("GET", "schedules?pattern=none").code == "NOSCHEDULE"
    assert {"list-a", "list-b"} <= {row["name"] for row in node.ask("GET", "schedules").json["schedules"]}


def test_schedule_is_paused_and_resumed(node: ApiNode) -> None:
    put(node, "resting")
    assert node.ask("POST", "schedules/resting/pause").json == {}
    paused = node.ask("GET", "schedules/resting").json
    assert (paused["state"], paused["next_ms"]) == ("paused", None)
    assert node.ask("POST", "schedules/resting/resume").json == {}
    assert node.ask("GET", "schedules/resting").json["state"] == "active"


def test_job_of_a_schedule_is_added_now(node: ApiNode) -> None:
    body = b64encode(b"\xff").decode()
    answer = node.ask("PUT", "schedules/by%20hand", {"when": "@daily", "queue": "now", "body_base64": body})
    assert answer.status == 200, answer.data
    answer = node.ask("POST", "schedules/by%20hand/run")
    assert answer.status == 201
    [job] = node.ask("POST", "queues/now/claims").json["jobs"]
    assert (job["id"], job["body_base64"]) == (answer.json["id"], body)
    assert node.ask("GET", f"jobs/{job['id']}").json["schedule"] == "by hand"
    assert node.ask("GET", "schedules/by%20hand").json["body_base64"] == body
    node.call("PAUSE", "now", "in")
    assert node.ask("POST", "schedules/by%20hand/run").code == "PAUSED"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "absent"),
        ("DELETE", "absent"),
        ("POST", "absent/pause"),
        ("POST", "absent/resume"),
        ("POST", "absent/run"),
    ],
)
def test_schedule_that_does_not_exist_is_not_found(node: ApiNode, method: str, path: str) -> None:
    answer = node.ask(method, f"schedules/{path}")
    assert (answer.status, answer.code) == (404, "NOSCHEDULE")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"when": "61 * * * *"}, "Bad minute"),
        ({"zone": "Europe/Berlin"}, "takes a time zone (TZ) with a cron line only"),
        ({"when": "@daily", "zone": "Mars/X"}, "needs a time zone such as Europe/Berlin"),
        ({"missed": "twice"}, "missed must be one of: skip, once"),
        ({"strict": "yes"}, "strict must be true or false"),
        ({"body": "x" * 32_760}, "at most 32768 are possible"),
        ({"body": "x" * 32_769}, "body must be text of at most 32768 bytes"),
        ({"when": None}, "when is missing"),
        ({"key": "k"}, 'unknown field "key"'),
    ],
)
def test_schedule_that_is_wrong_is_refused_with_the_reason(
    node: ApiNode, fields: dict[str, object], message: str
) -> None:
    answer = node.ask("PUT", "schedules/wrong", {**HOURLY, **fields})
    assert answer.status == 400
    assert message in answer.json["message"]
    assert node.ask("GET", "schedules/wrong").status == 404


def test_read_only_api_shows_schedules_and_changes_none(open_node: OpenNode) -> None:
    node = open_node("--http-api", "read")
    node.call("SCHEDULE", "s", "SET", "@daily", "q", "b")
    assert listed(node, "*") == ["s"]
    for method, path in (("PUT", "s"), ("DELETE", "s"), ("POST", "s/pause"), ("POST", "s/resume"), ("POST", "s/run")):
        assert node.ask(method, f"schedules/{path}", HOURLY if method == "PUT" else {}).code == "FORBIDDEN"
    assert node.ask("GET", "schedules/s").json["state"] == "active"


def test_user_needs_the_command_and_the_queue_of_a_schedule(open_node: OpenNode) -> None:
    node = open_node()
    node.call("ACL", "SETUSER", "ann", "on", ">word", "+schedule", "~reports")
    ann = basic("ann", "word")
    assert node.ask("PUT", "schedules/hers", HOURLY, ann).status == 200
    node.call("SCHEDULE", "theirs", "SET", "@daily", "other", "secret")
    assert [one["name"] for one in node.ask("GET", "schedules", headers=ann).json["schedules"]] == ["hers"]
    assert node.ask("GET", "schedules/theirs", headers=ann).code == "NOPERM"
    assert node.ask("PUT", "schedules/new", {**HOURLY, "queue": "other"}, ann).code == "NOPERM"
    node.call("ACL", "SETUSER", "bob", "on", ">word", "+@consumer", "~*")
    assert node.ask("GET", "schedules", headers=basic("bob", "word")).code == "NOPERM"
