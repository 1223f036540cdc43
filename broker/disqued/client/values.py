"""The results of calls: records whose fields use the names of the protocol, with units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

PauseState: TypeAlias = Literal["none", "in", "out", "all"]
"""What is paused: `in` accepts no new jobs, `out` delivers none, `all` is both."""

Limit: TypeAlias = Literal["no", "rate", "inflight", "home"]
"""Why clients wait although a queue has jobs: for its rate, its jobs in flight, or the node that grants tokens."""

JobState: TypeAlias = Literal["wait-repl", "active", "queued", "acked", "delayed", "moving"]
"""The state of a job on one node; jobs of ordered queues only are `delayed`, or `moving` to another queue."""

JobFilter: TypeAlias = Literal["wait-repl", "active", "queued", "acked", "leased", "delayed", "dead", "held"]
"""The states by which jobs are listed; `leased`, `delayed` and `held` are parts of `active`, `dead` of `queued`."""


class JobId(str):
    """A job's ID, 40 characters: `D-<creator>-<random>-<ttl>`. A string with access to its parts."""

    __slots__ = ()

    @property
    def creator_prefix(self) -> str:
        """The first 8 hex digits of the ID of the node that created the job."""
        return self[2:10]

    @property
    def at_most_once(self) -> bool:
        """True when the job was added with `retry_s=0`, so it is never delivered again automatically."""
        return int(self[36:40], 16) % 2 == 0


@dataclass(frozen=True, slots=True)
class Added:
    """A job that was added, and how many nodes had confirmed it when its client got the reply.

    `copies` is None if an earlier call added the job.
    """

    id: JobId
    copies: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A fetched job. The counters, the metadata, the priority and the claim are None unless the call requested them.

    `requeue_in_ms` is the time until the node delivers the job again, unless it is acknowledged or renewed: -1 for
    never, None if the call did not request it. `claim` is a number that is greater than that of any delivery of the job
    before: pass it to `ack`, `nack` and `working`, and to what the handler writes to. `lease_ms` is `requeue_in_ms`.
    """

    queue: str
    id: JobId
    body: bytes
    nacks: int | None = None
    additional_deliveries: int | None = None
    requeue_in_ms: int | None = None
    meta: bytes | None = None
    priority: int | None = None
    claim: int | None = None
    lease_ms: int | None = None

    @property
    def attempts(self) -> int | None:
        """How often the job failed before this delivery: NACKs and additional deliveries, as this node counts them.

        None unless the call requested the counters.
        """
        if self.nacks is None or self.additional_deliveries is None:
            return None
        return self.nacks + self.additional_deliveries


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the progress log of a job. `claim` is 0 if a worker without a claim wrote it."""

    claim: int
    seq: int
    unix_ms: int
    entry: bytes


@dataclass(frozen=True, slots=True)
class JobDetails:
    """All that one node knows about a job (Disque command SHOW).

    `ctime` is the creation time in unix milliseconds times a million, plus a sequence number. `queue` and `body` are
    None if the node only remembers an acknowledgement; the `_within_ms` fields are None when nothing is scheduled.
    """

    id: JobId
    queue: str | None
    state: JobState
    replicate: int
    ttl_s: int
    ctime: int
    delay_s: int
    retry_s: int
    nacks: int
    additional_deliveries: int
    nodes_delivered: tuple[str, ...]
    nodes_confirmed: tuple[str, ...]
    next_requeue_within_ms: int | None
    next_awake_within_ms: int | None
    body: bytes | None
    priority: int = 0
    meta: bytes = b""
    claim: int | None = None
    """The greatest claim of the job that the node knows; None if there is none."""
    note: str | None = None
    """The last line of progress that a worker gave (`working`)."""
    reason: str | None = None
    """Why the job failed last, as a worker or a node said."""
    origin_queue: str | None = None
    """The queue of the job that this one was made of, by a move or as a dead letter."""
    origin_id: JobId | None = None
    """The first job of a chain of moves."""
    moves: int = 0
    """How many moves led to this job."""
    attempts_before: int = 0
    """How often the previous job of a chain of moves failed."""
    dead_since_ms: int | None = None
    """Unix milliseconds since which the job is a dead letter; None if it is none."""
    after: tuple[JobId, ...] = ()
    """The jobs that must be done before it is delivered, its parents."""
    waits_for: tuple[JobId, ...] = ()
    """Those of them that are not done, as this node knows."""
    otherwise: str | None = None
    """What happens if a parent can no longer be done: `dead`, `run` or `drop`; None without parents."""
    children: tuple[JobId, ...] = ()
    """Jobs that wait for this one on the node that replied; the first 1,000."""

    @property
    def attempts(self) -> int:
        """How often the job failed: NACKs and additional deliveries, as this node counts them."""
        return self.nacks + self.additional_deliveries


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One node's view of a queue (Disque command QSTAT). `import_rate` is in jobs per second.

    `length_by_priority` has the number of queued jobs with a priority of `below-0`, `0`, `1-to-9` and `from-10`; it is
    empty for a queue that never had another priority than 0.
    """

    name: str
    length: int
    age_s: int
    idle_s: int
    blocked_clients: int
    import_from: tuple[str, ...]
    import_rate: int
    jobs_in: int
    jobs_out: int
    pause: PauseState
    length_by_priority: dict[str, int] = field(default_factory=dict)
    leased: int = 0
    """Jobs that workers of this node have; at-most-once jobs are not counted."""
    delayed: int = 0
    """Jobs that wait on this node for the end of their delay."""
    dead: int = 0
    """How many of the queued jobs are dead letters."""
    oldest_ms: int = 0
    """The age of the oldest queued job in milliseconds; 0 if none is queued."""
    settings: tuple[str, ...] = ()
    """The names and patterns whose settings hold for the queue, the best one first."""
    held: int = 0
    """Jobs that were added on this node and wait for their parents."""
    limited: Limit = "no"
    """Why clients of this node wait although the queue has jobs."""
    kind: QueueKind = "jobs"
    """The figures of an ordered queue are those of its leader; its `age_s` is always 0."""


@dataclass(frozen=True, slots=True)
class OrderedGroup:
    """An ordered queue, or the catalog of all of them: its replicas, and their leader (CLUSTER ORDERED STATUS).

    The numbers of jobs by state are those of the leader; None if another node was asked.
    """

    queue: str
    """The name of the queue; empty for the catalog."""
    group: int
    leader: str
    """The ID of the node that leads it; empty if there is no leader, or the node that was asked knows none."""
    replicas: tuple[str, ...]
    """The IDs of the nodes with a replica."""
    settled: bool = True
    """Whether it has the replicas that it should have; False while they move."""
    single: bool = False
    prefetch: int = 0
    """How many jobs a consumer may have; 0 for any number."""
    pause: PauseState | None = None
    """None if the node has no replica of the queue."""
    lags: dict[str, int] = field(default_factory=dict)
    """How many entries the other replicas have not confirmed, by node; empty if another node leads."""
    ready: int | None = None
    """Jobs that wait, with dead letters."""
    leased: int | None = None
    delayed: int | None = None
    dead: int | None = None
    consumers: int | None = None


@dataclass(frozen=True, slots=True)
class OrderedStatus:
    """The catalog of ordered queues as one node knows it (CLUSTER ORDERED STATUS)."""

    catalog: str
    """The identity of the catalog; empty if the node knows none."""
    version: int
    conflict: str
    """The identity of another catalog that a member of the cluster knows; empty if there is none."""
    error: str
    """Why the node cannot write its log of ordered queues; empty if it can."""
    members: OrderedGroup
    """The group that keeps the catalog."""
    queues: tuple[OrderedGroup, ...]


@dataclass(frozen=True, slots=True)
class QueueCount:
    """The unfinished jobs of a queue over all nodes that answered (Disque command QCOUNT). Each job is counted once."""

    queued: int
    """Without dead letters."""
    leased: int
    """Jobs that workers have."""
    delayed: int
    dead: int
    """Queued dead letters."""
    nodes_answered: int
    nodes_known: int
    held: int = 0
    """Jobs that wait for other jobs."""
    records: int = 0
    """Records of jobs that have ended, not counted once: each node that had the job has one."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended: `result` is what its worker gave with the acknowledgement, None without one."""

    outcome: Outcome
    result: bytes | None


@dataclass(frozen=True, slots=True)
class JobFate:
    """What the cluster knows about the end of a job (Disque command RESULT)."""

    outcome: Outcome
    """`waiting` while it has not ended; `moved` if its successor is not known to any node that answered."""
    ended_ms: int | None
    """When it ended, in unix milliseconds; None if that is not known."""
    claim: int | None
    """The claim under which it was acknowledged, or the greatest one that is known; None without claims."""
    result: bytes | None
    """What its worker gave with the acknowledgement; None without a result."""


@dataclass(frozen=True, slots=True)
class RedriveStatus:
    """How far a REDRIVE is, over all nodes.

    `state` is `running` until all nodes are done. `left` jobs were not moved yet. `failed` ones cannot be moved without
    `to`, because they have no queue that they come from. `rate` is in jobs per second; only the node that took the
    command knows it.
    """

    state: str
    moved: int
    left: int
    failed: int
    started_ms: int
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class RepairStatus:
    """Whether jobs that have a copy on one node have lost other copies (CLUSTER REPAIR STATUS).

    `enabled` is the directive `repair` of the node. `done` is true if no copy is missing that a node could keep;
    `waits_for` says why it is not, and is empty otherwise. `jobs_under_replicated` unfinished jobs have too few live
    copies: other nodes were asked to keep `jobs_in_flight` of them, and for `jobs_without_node` there is no other node.
    `copies_rebuilt` counts the copies that the node made again since it started.
    """

    enabled: bool
    done: bool
    waits_for: str
    seconds_without_progress: int
    jobs_under_replicated: int
    jobs_in_flight: int
    jobs_without_node: int
    copies_rebuilt: int


ScheduleState: TypeAlias = Literal["active", "paused", "done", "no-majority", "invalid"]
"""What a schedule does: `done` is never due again, `no-majority` waits until the node that was asked sees the majority
of the nodes again, `invalid` is not understood by that node."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as one node knows it (SCHEDULE SHOW). Times are unix milliseconds, 0 for none.

    Nodes tell each other of runs once a minute, so `last_ms`, `last_job` and `runs` of a frequent schedule may be a
    minute behind.
    """

    name: str
    when: str
    zone: str
    """The time zone of a cron line; empty for other schedules."""
    queue: str
    body: bytes
    options: str
    """The options of its jobs, as in a command line."""
    missed: Literal["skip", "once"]
    strict: bool
    state: ScheduleState
    next_ms: int
    last_ms: int
    """The time at which the last run was due."""
    last_job: str
    """The ID of its job; empty if none has run."""
    runs: int
    runs_missed: int
    problem: str
    """Why the last run failed or was missed; empty if it was not."""
    node: str
    """The ID of the node that fires it; empty if the node that was asked sees none."""
    changed_ms: int
    """When it was set, paused or resumed."""


Otherwise: TypeAlias = Literal["dead", "run", "drop"]
"""What happens to a job if one of its parents can no longer be done."""

QueueKind: TypeAlias = Literal["jobs", "ordered"]
"""The type of a queue."""

PurgeState: TypeAlias = Literal["queued", "leased", "delayed", "dead", "held"]
"""The states of jobs that a purge deletes; `queued` does not include `dead`."""

Outcome: TypeAlias = Literal["waiting", "done", "dead", "moved", "expired", "deleted"]
"""How a job ended."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge deleted on the nodes that answered (Disque command QPURGE)."""

    deleted: int
    nodes_answered: int
    nodes_known: int


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """A setting of a queue: its value, and the name or pattern it comes from, empty for a default (QCONF GET)."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """A setting as it was set for a name or pattern, when and on which node (QCONF SHOW)."""

    name: str
    setting: str
    value: str
    changed_ms: int
    """Unix milliseconds; later if the clock of that node was behind."""
    node_id: str


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as another one sees it. `host` is empty when unknown; a lower `priority` is better (1, 5, 10, 100)."""

    id: str
    host: str
    port: int
    priority: int


@dataclass(frozen=True, slots=True)
class Hello:
    """The node that replied, and all nodes that it knows, including itself (Disque command HELLO)."""

    node_id: str
    nodes: tuple[NodeInfo, ...]
