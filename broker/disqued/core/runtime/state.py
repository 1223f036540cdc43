"""The state of one node: what command handlers, message handlers and timers work on.

It consists of parts, each a value with one owner. What only one room needs is kept by that room (`rooms`). `now_ms` is
set once per input and is the only time that handlers see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

from mypy_extensions import i64

from disqued.bus.kinds import KINDS
from disqued.bus.messagetable import MessageTable
from disqued.bus.writer import FrameWriter
from disqued.config import Config
from disqued.core.access.users import Users
from disqued.core.clients.pause import ClientPause
from disqued.core.clients.session import Session
from disqued.core.cluster.holders import Holders
from disqued.core.cluster.view import ClusterView
from disqued.core.commands.entry import CommandEntry
from disqued.core.commands.longcommand import LongCommand
from disqued.core.fates.records import Records
from disqued.core.fates.watches import Watches
from disqued.core.host.host import Host
from disqued.core.jobs.job import CTIMES_PER_MS
from disqued.core.jobs.jobid import JobIds
from disqued.core.lifecycle.events import Events
from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.lifecycle.listener import Listener
from disqued.core.output.ready import Ready
from disqued.core.runtime.auditlog import AuditLog
from disqued.core.runtime.monitoring import Monitoring
from disqued.core.runtime.throughput import Throughput
from disqued.core.telemetry.counter import Counters
from disqued.core.telemetry.errorcounts import ErrorCounts
from disqued.core.telemetry.traffic import Traffic

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields


class NodeState:
    """The state of one node."""

    def __init__(
        self, config: Config, host: Host, node_id: bytes, now_ms: i64, table: MessageTable, features: i64, users: Users
    ) -> None:
        self.config = config
        self.host = host
        self.now_ms: i64 = now_ms
        self.started_ms: i64 = now_ms
        self.wall_ahead_s: i64 = 0
        """How many seconds the wall clock, which times on disk follow, is ahead (`persistence.wallclock`)."""
        self.run_id = host.random_bytes(20).hex().encode()
        self.incarnation = host.random_bytes(8)
        """Distinguishes this run of the node from other runs under the same ID; every frame announces it."""
        self.loading: bool = False
        self.ending: bool = False
        """The node writes the file of a controlled shutdown, and nothing may change meanwhile."""
        self.ended: bool = False
        """Everything is on disk, and nothing may change any more (`core.runtime.shutdown`)."""

        # jobs and queues
        self.lifecycle = Lifecycle(host.random, host.resident_bytes)
        self.events: Events = self.lifecycle.events
        self.rooms: dict[str, Listener] = {}
        """The rooms by name; each room's package has a function that returns its own."""
        self.job_ids = JobIds(node_id, host.random_bytes)
        self.last_ctime: i64 = 0  # the creation time of the last job of this node
        self.write_refusal = ""
        """The error reply to new jobs while the disk fails; empty while it works. Set by the persistence room."""
        self.clock_refusal = ""
        """The error reply to new jobs and claims in quarantine (`membership.quarantine`); empty otherwise."""

        # the cluster
        self.view = ClusterView(node_id, config.port)
        self.message_table = table
        self.features: i64 = features
        """The bits of all messages beyond the original's protocol that this node understands."""
        self.secrets: tuple[bytes, ...] = ()
        """The secrets of the cluster (`cluster-secret-file`), the preferred one first; set by the membership room."""
        self.bus = FrameWriter(node_id, config.port)
        """Writes this node's frames; the membership room replaces it when what they announce changes."""
        self.holders = Holders()

        # counters and output
        self.counters = Counters()
        self.errors = ErrorCounts(self.counters)
        self.traffic = [Traffic(self.counters) for _ in range(KINDS)]  # by type of message
        self.throughput = Throughput(self.counters)
        self.ready = Ready(self.traffic)
        self.ready.changes = self.lifecycle.journal.changes

        # clients and their commands
        self.commands: dict[bytes, CommandEntry] = {}
        """Commands by name in lower and in upper case, after renaming."""
        self.command_entries: list[CommandEntry] = []
        """Commands in table order."""
        self.info_sections: list[tuple[str, Callable[[NodeState], Fields]]] = []
        """The rooms' sections of INFO: the title, and the function that returns the fields."""
        self.users = users
        self.sessions: dict[int, Session] = {}
        """All clients, by number."""
        self.unauthenticated: dict[int, Session] = {}
        """Those that have not authenticated although they must, the oldest first."""
        self.sessions_made: i64 = 0  # the number of the last session
        self.blocked_clients: i64 = 0
        self.resumed: list[Session] = []
        """Sessions that were blocked and may have input waiting."""
        self.long_commands: list[LongCommand] = []
        """Commands that run in slices (`runtime.slices`), the next one first."""
        self.client_pause = ClientPause()
        self.monitoring = Monitoring(config, host, self.ready)
        self.audit = AuditLog(host, self.counters, self.view)

    @property
    def watches(self) -> Watches:
        """The jobs whose end somebody wants to know."""
        return self.lifecycle.watches

    @property
    def records(self) -> Records:
        """The records of finished jobs; the fates room fills and bounds them."""
        return self.lifecycle.records

    def next_ctime(self, queue: bytes) -> i64:
        """The creation time of a new job: unix milliseconds * 1000000, greater than any before on this node.

        It is greater than the marks of purges of its queue that this node knows.
        """
        ctime: i64 = self.now_ms * CTIMES_PER_MS
        if ctime <= self.last_ctime:
            ctime = self.last_ctime + 1
        self.last_ctime = ctime
        purges = self.lifecycle.queues.purges
        return ctime + purges.lag(queue) if purges.some else ctime

    def next_named_ctime(self, queue: bytes) -> i64:
        """The creation time of a job that other nodes may add under the same ID at the same time: theirs differ."""
        least: i64 = self.now_ms * CTIMES_PER_MS + crc32(self.view.node_id) % CTIMES_PER_MS
        self.last_ctime = max(self.last_ctime, least - 1)
        return self.next_ctime(queue)
