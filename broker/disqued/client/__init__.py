"""The Python client: blocking (`Client`) and for asyncio (`AsyncClient`), with the same names.

```python
from disqued.client import Client

with Client(["localhost:7711"]) as client:
    client.add("mail", "hello", retry_s=60)
    for job in client.get("mail", timeout_ms=1000):
        client.ack(job.id)
```

Structure: `calls` describes each command as a value. `session` executes calls over a `transport`; only the transport
differs between the two clients. `wire` and `replies` convert to and from bytes. The package imports nothing from the
server.
"""

from disqued.client.adding import NewJob
from disqued.client.aio import AsyncClient
from disqued.client.aio_consumer import AsyncConsumer
from disqued.client.backoff import Backoff
from disqued.client.blocking import Client
from disqued.client.consumer import Consumer
from disqued.client.errors import (
    AlreadyExists,
    AuthenticationRequired,
    BadJobId,
    ClientClosed,
    ClockError,
    ConnectionFailed,
    ConnectionLost,
    DelayTooLong,
    DisqueError,
    JobAcknowledged,
    JobExists,
    JobFailed,
    Loading,
    LogFull,
    Misconfigured,
    NodeLeaving,
    NoParent,
    NoPermission,
    NoQuorum,
    NoSuchJob,
    NoSuchSchedule,
    NotReplicated,
    OutOfMemory,
    QueueExists,
    QueueFull,
    QueuePaused,
    RateLimited,
    ResponseError,
    ResultTooLong,
    SequenceConflict,
    StaleClaim,
    TooLate,
    UnexpectedReply,
    WrongPassword,
)
from disqued.client.outcomes import Reject, Retry
from disqued.client.resultjobs import ResultJobs
from disqued.client.tasks import AsyncTask, Task
from disqued.client.tls import tls_context
from disqued.client.values import (
    Added,
    Hello,
    Job,
    JobDetails,
    JobEnd,
    JobFate,
    JobFilter,
    JobId,
    JobState,
    Limit,
    LogEntry,
    NodeInfo,
    OrderedGroup,
    OrderedStatus,
    Otherwise,
    Outcome,
    PauseState,
    Purged,
    PurgeState,
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
from disqued.client.wire import Argument, Reply

__all__ = [
    "Added",
    "AlreadyExists",
    "Argument",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncTask",
    "AuthenticationRequired",
    "Backoff",
    "BadJobId",
    "Client",
    "ClientClosed",
    "ClockError",
    "ConnectionFailed",
    "ConnectionLost",
    "Consumer",
    "DelayTooLong",
    "DisqueError",
    "Hello",
    "Job",
    "JobAcknowledged",
    "JobDetails",
    "JobEnd",
    "JobExists",
    "JobFailed",
    "JobFate",
    "JobFilter",
    "JobId",
    "JobState",
    "Limit",
    "Loading",
    "LogEntry",
    "LogFull",
    "Misconfigured",
    "NewJob",
    "NoParent",
    "NoPermission",
    "NoQuorum",
    "NoSuchJob",
    "NoSuchSchedule",
    "NodeInfo",
    "NodeLeaving",
    "NotReplicated",
    "OrderedGroup",
    "OrderedStatus",
    "Otherwise",
    "OutOfMemory",
    "Outcome",
    "PauseState",
    "PurgeState",
    "Purged",
    "QueueCount",
    "QueueExists",
    "QueueFull",
    "QueueKind",
    "QueuePaused",
    "QueueSetting",
    "QueueStats",
    "RateLimited",
    "RedriveStatus",
    "Reject",
    "RepairStatus",
    "Reply",
    "ResponseError",
    "ResultJobs",
    "ResultTooLong",
    "Retry",
    "Schedule",
    "ScheduleState",
    "SequenceConflict",
    "StaleClaim",
    "StoredSetting",
    "Task",
    "TooLate",
    "UnexpectedReply",
    "WrongPassword",
    "tls_context",
]
