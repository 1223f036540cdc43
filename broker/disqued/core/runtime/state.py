"""Everything one node knows: what command handlers and timers work on.

Handlers get the state, the session and the words of the request. `now_ms` is set once per input and is the only time
they see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus.extension import NOBODY, cluster_digest, extension
from disqued.bus.kinds import KINDS
from disqued.bus.messagetable import UNKNOWN_MESSAGES, MessageTable
from disqued.bus.writer import FrameWriter
from disqued.config import Config
from disqued.core.clients.session import Session
from disqued.core.cluster.holders import Holders
from disqued.core.cluster.peer import BUS_PORT_DISTANCE, Link
from disqued.core.cluster.view import ClusterView
from disqued.core.commands.entry import CommandEntry
from disqued.core.host.host import Host
from disqued.core.jobs.jobid import JobIds
from disqued.core.lifecycle.events import Events, Listener
from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.output.ready import Ready
from disqued.core.queues.interest import Demand
from disqued.core.runtime.throughput import Throughput
from disqued.core.telemetry.counter import Counters
from disqued.core.telemetry.errorcounts import ErrorCounts
from disqued.core.telemetry.latency import LatencyMonitor
from disqued.core.telemetry.slowlog import SlowLog
from disqued.core.telemetry.traffic import Traffic

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

NEVER_NS: Final = 1 << 62

SYNC_NEVER: Final = 0
SYNC_EVERY_SECOND: Final = 1
SYNC_ALWAYS: Final = 2
_SYNC_POLICIES: Final = {"no": SYNC_NEVER, "everysec": SYNC_EVERY_SECOND, "always": SYNC_ALWAYS}


class NodeState:
    """One node's memory."""

    def __init__(self, config: Config, host: Host, node_id: bytes, now_ms: i64) -> None:
        self.config = config
        self.host = host
        self.now_ms: i64 = now_ms
        self.started_ms: i64 = now_ms
        self.run_id = host.random_bytes(20).hex().encode()
        self.view = ClusterView(node_id, config.port)
        self.incarnation = host.random_bytes(8)
        """Tells this run of the node from others under the same ID."""
        self.cluster = NOBODY
        """What stands for the name of this node's cluster."""
        self.message_table = UNKNOWN_MESSAGES
        self.features: i64 = 0
        """What this node announces to understand beyond the original's protocol."""
        self.bus = self._frame_writer()
        """Writes this node's frames; see `renew_frames`."""
        self.renew_frames()
        self.holders = Holders()
        self.lifecycle = Lifecycle(host.random, host.resident_bytes)
        self.events: Events = self.lifecycle.events
        self.rooms: dict[str, Listener] = {}
        """By name; each room's package has a function that returns its own."""
        self.demand = Demand()
        self.job_ids = JobIds(node_id, host.random_bytes)
        self.last_ctime: i64 = 0
        self.counters = Counters()
        self.errors = ErrorCounts(self.counters)
        self.traffic = [Traffic(self.counters) for _ in range(KINDS)]
        """By type of message."""
        self.throughput = Throughput(self.counters)
        self.ready = Ready(self.traffic)
        self.ready.changes = self.lifecycle.journal.changes
        self.sessions: dict[int, Session] = {}
        self.sessions_made: i64 = 0
        self.blocked_clients: i64 = 0
        self.monitors: list[Session] = []
        self.refusal = ""
        """The error that answers new jobs while the disk fails; empty while it works."""
        self.filling: dict[Link, None] = {}
        """Links that bring a big frame."""
        self.unread: dict[int, Session] = {}
        """Sessions whose requests wait until their client has read more replies (`clientlimits`), by number."""
        self.resumed: list[Session] = []
        """Sessions that were blocked and may have input waiting."""
        self.held: dict[int, Session] = {}
        """Sessions whose input waits for the end of CLIENT PAUSE, by number."""
        self.paused_until_ms: i64 = 0
        self.commands: dict[bytes, CommandEntry] = {}
        """By name in lower and in upper case, after renaming."""
        self.command_entries: list[CommandEntry] = []
        """In table order."""
        self.info_sections: list[tuple[str, Callable[[NodeState], Fields]]] = []
        """What the rooms show of themselves in INFO: title of the section and who writes its fields."""
        self.slowlog = SlowLog()
        self.latency = LatencyMonitor()
        self.loading: bool = False
        self.ended: bool = False
        """All is on disk, and nothing may change any more (`core.runtime.shutdown`)."""
        self.sync_policy: i64 = SYNC_EVERY_SECOND
        """When the append only file is synced (`appendfsync`)."""
        self.password = b""
        self.slow_ns: i64 = NEVER_NS
        """Commands that take at least this long are looked at for the slow log and the latency monitor."""
        self.apply_config()

    def apply_config(self) -> None:
        """Take over the options that are looked at on every command or turn."""
        config = self.config
        if config.requirepass != self.password:
            self.password = config.requirepass
            for session in self.sessions.values():
                session.parser.restrict(bool(self.password) and not session.authenticated)
        limit = self.host.memory_limit()
        self.lifecycle.memory.limit(config.maxmemory.of(limit.size_bytes), limit.size_bytes)
        self.sync_policy = _SYNC_POLICIES[config.appendfsync]
        hard, soft, _ = config.client_output_buffer_limit
        self.ready.output_limited = hard > 0 or soft > 0
        limits_ns = []
        if config.slowlog_log_slower_than >= 0:
            limits_ns.append(config.slowlog_log_slower_than * 1000)
        if config.latency_monitor_threshold > 0:
            limits_ns.append(config.latency_monitor_threshold * 1_000_000)
        self.slow_ns = min(limits_ns, default=NEVER_NS)

    def know_messages(self, table: MessageTable, features: i64) -> None:
        """Read and write frames of these types from now on, and announce these features."""
        self.message_table = table
        self.features = features
        self.renew_frames()

    def next_ctime(self) -> i64:
        """The creation time of a new job: unix milliseconds * 1000000, later than any before on this node."""
        ctime: i64 = self.now_ms * 1_000_000
        if ctime <= self.last_ctime:
            ctime = self.last_ctime + 1
        self.last_ctime = ctime
        return ctime

    def renew_identity(self, node_id: bytes) -> None:
        """Go on under another node ID."""
        self.view.node_id = node_id
        self.view.refresh()
        self.job_ids = JobIds(node_id, self.host.random_bytes)
        self.renew_frames()

    def _frame_writer(self) -> FrameWriter:
        view = self.view
        said = extension(self.features, view.bus_port, self.cluster, self.incarnation)
        return FrameWriter(
            view.node_id, view.port, leaving=view.leaving, extension=said, announced_ip=view.announced_ip
        )

    def renew_frames(self) -> None:
        """Say from now on what changed about this node: its ID, its address and name, whether it is leaving."""
        config = self.config
        view = self.view
        view.port = config.cluster_announce_port or config.port
        bus_port: i64 = config.cluster_announce_bus_port or config.cluster_port
        if bus_port == 0 and config.port > 0:
            bus_port = config.port + BUS_PORT_DISTANCE
        view.bus_port = bus_port if bus_port < 65536 else 0
        view.host = config.cluster_announce_hostname.encode()
        announced_ip = config.cluster_announce_ip.encode()
        if announced_ip != view.announced_ip:
            view.announced_ip = announced_ip
            view.ip = announced_ip
        self.cluster = cluster_digest(config.cluster_name.encode("utf-8", "surrogateescape"))
        self.bus = self._frame_writer()
        view.news = True
