"""The JSON schemas of answers, by the names that operations use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from disqued.httpapi.kinds import Schema

_ID: Final[Schema] = {"type": "string", "examples": ["D-5b5e9a1c-0JxGUoTcaJUpGZzrbYnMmHhE-05a1"]}


def _bytes(what: str) -> dict[str, Schema]:
    """The two fields for some bytes."""
    return {
        what: {"type": "string", "description": f"The {what}, if it is UTF-8 text and `base64` was not requested."},
        f"{what}_base64": {"type": "string", "contentEncoding": "base64", "description": f"Otherwise the {what}."},
    }


def _integer(about: str) -> Schema:
    return {"type": "integer", "description": about}


def _text_or_null(about: str) -> Schema:
    return {"type": ["string", "null"], "description": about}


def _time_or_null(about: str) -> Schema:
    return {"type": ["integer", "null"], "description": f"{about}, in unix milliseconds."}


def _object(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_DELIVERED: Final = _object(
    {
        "id": _ID,
        "queue": {"type": "string"},
        **_bytes("body"),
        **_bytes("meta"),
        "priority": _integer("The priority."),
        "claim": {"type": "string", "description": "The claim: greater than those of all deliveries before."},
        "nacks": _integer("How often workers gave the job back."),
        "additional_deliveries": _integer("How often it was delivered again for another reason."),
        "requeue_in_ms": {
            "type": ["integer", "null"],
            "description": "When this node queues the job again unless it is acknowledged or postponed, in "
            "milliseconds; null for an at-most-once job.",
        },
    },
    ("id", "queue", "claim"),
)
_OUTCOME: Final[Schema] = {
    "type": "string",
    "enum": ["waiting", "done", "dead", "moved", "expired", "deleted"],
}
_DESCRIBED: Final = _object(
    {
        "id": _ID,
        "queue": {"type": "string"},
        "state": {"type": "string", "enum": ["wait-repl", "active", "queued", "acked"]},
        "replicate": _integer("How many nodes should have a copy."),
        "ttl_s": _integer("Seconds until the job expires."),
        "created_ms": _integer("When it was added, in unix milliseconds."),
        "delay_s": _integer("The DELAY it was added with."),
        "retry_s": _integer("Seconds after which it is delivered again; 0 for an at-most-once job."),
        "nacks": _integer("How often workers gave it back."),
        "additional_deliveries": _integer("How often it was delivered again for another reason."),
        "after": {"type": "array", "items": {"type": "string"}, "description": "Jobs that must be done before."},
        "waits_for": {"type": "array", "items": {"type": "string"}, "description": "Those that are not done yet."},
        "nodes_delivered": {"type": "array", "items": {"type": "string"}, "description": "Nodes that may have it."},
        "nodes_confirmed": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Nodes that confirmed its acknowledgement.",
        },
        "requeue_in_ms": {"type": ["integer", "null"]},
        "awake_in_ms": {"type": ["integer", "null"]},
        **_bytes("body"),
        **_bytes("meta"),
    },
    ("id", "queue", "state"),
)
_SCHEDULE: Final[Mapping[str, Schema]] = {
    "name": {"type": "string"},
    "when": {"type": "string", "description": "When it is due, as it was set."},
    "zone": _text_or_null("The time zone of a cron line; null for other schedules."),
    "queue": {"type": "string"},
    "missed": {"type": "string", "enum": ["skip", "once"]},
    "strict": {"type": "boolean"},
    "state": {
        "type": "string",
        "enum": ["active", "paused", "done", "no-majority", "invalid"],
        "description": "What it does, as far as this node sees.",
    },
    "next_ms": _time_or_null("When it is due next"),
    "last_ms": _time_or_null("The time of the last run"),
    "last_job": _text_or_null("The ID of the job of the last run."),
    "runs": _integer("How many runs there were."),
    "runs_missed": _integer("How many times passed without a run."),
    "problem": _text_or_null("Why the last run failed or was missed."),
    "node": _text_or_null("The ID of the node that fires it."),
    "changed_ms": _time_or_null("When it was set, paused or resumed"),
}

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Error": _object(
        {
            "code": {"type": "string", "description": "The kind of error, for programs.", "examples": ["NOJOB"]},
            "message": {"type": "string", "description": "What is wrong and what to do, for people."},
        },
        ("code", "message"),
    ),
    "Added": _object(
        {
            "id": _ID,
            "copies": {
                "type": ["integer", "null"],
                "description": "How many nodes have confirmed the job, this one included; null if it had been added "
                "before.",
            },
        },
        ("id", "copies"),
    ),
    "Delivered": _DELIVERED,
    "Claims": _object(
        {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Delivered"}}, "node": {"type": "string"}},
        ("jobs", "node"),
    ),
    "Job": _DESCRIBED,
    "Acknowledged": _object(
        {"known": {"type": "boolean", "description": "Whether this node knew the job."}}, ("known",)
    ),
    "Postponed": _object({"postponed_s": _integer("Seconds until the job may be delivered again.")}, ("postponed_s",)),
    "Logged": _object({"copies": _integer("How many nodes have the entry, this one included.")}, ("copies",)),
    "Entry": _object(
        {
            "claim": {"type": "string", "description": "The claim of the delivery."},
            "seq": _integer("The number of the entry, from 0 on for each claim."),
            "at_ms": _integer("When it was added, in unix milliseconds."),
            **_bytes("entry"),
        },
        ("claim", "seq", "at_ms"),
    ),
    "Log": _object({"entries": {"type": "array", "items": {"$ref": "#/components/schemas/Entry"}}}, ("entries",)),
    "Fate": _object(
        {
            "outcome": _OUTCOME,
            "ended_ms": {"type": ["integer", "null"], "description": "When it ended, in unix milliseconds."},
            "claim": {"type": ["string", "null"], "description": "The claim under which it was acknowledged."},
            **_bytes("result"),
        },
        ("outcome",),
    ),
    "Outcome": _object({"outcome": _OUTCOME, **_bytes("result")}, ("outcome",)),
    "Empty": _object({}),
    "Queues": _object(
        {
            "queues": {"type": "array", "items": {"type": "string"}},
            "cursor": {"type": ["string", "null"], "description": "Continue with it; null if there are no more."},
        },
        ("queues", "cursor"),
    ),
    "Counts": _object(
        {
            "queued": _integer("Jobs that wait in their queue."),
            "leased": _integer("Jobs that workers have."),
            "delayed": _integer("Jobs that wait for the end of a delay."),
            "dead": _integer("Dead letters."),
            "held": _integer("Jobs that wait for other jobs to be done."),
            "records": _integer("Records of jobs that have ended; each node that had a job has one."),
            "nodes_answered": _integer("Nodes that were counted."),
            "nodes_known": _integer("Nodes of the cluster."),
        },
        ("queued", "leased", "delayed", "dead", "held", "records", "nodes_answered", "nodes_known"),
    ),
    "Schedules": _object(
        {"schedules": {"type": "array", "items": {"$ref": "#/components/schemas/ListedSchedule"}}}, ("schedules",)
    ),
    "ListedSchedule": _object(_SCHEDULE, tuple(_SCHEDULE)),
    "Schedule": _object(
        {
            **_SCHEDULE,
            **_bytes("body"),
            "options": _text_or_null("The options of ADDJOB for its jobs, as in a command line."),
        },
        tuple(_SCHEDULE),
    ),
    "Run": _object({"id": _ID}, ("id",)),
}
