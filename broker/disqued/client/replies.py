"""Decodes replies into values: one function for each reply format.

Records are decoded by field name, not by position, because fields may be added. A reply with another format raises
`UnexpectedReply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from disqued.client.errors import ResponseError, UnexpectedReply
from disqued.client.values import (
    Added,
    Hello,
    Job,
    JobDetails,
    JobEnd,
    JobFate,
    JobId,
    JobState,
    Limit,
    LogEntry,
    NodeInfo,
    OrderedGroup,
    OrderedStatus,
    Outcome,
    PauseState,
    Purged,
    QueueCount,
    QueueKind,
    QueueSetting,
    QueueStats,
    RedriveStatus,
    RepairStatus,
    Schedule,
    ScheduleState,
    StoredSetting,
)
from disqued.client.wire import Reply, to_text

T = TypeVar("T")


def raw(reply: Reply) -> Reply:
    """Return the reply as it is."""
    return reply


def integer(reply: Reply) -> int:
    """Decode an integer."""
    if isinstance(reply, int):
        return reply
    raise _unexpected("an integer", reply)


def body(reply: Reply) -> bytes:
    """Decode a string whose bytes the client does not interpret."""
    if isinstance(reply, bytes):
        return reply
    raise _unexpected("a string", reply)


def text(reply: Reply) -> str:
    """Decode a name or a word."""
    if isinstance(reply, bytes):
        return to_text(reply)
    raise _unexpected("a string", reply)


def job_id(reply: Reply) -> JobId:
    """Decode a job ID."""
    return JobId(text(reply))


def added(reply: Reply) -> Added:
    """Decode the reply of ADDJOB WITHCOPIES."""
    items = array(reply)
    if len(items) != 2:
        raise _unexpected("an ID and a number of copies", reply)
    return Added(job_id(items[0]), _optional_integer(items[1]))


def job_ids(reply: Reply) -> list[JobId | ResponseError]:
    """Decode the IDs of jobs, some of which may be errors."""
    return [item if isinstance(item, ResponseError) else job_id(item) for item in array(reply)]


def array(reply: Reply) -> list[Reply]:
    """Decode an array."""
    if isinstance(reply, list):
        return reply
    raise _unexpected("an array", reply)


def pause_state(reply: Reply) -> PauseState:
    """Decode the reply of PAUSE."""
    return cast("PauseState", text(reply))


def optional(decode: Callable[[Reply], T]) -> Callable[[Reply], T | None]:
    """Extend a decoder to optional values: null becomes None."""
    return lambda reply: None if reply is None else decode(reply)


def _optional_integer(reply: Reply) -> int | None:
    return None if reply is None else integer(reply)


def jobs(reply: Reply) -> list[Job]:
    """Decode the reply of GETJOB and QPEEK; null, which GETJOB returns after its timeout, is an empty list."""
    return [] if reply is None else [_job(array(item)) for item in array(reply)]


def _job(items: list[Reply]) -> Job:
    if len(items) < 3:
        raise _unexpected("a job of at least 3 items", items)
    queue, identifier, content, *more = items
    if not more:
        return Job(text(queue), job_id(identifier), body(content))
    named = fields(more)
    return Job(
        text(queue),
        job_id(identifier),
        body(content),
        _optional_integer(named.get("nacks")),
        _optional_integer(named.get("additional-deliveries")),
        _optional_integer(named.get("requeue-in-ms")),
        optional(body)(named.get("meta")),
        _optional_integer(named.get("priority")),
        _optional_integer(named.get("claim")),
        _optional_integer(named.get("lease")),
    )


def fields(items: Reply) -> dict[str, Reply]:
    """Decode a flat array of names and values as a dictionary."""
    pairs = array(items)
    if len(pairs) % 2:
        raise _unexpected("pairs of names and values", items)
    return {text(name): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _known(items: Reply, what: str) -> Callable[[str], Reply]:
    """Return a lookup by field name whose error names the missing field."""
    named = fields(items)

    def value(name: str) -> Reply:
        if name not in named:
            raise UnexpectedReply(f"the reply to {what} has no field {name!r}, only {', '.join(named)}")
        return named[name]

    return value


def log_entries(reply: Reply) -> list[LogEntry]:
    """Decode the reply of SHOWLOG."""
    entries: list[LogEntry] = []
    for item in array(reply):
        parts = array(item)
        if len(parts) != 4:
            raise _unexpected("a claim, a number, a time and an entry", item)
        claim, seq, unix_ms, entry = parts
        entries.append(LogEntry(integer(claim), integer(seq), integer(unix_ms), body(entry)))
    return entries


def job_details(reply: Reply) -> JobDetails:
    """Decode the reply of SHOW for a known job. Attributes that the job does not have are left out there."""
    field = _known(reply, "SHOW")
    named = fields(reply)
    return JobDetails(
        id=job_id(field("id")),
        queue=optional(text)(field("queue")),
        state=cast("JobState", text(field("state"))),
        replicate=integer(field("repl")),
        ttl_s=integer(field("ttl")),
        ctime=integer(field("ctime")),
        delay_s=integer(field("delay")),
        retry_s=integer(field("retry")),
        nacks=integer(field("nacks")),
        additional_deliveries=integer(field("additional-deliveries")),
        nodes_delivered=tuple(_texts(field("nodes-delivered"))),
        nodes_confirmed=tuple(_texts(field("nodes-confirmed"))),
        next_requeue_within_ms=optional(integer)(field("next-requeue-within")),
        next_awake_within_ms=optional(integer)(field("next-awake-within")),
        body=optional(body)(field("body")),
        priority=integer(named.get("priority", 0)),
        meta=body(named.get("meta", b"")),
        claim=_optional_integer(named.get("claim")),
        note=optional(text)(named.get("note")),
        reason=optional(text)(named.get("reason")),
        origin_queue=optional(text)(named.get("origin-queue")),
        origin_id=optional(job_id)(named.get("origin-id")),
        moves=integer(named.get("moves", 0)),
        attempts_before=integer(named.get("attempts", 0)),
        dead_since_ms=_optional_integer(named.get("dead-since")),
        after=tuple(map(job_id, array(named.get("after", [])))),
        waits_for=tuple(map(job_id, array(named.get("waits-for", [])))),
        otherwise=optional(text)(named.get("else")),
        children=tuple(map(job_id, array(named.get("children", [])))),
    )


def queue_stats(reply: Reply) -> QueueStats:
    """Decode the reply of QSTAT for an existing queue."""
    field = _known(reply, "QSTAT")
    named = fields(reply)
    by_priority = fields(named.get("priorities", []))
    return QueueStats(
        name=text(field("name")),
        length=integer(field("len")),
        age_s=integer(named.get("age", 0)),
        idle_s=integer(field("idle")),
        blocked_clients=integer(field("blocked")),
        import_from=tuple(_texts(field("import-from"))),
        import_rate=integer(field("import-rate")),
        jobs_in=integer(field("jobs-in")),
        jobs_out=integer(field("jobs-out")),
        pause=pause_state(field("pause")),
        length_by_priority={band: integer(count) for band, count in by_priority.items()},
        leased=integer(named.get("leased", 0)),
        delayed=integer(named.get("delayed", 0)),
        dead=integer(named.get("dead", 0)),
        oldest_ms=integer(named.get("oldest-ms", 0)),
        settings=tuple(_texts(named.get("settings", []))),
        held=integer(named.get("held", 0)),
        limited=cast("Limit", text(named.get("limited", b"no"))),
        kind=queue_kind(named.get("type", b"jobs")),
    )


def queue_kind(reply: Reply) -> QueueKind:
    """Decode the reply of QTYPE."""
    return cast("QueueKind", text(reply))


def ordered_status(reply: Reply) -> OrderedStatus:
    """Decode the reply of CLUSTER ORDERED STATUS."""
    field = _known(reply, "CLUSTER ORDERED STATUS")
    return OrderedStatus(
        catalog=text(field("catalog")),
        version=integer(field("version")),
        conflict=text(field("conflict")),
        error=text(field("error")),
        members=_ordered_group(field("members")),
        queues=tuple(map(_ordered_group, array(field("queues")))),
    )


def _ordered_group(reply: Reply) -> OrderedGroup:
    field = _known(reply, "CLUSTER ORDERED STATUS")
    named = fields(reply)
    return OrderedGroup(
        queue=text(field("queue")),
        group=integer(field("group")),
        leader=text(field("leader")),
        replicas=tuple(_texts(field("replicas"))),
        settled=integer(named.get("settled", 1)) == 1,
        single=text(named.get("single", b"no")) == "yes",
        prefetch=integer(named.get("prefetch", 0)),
        pause=pause_state(named["pause"]) if named.get("pause") else None,
        lags={node: integer(lag) for node, lag in fields(named.get("lags", [])).items()},
        ready=_optional_integer(named.get("ready")),
        leased=_optional_integer(named.get("leased")),
        delayed=_optional_integer(named.get("delayed")),
        dead=_optional_integer(named.get("dead")),
        consumers=_optional_integer(named.get("consumers")),
    )


def queue_count(reply: Reply) -> QueueCount:
    """Decode the reply of QCOUNT."""
    field = _known(reply, "QCOUNT")
    return QueueCount(
        queued=integer(field("queued")),
        leased=integer(field("leased")),
        delayed=integer(field("delayed")),
        dead=integer(field("dead")),
        nodes_answered=integer(field("nodes-answered")),
        nodes_known=integer(field("nodes-known")),
        held=integer(fields(reply).get("held", 0)),
        records=integer(fields(reply).get("records", 0)),
    )


def redrive_status(reply: Reply) -> RedriveStatus:
    """Decode the reply of REDRIVE STATUS."""
    field = _known(reply, "REDRIVE STATUS")
    return RedriveStatus(
        state=text(field("state")),
        moved=integer(field("moved")),
        left=integer(field("left")),
        failed=integer(field("failed")),
        started_ms=integer(field("started")),
        rate=_optional_integer(fields(reply).get("rate")),
    )


def repair_status(reply: Reply) -> RepairStatus:
    """Decode the reply of CLUSTER REPAIR STATUS."""
    field = _known(reply, "CLUSTER REPAIR STATUS")
    return RepairStatus(
        enabled=text(field("enabled")) == "yes",
        done=text(field("done")) == "yes",
        waits_for=text(field("waits-for")),
        seconds_without_progress=integer(field("seconds-without-progress")),
        jobs_under_replicated=integer(field("jobs-under-replicated")),
        jobs_in_flight=integer(field("jobs-in-flight")),
        jobs_without_node=integer(field("jobs-without-node")),
        copies_rebuilt=integer(field("copies-rebuilt")),
    )


def schedule(reply: Reply) -> Schedule:
    """Decode the reply of SCHEDULE SHOW for one schedule."""
    field = _known(reply, "SCHEDULE SHOW")
    return Schedule(
        name=text(field("name")),
        when=text(field("when")),
        zone=text(field("zone")),
        queue=text(field("queue")),
        body=body(field("body")),
        options=text(field("options")),
        missed="once" if text(field("missed")) == "once" else "skip",
        strict=text(field("strict")) == "yes",
        state=cast("ScheduleState", text(field("state"))),
        next_ms=integer(field("next-ms")),
        last_ms=integer(field("last-ms")),
        last_job=text(field("last-job")),
        runs=integer(field("runs")),
        runs_missed=integer(field("runs-missed")),
        problem=text(field("problem")),
        node=text(field("node")),
        changed_ms=integer(field("changed-ms")),
    )


def schedules(reply: Reply) -> list[Schedule]:
    """Decode the reply of SCHEDULE SHOW for a pattern, or for one name."""
    rows = array(reply)
    if rows and not isinstance(rows[0], list):
        return [schedule(reply)]
    return [schedule(row) for row in rows]


def purged(reply: Reply) -> Purged:
    """Decode the reply of QPURGE."""
    field = _known(reply, "QPURGE")
    return Purged(integer(field("deleted")), integer(field("nodes-answered")), integer(field("nodes-known")))


def job_fate(reply: Reply) -> JobFate:
    """Decode the reply of RESULT: outcome, time, claim and result."""
    if not isinstance(reply, list) or len(reply) != 4:
        raise _unexpected("the end of a job", reply)
    outcome, ended_ms, claim, result = reply
    return JobFate(_outcome(outcome), integer(ended_ms) or None, integer(claim) or None, optional(body)(result))


def job_fates(ids: Sequence[str]) -> Callable[[Reply], dict[str, JobFate | None]]:
    """Return a decoder for the reply of RESULT about these jobs; a single one has no list around it."""

    def decode(reply: Reply) -> dict[str, JobFate | None]:
        if len(ids) == 1:
            return {ids[0]: optional(job_fate)(reply)}
        if not isinstance(reply, list) or len(reply) != len(ids):
            raise _unexpected(f"the ends of {len(ids)} jobs", reply)
        return {
            job_id: job_fate(row[1:]) if isinstance(row, list) else optional(job_fate)(row)
            for job_id, row in zip(ids, reply, strict=True)
        }

    return decode


def job_ends(reply: Reply) -> dict[str, JobEnd]:
    """Decode the reply of WAITJOB: ID, outcome and result of each job; empty for null."""
    ends: dict[str, JobEnd] = {}
    for row in reply if isinstance(reply, list) else []:
        if not isinstance(row, list) or len(row) != 3:
            raise _unexpected("the end of a job", row)
        ends[job_id(row[0])] = JobEnd(_outcome(row[1]), optional(body)(row[2]))
    return ends


def _outcome(reply: Reply) -> Outcome:
    return cast("Outcome", text(reply))


def queue_settings(reply: Reply) -> dict[str, QueueSetting]:
    """Decode the reply of QCONF GET: name, value and source of each setting."""
    words = list(_texts(reply))
    if len(words) % 3:
        raise _unexpected("settings of 3 items", reply)
    return {
        name: QueueSetting(value, source)
        for name, value, source in zip(words[::3], words[1::3], words[2::3], strict=True)
    }


def stored_settings(reply: Reply) -> list[StoredSetting]:
    """Decode the reply of QCONF SHOW: a row for each setting."""
    return [_stored_setting(array(row)) for row in array(reply)]


def _stored_setting(row: list[Reply]) -> StoredSetting:
    if len(row) < 5:
        raise _unexpected("a setting of 5 items", row)
    name, setting, value, changed_ms, node_id = row[:5]
    return StoredSetting(text(name), text(setting), text(value), integer(changed_ms), text(node_id))


def hello(reply: Reply) -> Hello:
    """Decode the reply of HELLO: format version, own ID, then a row for each node."""
    version, *rest = array(reply)
    if version != 1 or not rest:
        raise _unexpected("HELLO in format 1", reply)
    node_id, *nodes = rest
    return Hello(text(node_id), tuple(_node(array(row)) for row in nodes))


def _node(row: list[Reply]) -> NodeInfo:
    if len(row) < 4:
        raise _unexpected("a node of 4 items", row)
    identifier, host, port, priority = (text(item) for item in row[:4])
    return NodeInfo(identifier, host, int(port), int(priority))


def info(reply: Reply) -> dict[str, str]:
    """Decode the `name:value` lines of INFO, without the section titles."""
    lines = text(reply).splitlines()
    pairs = (line.partition(":") for line in lines if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def page(decode: Callable[[Reply], T]) -> Callable[[Reply], tuple[int, list[T]]]:
    """Return a decoder of one page of a scan: the next cursor, 0 at the end, and the elements."""

    def read(reply: Reply) -> tuple[int, list[T]]:
        items = array(reply)
        if len(items) != 2:
            raise _unexpected("a cursor and its items", reply)
        cursor, found = items
        return int(text(cursor)), [decode(item) for item in array(found)]

    return read


def _texts(reply: Reply) -> Iterator[str]:
    return (text(item) for item in array(reply))


def _unexpected(wanted: str, reply: Reply) -> Exception:
    if isinstance(reply, ResponseError):
        return reply
    return UnexpectedReply(f"expected {wanted}, got {reply!r:.200}")
