"""Valid input that the original does not know: a file with all kinds of records, frames of each message of our own."""

from __future__ import annotations

import json
from typing import Any, Final

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter, number
from disqued.config import Config
from disqued.core.cluster.entrykinds import SETTING
from disqued.core.jobs.attributes import DEAD, META, ORIGIN_QUEUE, PRIORITY, REASON, i32_value, i64_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.codec import pack_for_bus
from disqued.core.jobs.job import Job
from disqued.counts.payload import JOBS, Question, pack_answer, pack_question
from disqued.httpapi.kinds import Kind
from disqued.httpapi.operation import BODY, QUERY
from disqued.httpapi.table import OPERATIONS
from disqued.moves.redrivetask import GRANT, REPORT, RedriveMessage, Task
from disqued.node import ROOMS
from disqued.patterns.payload import pack as pack_patterns
from disqued.resp.writer import request
from disqued.settings.entries import make
from disqued.testing.local import LocalNode

_FILE: Final = "disque.aof"
_ANY: Final = (b"", bytes(16))
_JOB_ID: Final = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"
_VERSION: Final = 1_800_000_000_000
_BLOCK: Final = {
    PRIORITY: i32_value(-7),
    META: b"trace",
    ORIGIN_QUEUE: b"mail",
    REASON: b"no such user",
    DEAD: i64_value(_VERSION),
}


def append_only_file() -> bytes:
    """A file that a node wrote: jobs with and without attributes, delayed and ended ones, and a paused queue."""
    config = Config()
    config.assign("appendonly", True)
    config.assign("claim_log", True)
    local = LocalNode(config)
    while local.node.state.loading:
        local.run(milliseconds=1)
    client = local.client()
    finished = client.add("mail")
    client.call("ADDJOB", "mail", "urgent", 0, "PRIORITY", 9, "META", "trace")
    failed, poison = client.add("later"), client.add("bad")
    client.call("GETJOB", "COUNT", 2, "FROM", "later", "bad")
    client.call("NACK", failed, "DELAY", 60, "REASON", "no such user")
    client.call("NACK", poison, "REASON", "cannot be parsed", "DEAD")
    client.call("CONFIG", "SET", "maxmemory", "100mb")
    for percent in (10, 0):  # with 0, the record is forgotten at once
        client.call("CONFIG", "SET", "records-max", percent)
        client.call("ACKJOB", client.add("mail", "body", "RETAIN", 60), "RESULT", "42")
    logged = client.add("logged")
    client.call("GETJOB", "WITHCLAIM", "FROM", "logged")
    client.call("LOGJOB", logged, "half of it is done")
    client.call("PAUSE", "mail", "in")
    client.call("ACKJOB", finished)
    local.run(seconds=2)
    return bytes(local.host.disk.files[_FILE])


def api_requests() -> list[bytes]:
    """A request for each operation of the HTTP API, without options and with all of them."""
    requests: list[bytes] = []
    for operation in OPERATIONS:
        path = operation.path.format(queue="mail", id=_JOB_ID, name="nightly")
        query = "&".join(f"{one.name}={str(_value(one.kind)).lower()}" for one in operation.among(QUERY))
        fields = {one.name: _value(one.kind) for one in operation.among(BODY)}
        needed = {one.name: _value(one.kind) for one in operation.among(BODY) if one.required}
        for target, content in ((path, needed), (f"{path}?{query}", fields)):
            body = json.dumps(content).encode() if fields else b""
            head = f"{operation.method} /v1/{target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            requests.append(head.encode() + body)
    return requests


def _value(kind: Kind) -> Any:
    """A valid value."""
    schema = kind.schema
    if "enum" in schema:
        return schema["enum"][-1]
    return {"integer": schema.get("minimum", 0), "boolean": True, "array": ["mail"], "string": "x"}[schema["type"]]


def frames(node_id: bytes, job_id: bytes) -> list[bytes]:
    """Frames of each message of our own, with the ID of a job, and jobs with attributes in those of the original.

    A message whose payload has a format of its own, and that `_payloads` lacks, has a payload that is not valid.
    """
    bus = FrameWriter(node_id, 7711)
    job = Job(job_id, b"mail", b"body", _VERSION * 10**6, _VERSION // 1000 + 86_400, 0, 300, 2)
    job.extra = attributes_of(_BLOCK)
    packed = pack_for_bus(job, _VERSION, (1).to_bytes(4, "little") + node_id)
    payloads = _payloads(node_id)
    found = [bus.jobs(kind, [packed] * count) for kind in (kinds.REPLJOB, kinds.YOURJOBS) for count in (1, 3)]
    for message in ROOMS.messages:
        kind = message.number
        if kind < kinds.HOST:
            continue
        if message.payload == kinds.OF_JOB_ID:
            found += [bus.about_job(kind, job_id, delay, flags) for delay in (0, 5000) for flags in (0, 2)]
        elif message.payload == kinds.OF_QUEUE:
            found += [bus.about_queue(kind, name, 1) for name in (b"mail", b"")]
        elif message.payload == kinds.OF_JOB_IDS:
            first = next(single for single, many in kinds.LISTS.items() if many == kind)
            found.append(bus.about_jobs(first, [job_id, number(1)] * 3))
        else:
            found += [bus.other(kind, payload) for payload in payloads.get(message.name, _ANY)]
    return found


def _payloads(node_id: bytes) -> dict[str, tuple[bytes, ...]]:
    """The payloads of messages whose format is their own, by name."""
    setting = make(SETTING, b"mail:*", b"retry", b"30", _VERSION, node_id)
    removed = make(SETTING, b"mail", b"limit", b"", _VERSION + 1, node_id, removed=True)
    task = Task(b"mail.dead", b"", b"no *", 60, _VERSION)
    asked = bytes(4) + request((b"default", b"1")) + request((b"QLEN", b"mail"))
    text = (b"host.example.com", b"")
    return {
        "SETTINGS": (setting.wire, setting.wire + removed.wire, b""),
        "SETTINGSDIGEST": (bytes(8), b"\x01" * 8),
        "PATTERNS": (pack_patterns([b"mail:*", b"a?[b-c]"]), b""),
        "REDRIVE": tuple(RedriveMessage(kind, task, 5, 4, 3, 2).pack() for kind in (GRANT, REPORT)),
        "COUNTASK": (pack_question(Question(1, JOBS, 0, b"mail")),),
        "COUNTED": (pack_answer(1, [5, 4, 3, 2, 1, 0]),),
        "QUERY": (asked,),
        "RESULT": (bytes(4) + b":1\r\n",),
        **dict.fromkeys(("HOST", "ZONE", "EXTERNAL", "CHALLENGE", "RESPONSE", "PROOF"), text),
    }
