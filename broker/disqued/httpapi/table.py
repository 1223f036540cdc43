"""The table of all operations."""

from __future__ import annotations

from typing import Final

from disqued.core.cluster.entrykinds import MOST_SCHEDULE_BYTES
from disqued.core.fates.fate import MAX_RESULT_BYTES
from disqued.core.jobs.attributes import (
    LEAST_PRIORITY,
    MAX_META_BYTES,
    MAX_NOTE_BYTES,
    MAX_REASON_BYTES,
    MOST_PRIORITY,
)
from disqued.core.jobs.jobid import MAX_TTL_S
from disqued.core.jobs.parents import MAX_PARENTS
from disqued.core.queues.settings import MOST_RETAIN_S
from disqued.httpapi import results
from disqued.httpapi.kinds import Data, Flag, Integer, Name, OneOf, Text, Texts, Token, Wait, YesNo
from disqued.httpapi.operation import BODY, PATH, QUERY, Operation, Parameter, Result
from disqued.progress.payload import MAX_SEQ
from disqued.schedule.payload import MOST_NAME_BYTES
from disqued.schedule.timing import MOST_SPEC_BYTES, MOST_ZONE_BYTES

MAX_BODY_BYTES: Final = 1 << 20
"""The longest body of a job that a request can add, and that an answer can have."""
MOST_CLAIMED: Final = 100
MOST_QUEUES: Final = 64
LONGEST_WAIT_MS: Final = 600_000
LONGEST_COUNT_MS: Final = 60_000
MOST_LISTED: Final = 1000
_MAX_NAME_BYTES: Final = 1024
_MAX_KEY_BYTES: Final = 1024
_MAX_ID_BYTES: Final = 64
_MAX_ENTRY_BYTES: Final = 64 << 10
_MAX_REPLICATE: Final = 65535
CREATED: Final = 201

_NAME: Final = Text(_MAX_NAME_BYTES, "mail")
_ID: Final = Text(_MAX_ID_BYTES, "D-5b5e9a1c-0JxGUoTcaJUpGZzrbYnMmHhE-05a1")
_SECONDS: Final = Integer(0, MAX_TTL_S)
_QUEUE: Final = Parameter("queue", PATH, _NAME, "The name of the queue, percent-encoded.", required=True)
_CLAIM: Final = Parameter(
    "claim", BODY, Token(), "The claim of the delivery: refused with `STALE` if the job was delivered again.", "CLAIM"
)
_JOB: Final = Parameter("id", PATH, _ID, "The ID of the job.", required=True)

_REPLICATE: Final = Parameter(
    "replicate", BODY, Integer(1, _MAX_REPLICATE), "How many nodes must have a copy.", "REPLICATE"
)
_DELAY: Final = Parameter("delay_s", BODY, _SECONDS, "Seconds before the first delivery.", "DELAY")
_RETRY: Final = Parameter(
    "retry_s", BODY, _SECONDS, "Seconds before an unacknowledged job is delivered again; 0 never.", "RETRY"
)
_TTL: Final = Parameter("ttl_s", BODY, Integer(1, MAX_TTL_S), "Seconds after which the job is deleted.", "TTL")
_MAXLEN: Final = Parameter("maxlen", BODY, Integer(1, 1 << 62), "Refuse the job if the queue has this many.", "MAXLEN")
_PRIORITY: Final = Parameter(
    "priority", BODY, Integer(LEAST_PRIORITY, MOST_PRIORITY), "Higher ones are delivered first.", "PRIORITY"
)
_META: Final = Parameter("meta", BODY, Data(MAX_META_BYTES), "Metadata beside the body, such as a trace ID.", "META")
_RETAIN: Final = Parameter(
    "retain_s", BODY, Integer(0, MOST_RETAIN_S), "Seconds for which the end of the job is remembered.", "RETAIN"
)


def _base64(where: str, what: str = "body") -> Parameter:
    return Parameter("base64", where, Flag(), f"Answer with `{what}_base64` even if the {what} is text.")


ADD: Final = Operation(
    "POST",
    "queues/{queue}/jobs",
    "addJob",
    "Add a job.",
    "Answers when the job has the copies that were requested. If the answer is 504 (`NOREPL`) or does not arrive, the "
    "job may exist or not: repeat the request with the same `id`, at any node, and there is one job.",
    ("ADDJOB", "{queue}", "{body}", "{timeout_ms}", "*", "WITHCOPIES"),
    (
        _QUEUE,
        Parameter("body", BODY, Data(MAX_BODY_BYTES), "The data for the worker.", required=True),
        Parameter(
            "timeout_ms",
            BODY,
            Integer(0, LONGEST_WAIT_MS),
            "How long the node may take to replicate the job, in milliseconds; 0 for no limit.",
            default=5000,
        ),
        _REPLICATE,
        Parameter("sync", BODY, Integer(1, _MAX_REPLICATE), "Answer when this many copies are confirmed.", "SYNC"),
        _DELAY,
        _RETRY,
        _TTL,
        _MAXLEN,
        Parameter("key", BODY, Text(_MAX_KEY_BYTES), "Add no second job with this key at this node.", "KEY"),
        Parameter("window_s", BODY, Integer(1, MAX_TTL_S), "How long the key is remembered.", "WINDOW", needs="key"),
        Parameter(
            "until",
            BODY,
            OneOf(("window", "done")),
            "With `done` the key is free when the job has ended.",
            "UNTIL",
            needs="key",
        ),
        Parameter(
            "id", BODY, _ID, "The ID of the job, or the 24 characters in its middle: repetitions add one job.", "ID"
        ),
        _PRIORITY,
        _META,
        _RETAIN,
        Parameter(
            "after",
            BODY,
            Texts(_ID, MAX_PARENTS),
            "IDs of jobs that must be done before the job is delivered; add them with `retain_s`.",
            "AFTER",
        ),
        Parameter(
            "else",
            BODY,
            OneOf(("dead", "run", "drop")),
            "What happens if one can no longer be done: a dead letter (the default), the job runs, or it is dropped.",
            "ELSE",
            needs="after",
        ),
        Parameter("async", BODY, Flag(), "Answer at once, and replicate in the background.", "ASYNC"),
    ),
    Result(CREATED, "The job was added.", "Added", results.added),
    ("NOREPL", "NOPARENT", "PAUSED", "MAXLEN", "EXISTS", "OOM", "CLOCK", "MISCONF"),
)

CLAIM: Final = Operation(
    "POST",
    "queues/{queue}/claims",
    "claimJobs",
    "Take jobs from a queue, or wait for one.",
    "Each job has a claim, a number that grows with every delivery: pass it on to what the job changes, which can then "
    "refuse an older one, and give it with `ack`, `nack` and `working`. Acknowledge each job with `ack` when it is "
    "done; otherwise it is delivered again after its retry time. `nack` gives it back at once, `working` asks for more "
    "time: send both to the node that delivered it (`node`). Without a job in time, the list is empty. If the "
    "client disconnects while it waits, it loses no job.",
    ("GETJOB", "WITHCOUNTERS", "WITHREQUEUE", "WITHCLAIM", "WITHMETA", "*", "FROM", "{queue}", "{more_queues}"),
    (
        _QUEUE,
        Parameter(
            "timeout_ms",
            BODY,
            Wait(LONGEST_WAIT_MS),
            "How long to wait for a job, in milliseconds; 0 is not at all.",
            "TIMEOUT",
            default=0,
        ),
        Parameter("count", BODY, Integer(1, MOST_CLAIMED), "How many jobs to take at most.", "COUNT", default=1),
        Parameter("more_queues", BODY, Texts(_NAME, MOST_QUEUES), "Further queues, in the order of preference."),
        _base64(BODY),
    ),
    Result(200, "The jobs; none if the time is over.", "Claims", lambda reply, _values: reply),
    ("LEAVING", "CLOCK"),
    waits=True,
    delivers=True,
)

SHOW: Final = Operation(
    "GET",
    "jobs/{id}",
    "showJob",
    "Describe a job.",
    "Only nodes that have a copy of the job know it.",
    ("SHOW", "{id}"),
    (_JOB, _base64(QUERY)),
    Result(200, "The job.", "Job", results.described),
    ("NOJOB", "BADID"),
    changes=False,
)

DELETE: Final = Operation(
    "DELETE",
    "jobs/{id}",
    "deleteJob",
    "Delete a job on this node.",
    "Other nodes keep their copies, and deliver the job later. To end a job everywhere, acknowledge it.",
    ("DELJOB", "{id}"),
    (_JOB,),
    Result(200, "The job was deleted.", "Empty", results.deleted),
    ("NOJOB", "BADID"),
)

ACK: Final = Operation(
    "POST",
    "jobs/{id}/ack",
    "ackJob",
    "Acknowledge a job: it is done.",
    "All nodes forget the job. Any node accepts it, also one that does not know the job, and it can be repeated. A "
    "result is kept if the job has `retain_s`, or somebody waits for it. With `copies`, status 504 says that too few "
    "nodes have confirmed in time; the acknowledgement stands.",
    ("ACKJOB", "{id}", "*"),
    (
        _JOB,
        _CLAIM,
        Parameter(
            "seq", BODY, Integer(0, MAX_SEQ), "How many log entries of this claim there must be.", "SEQ", needs="claim"
        ),
        Parameter("result", BODY, Data(MAX_RESULT_BYTES), "The result, for those who ask or wait.", "RESULT"),
        Parameter("copies", BODY, Integer(1, _MAX_REPLICATE), "Answer when this many nodes know of the end.", "COPIES"),
        Parameter(
            "timeout_ms",
            BODY,
            Integer(1, LONGEST_WAIT_MS),
            "How long to wait for `copies`.",
            "TIMEOUT",
            default=5000,
            needs="copies",
        ),
    ),
    Result(200, "The job is acknowledged.", "Acknowledged", results.acknowledged),
    ("BADID", "STALE", "SEQ", "NOREPL"),
)

NACK: Final = Operation(
    "POST",
    "jobs/{id}/nack",
    "nackJob",
    "Give a job back, because it could not be done.",
    "It is queued again at once, or after the delay that the request or the settings of the queue ask for.",
    ("NACK", "{id}", "*"),
    (
        _JOB,
        _CLAIM,
        Parameter("delay_s", BODY, _SECONDS, "Seconds before the job is delivered again.", "DELAY"),
        Parameter("reason", BODY, Text(MAX_REASON_BYTES), "Why it failed; it is kept with the job.", "REASON"),
        Parameter("uncounted", BODY, Flag(), "Do not count a failed attempt.", "UNCOUNTED"),
        Parameter("dead", BODY, Flag(), "Make it a dead letter now.", "DEAD"),
    ),
    Result(200, "The job was given back.", "Empty", results.given_back),
    ("NOJOB", "BADID", "TTL", "STALE"),
)

WORKING: Final = Operation(
    "POST",
    "jobs/{id}/working",
    "postponeJob",
    "Ask for more time for a job.",
    "Its retry time starts again, or the time in `for_s`. Refused when half of its life is over.",
    ("WORKING", "{id}", "*"),
    (
        _JOB,
        _CLAIM,
        Parameter("for_s", BODY, Integer(1, MAX_TTL_S), "Seconds until the job may be delivered again.", "FOR"),
        Parameter("note", BODY, Text(MAX_NOTE_BYTES), "A line about the progress, kept with the job.", "NOTE"),
    ),
    Result(200, "The job is not delivered before.", "Postponed", results.postponed),
    ("NOJOB", "BADID", "ACKED", "TOOLATE", "STALE"),
)

LOG: Final = Operation(
    "POST",
    "jobs/{id}/log",
    "logProgress",
    "Add an entry to the progress log of a job.",
    "A new worker of the job finds the log of the last one. With `claim` and `seq`, which counts from 0, the request "
    "can be repeated; without them, the node numbers the entries.",
    ("LOGJOB", "{id}", "+claim", "+seq", "{entry}", "*"),
    (
        _JOB,
        Parameter("entry", BODY, Data(_MAX_ENTRY_BYTES), "The entry.", required=True),
        Parameter("claim", BODY, Token(), "The claim of the delivery.", "CLAIM", needs="seq"),
        Parameter("seq", BODY, Integer(0, MAX_SEQ), "The number of the entry.", "SEQ", needs="claim"),
        Parameter("copies", BODY, Integer(1, _MAX_REPLICATE), "How many holders must have it.", "COPIES"),
        Parameter("timeout_ms", BODY, Integer(1, LONGEST_WAIT_MS), "How long to wait for them.", "TIMEOUT"),
    ),
    Result(200, "How many holders have the entry.", "Logged", results.logged),
    ("NOJOB", "BADID", "STALE", "SEQ", "LOGFULL", "NOREPL"),
)

SHOWLOG: Final = Operation(
    "GET",
    "jobs/{id}/log",
    "showProgress",
    "Read the progress log of a job.",
    "Entries of several deliveries are in the order of their claims. Only nodes that have a copy of the job know it.",
    ("SHOWLOG", "{id}", "*"),
    (
        _JOB,
        Parameter("claim", QUERY, Token(), "Only entries of this delivery.", "CLAIM"),
        Parameter("from", QUERY, Integer(0, MAX_SEQ), "Only entries from this number on.", "FROM"),
        Parameter("count", QUERY, Integer(1, MOST_LISTED), "How many entries at most.", "COUNT"),
        _base64(QUERY, "entry"),
    ),
    Result(200, "The entries.", "Log", results.log),
    ("NOJOB", "BADID"),
    changes=False,
)

RESULT: Final = Operation(
    "GET",
    "jobs/{id}/result",
    "jobResult",
    "Ask how a job ended.",
    "All nodes are asked. A job that ended is known as long as it is unfinished somewhere, or for `retain_s`.",
    ("RESULT", "{id}"),
    (_JOB, _base64(QUERY, "result")),
    Result(200, "How the job ended, or `waiting`.", "Fate", results.fate),
    ("NOJOB", "BADID"),
    changes=False,
)

WAIT: Final = Operation(
    "GET",
    "jobs/{id}/wait",
    "waitForJob",
    "Wait until a job has ended.",
    "Any node can wait for any job. When the time is over, `outcome` is `waiting`.",
    ("WAITJOB", "{id}", "WITHRESULT", "*"),
    (
        _JOB,
        Parameter(
            "timeout_ms",
            QUERY,
            Integer(1, LONGEST_WAIT_MS),
            "How long to wait, in milliseconds.",
            "TIMEOUT",
            default=30_000,
        ),
        _base64(QUERY, "result"),
    ),
    Result(200, "How the job ended, or `waiting`.", "Outcome", results.outcome),
    ("BADID",),
    changes=False,
    waits=True,
)

QUEUES: Final = Operation(
    "GET",
    "queues",
    "listQueues",
    "List the queues of this node.",
    "Each answer has some names and the cursor for the next ones. Queues that only other nodes have are not listed; "
    "ordered queues all are.",
    ("QSCAN", "{cursor}", "*"),
    (
        Parameter("cursor", QUERY, Text(20), "Where to continue: `cursor` of the answer before.", default=b"0"),
        Parameter("count", QUERY, Integer(1, MOST_LISTED), "About how many names.", "COUNT", default=100),
        Parameter("minlen", QUERY, Integer(0, 1 << 62), "Only queues with at least this many jobs.", "MINLEN"),
    ),
    Result(200, "Some names.", "Queues", results.queues),
    (),
    changes=False,
)

COUNT: Final = Operation(
    "GET",
    "queues/{queue}/count",
    "countJobs",
    "Count the jobs of a queue on all nodes.",
    "Nodes that do not answer in time are missing: compare `nodes_answered` and `nodes_known`.",
    ("QCOUNT", "{queue}", "*"),
    (
        _QUEUE,
        Parameter("timeout_ms", QUERY, Integer(1, LONGEST_COUNT_MS), "How long to wait for other nodes.", "TIMEOUT"),
    ),
    Result(200, "The number of jobs by what they wait for.", "Counts", results.counted),
    (),
    changes=False,
)

_SCHEDULE: Final = Parameter(
    "name", PATH, Name(MOST_NAME_BYTES, "nightly"), "The name of the schedule, percent-encoded.", required=True
)

SCHEDULES: Final = Operation(
    "GET",
    "schedules",
    "listSchedules",
    "List the schedules of the cluster.",
    "All nodes know all schedules. Those of queues that the user may not access are left out. Ask for one schedule to "
    "see the body and the options of its jobs.",
    ("SCHEDULE", "{pattern}", "SHOW"),
    (
        Parameter(
            "pattern",
            QUERY,
            Text(MOST_NAME_BYTES),
            "Only schedules whose names match, with `*`, `?` and `[...]`.",
            default=b"*",
        ),
    ),
    Result(200, "The schedules, by name.", "Schedules", results.schedules),
    (),
    changes=False,
)

SHOW_SCHEDULE: Final = Operation(
    "GET",
    "schedules/{name}",
    "showSchedule",
    "Describe a schedule, with its last run and the next one.",
    "The numbers of runs can be a minute behind.",
    ("SCHEDULE", "{name}", "SHOW"),
    (_SCHEDULE, _base64(QUERY)),
    Result(200, "The schedule.", "Schedule", results.schedule),
    ("NOSCHEDULE",),
    changes=False,
)

SET_SCHEDULE: Final = Operation(
    "PUT",
    "schedules/{name}",
    "setSchedule",
    "Set a schedule: the cluster adds a job whenever it is due.",
    "Answers when the schedule is on the disk of this node; all nodes follow. It replaces the schedule of that name; a "
    "paused one stays paused. The request can be repeated: a schedule that is set in the same way stays as it is. The "
    "schedule with its body and options has at most 32 KiB.",
    ("SCHEDULE", "{name}", "SET", "{when}", "{queue}", "{body}", "*"),
    (
        _SCHEDULE,
        Parameter(
            "when",
            BODY,
            Text(MOST_SPEC_BYTES, "0 3 * * *"),
            "When it is due: a cron line, `every 30 s`, or `at` with unix milliseconds.",
            required=True,
        ),
        Parameter("queue", BODY, _NAME, "The queue of the jobs.", required=True),
        Parameter("body", BODY, Data(MOST_SCHEDULE_BYTES), "The data for the worker.", required=True),
        Parameter(
            "zone",
            BODY,
            Text(MOST_ZONE_BYTES, "Europe/Berlin"),
            "The time zone of a cron line; the default is UTC.",
            "TZ",
        ),
        Parameter(
            "missed",
            BODY,
            OneOf(("skip", "once")),
            "With `once`, the latest time that was missed is made up for, however late; the default is `skip`.",
            "MISSED",
        ),
        Parameter(
            "strict",
            BODY,
            YesNo(),
            "Whether it runs only on the side of the majority, so that it never runs twice; the default is true.",
            "STRICT",
        ),
        _REPLICATE,
        _DELAY,
        _RETRY,
        _TTL,
        _MAXLEN,
        _PRIORITY,
        _META,
        _RETAIN,
    ),
    Result(200, "The schedule is set.", "Empty", results.done),
    (),
)

DELETE_SCHEDULE: Final = Operation(
    "DELETE",
    "schedules/{name}",
    "deleteSchedule",
    "Remove a schedule on all nodes.",
    "Jobs that it has added stay.",
    ("SCHEDULE", "{name}", "DEL"),
    (_SCHEDULE,),
    Result(200, "The schedule was removed.", "Empty", results.schedule_deleted),
    ("NOSCHEDULE",),
)

PAUSE_SCHEDULE: Final = Operation(
    "POST",
    "schedules/{name}/pause",
    "pauseSchedule",
    "Pause a schedule on all nodes.",
    "Times at which a schedule is paused do not count as missed.",
    ("SCHEDULE", "{name}", "PAUSE"),
    (_SCHEDULE,),
    Result(200, "The schedule is paused.", "Empty", results.done),
    ("NOSCHEDULE",),
)

RESUME_SCHEDULE: Final = Operation(
    "POST",
    "schedules/{name}/resume",
    "resumeSchedule",
    "Let a paused schedule run again.",
    "It makes up for nothing that was due while it was paused.",
    ("SCHEDULE", "{name}", "RESUME"),
    (_SCHEDULE,),
    Result(200, "The schedule is active.", "Empty", results.done),
    ("NOSCHEDULE",),
)

RUN_SCHEDULE: Final = Operation(
    "POST",
    "schedules/{name}/run",
    "runSchedule",
    "Add the job of a schedule now, also if it is paused.",
    "Each request adds a job: repeat it only if two jobs do no harm.",
    ("SCHEDULE", "{name}", "RUN"),
    (_SCHEDULE,),
    Result(CREATED, "The job was added.", "Run", results.run),
    ("NOSCHEDULE", "NOREPL", "PAUSED", "MAXLEN", "OOM", "CLOCK", "MISCONF"),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    ADD,
    CLAIM,
    SHOW,
    DELETE,
    ACK,
    NACK,
    WORKING,
    LOG,
    SHOWLOG,
    RESULT,
    WAIT,
    QUEUES,
    COUNT,
    SCHEDULES,
    SHOW_SCHEDULE,
    SET_SCHEDULE,
    DELETE_SCHEDULE,
    PAUSE_SCHEDULE,
    RESUME_SCHEDULE,
    RUN_SCHEDULE,
)
"""All operations, in the order of the documentation."""
