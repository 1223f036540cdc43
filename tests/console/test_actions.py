"""An action of the page becomes a command, or is refused."""

from __future__ import annotations

import json

import pytest

from disqued.config.glob import glob_match
from disqued.console.actions import MAX_BYTES, MAX_JOBS, InvalidActionError, command_of, pattern_of
from disqued.console.text import key_of
from disqued.core.jobs.attributes import MAX_REASON_BYTES
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.httproutes import MAX_NAME_BYTES
from disqued.moves.redrivetask import MOST_PATTERN_BYTES

JOB = "D-" + "0" * 38


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"action": "pause", "queue": "mail", "pause": "in"}, [b"pause", b"mail", b"in"]),
        ({"action": "pause", "queue": "%FF%20", "pause": "none"}, [b"pause", b"\xff ", b"none"]),
        ({"action": "pause", "queue": "q", "pause": "all", "everywhere": True}, [b"pause", b"q", b"all", b"bcast"]),
        ({"action": "requeue", "jobs": [JOB]}, [b"enqueue", JOB.encode()]),
        ({"action": "delete", "jobs": [JOB, JOB]}, [b"deljob", JOB.encode(), JOB.encode()]),
        ({"action": "cancel", "jobs": [JOB]}, [b"fastack", JOB.encode()]),
        ({"action": "move", "jobs": [JOB], "queue": "%FF"}, [b"movejob", JOB.encode(), b"TO", b"\xff"]),
        ({"action": "redrive", "queue": "mail.dead"}, [b"redrive", b"mail.dead", b"RATE", b"500"]),
        (
            {"action": "redrive", "queue": "q", "rate": 7, "reason": "KeyError: '%5Bx%5D*' %5C%3F"},
            [b"redrive", b"q", b"RATE", b"7", b"REASON", rb"KeyError: '\[x]\*' \\\?"],
        ),
        ({"action": "cancel-redrive", "queue": "%FF"}, [b"redrive", b"\xff", b"CANCEL"]),
        ({"action": "schedule", "name": "%FF", "change": "run"}, [b"schedule", b"\xff", b"RUN"]),
    ],
)
def test_action_is_one_command(action: object, words: list[bytes]) -> None:
    assert command_of(json.dumps(action).encode()) == words


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "JSON"),
        (b"\xff", "JSON"),
        (b"[" * 3000, "JSON"),
        (b"[]", "one of: pause, requeue, delete, cancel, move, redrive, cancel-redrive, schedule"),
        (b"{}", "one of: pause, requeue, delete, cancel, move, redrive, cancel-redrive, schedule"),
        (b'{"action": "flushall"}', "one of"),
        (b'{"action": ["pause"]}', "one of"),
        (b'{"action": "pause", "queue": "q", "pause": "bcast"}', "in, out, all, none"),
        (b'{"action": "pause", "queue": "q", "pause": ["in"]}', "in, out, all, none"),
        (b'{"action": "pause", "queue": 7, "pause": "in"}', "give a queue"),
        (b'{"action": "pause", "queue": "q", "pause": "in", "everywhere": 1}', "give a queue"),
        (b'{"action": "schedule", "name": "n", "change": "del"}', "one of: run, pause, resume"),
        (b'{"action": "delete"}', "IDs of 1 to 50 jobs"),
        (b'{"action": "delete", "jobs": []}', "IDs of 1 to 50 jobs"),
        (b'{"action": "delete", "jobs": [1]}', "IDs of 1 to 50 jobs"),
        (b'{"action": "move", "jobs": ["x"]}', "give a queue"),
        (b'{"action": "move", "queue": "q", "jobs": []}', "IDs of 1 to 50 jobs"),
        (b'{"action": "redrive"}', "give a queue"),
        (b'{"action": "redrive", "queue": "q", "reason": ""}', "a reason or none"),
        (b'{"action": "redrive", "queue": "q", "reason": 7}', "a reason or none"),
        (b'{"action": "redrive", "queue": "q", "rate": 0}', "jobs per second"),
        (b'{"action": "redrive", "queue": "q", "rate": true}', "jobs per second"),
        (b'{"action": "redrive", "queue": "q", "rate": 1.5}', "jobs per second"),
        (b'{"action": "cancel-redrive"}', "give a queue"),
        (json.dumps({"action": "delete", "jobs": ["x"] * 51}).encode(), "IDs of 1 to 50 jobs"),
    ],
)
def test_invalid_action_is_refused_with_a_reason(body: bytes, why: str) -> None:
    with pytest.raises(InvalidActionError, match=why):
        command_of(body)


def test_maximum_number_of_jobs_fits_into_the_body() -> None:
    body = json.dumps({"action": "requeue", "jobs": ["x" * JOB_ID_BYTES] * MAX_JOBS})
    assert len(body) <= MAX_BYTES


def test_longest_reason_and_name_fit_into_the_body() -> None:
    action = {
        "action": "redrive",
        "queue": key_of(b"\xff" * MAX_NAME_BYTES),
        "reason": key_of(b"\xff" * MAX_REASON_BYTES),
    }
    assert len(json.dumps(action)) <= MAX_BYTES


def test_pattern_of_a_reason_matches_that_reason_only() -> None:
    for reason in (b"KeyError: '[x]*' \\?", b"", b"plain", b"\xff]["):
        assert glob_match(pattern_of(reason), reason)
        assert not glob_match(pattern_of(reason), reason + b"x")


@pytest.mark.parametrize("reason", [b"a" * 257, b"*" * 200, b"\\" * 128 + b"b" * 900])
def test_pattern_of_a_long_reason_is_its_beginning(reason: bytes) -> None:
    pattern = pattern_of(reason)
    assert len(pattern) <= MOST_PATTERN_BYTES
    assert glob_match(pattern, reason)
    assert glob_match(pattern, reason[:200] + b"x") == (len(reason) > 900 or reason[:1] == b"*")
