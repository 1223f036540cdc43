"""The table of directives: one row says everything that is fixed about one.

The rows stand in the order of CONFIG GET, followed by those it does not show; CONFIG REWRITE appends in the same order.
A new directive is a row here and a typed attribute of `Config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from disqued.config.kinds import (
    Address,
    Addresses,
    Choice,
    Clamped,
    Count,
    Directory,
    Endpoints,
    FileName,
    HostName,
    IfFree,
    Integer,
    Kind,
    Memory,
    MemoryShare,
    Octal,
    OutputLimit,
    Password,
    Renames,
    Seconds,
    Size,
    Text,
    YesNo,
)

Part = Literal["sockets", "clients", "process", "logging", "memory", "observation", "cluster", "persistence", "none"]
"""Which part of the server has the directive's effect; `none` for those that never have one."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Option(Generic[_T]):
    """One directive."""

    name: str
    kind: Kind[_T]
    default: _T
    part: Part
    effect: str
    """One line for the reference page."""
    settable: bool = False
    """CONFIG SET changes it."""
    shown: bool = True
    """CONFIG GET shows it."""
    rewritten: bool = True
    """CONFIG REWRITE writes it; lines of the others stay as they are."""
    added: bool = False
    """The original does not have it."""
    in_file: bool = True
    """It may stand in the file; otherwise only CONFIG SET knows it."""

    @property
    def attribute(self) -> str:
        """The attribute of `Config` that holds the value."""
        return self.name.replace("-", "_")

    def of(self, config: object) -> _T:
        """The value in a `Config`, for a room that has its directive as a row of its own."""
        value: _T = getattr(config, self.attribute)
        return value


DEFAULT_HTTP_PORT: Final = IfFree(9711)
_FACILITIES: Final = ("user", *(f"local{number}" for number in range(8)))
_YES_NO: Final = YesNo()
_COUNT: Final = Integer()
_POSITIVE: Final = Integer(1, error="argument must be a whole number, 1 or greater")

OPTIONS: Final[tuple[Option[Any], ...]] = (
    Option(
        "requirepass",
        Password(512),
        b"",
        "clients",
        "Clients have to send AUTH with this password first; empty for none.",
        settable=True,
    ),
    Option(
        "unixsocket",
        Text(optional=True),
        "",
        "sockets",
        "Path of a Unix socket for clients; an existing file is replaced.",
    ),
    Option("logfile", Text(), "", "logging", "File the log is appended to; empty for standard output."),
    Option("pidfile", Text(), "/var/run/disque.pid", "process", "File for the process ID, when daemonised."),
    Option(
        "maxmemory",
        Memory(),
        MemoryShare(1 << 30),
        "memory",
        "Memory limit, in bytes or as a share, `60%`, of the container's limit or the machine's memory. Above 75 % of "
        "it new jobs are kept by other nodes only, above 95 % memory is freed, above 100 % commands that need more are "
        "refused. CONFIG SET takes 0 for no limit. See [memory](operations/memory.md).",
        settable=True,
    ),
    Option(
        "maxmemory-samples", _POSITIVE, 5, "none", "Nothing: jobs that can be freed are kept in a list.", settable=True
    ),
    Option(
        "timeout",
        Integer(error="Invalid timeout value"),
        0,
        "clients",
        "Seconds after which an idle client is closed; 0 for never.",
        settable=True,
    ),
    Option(
        "auto-aof-rewrite-percentage",
        _COUNT,
        100,
        "persistence",
        "Growth in percent after which the append only file is rewritten; 0 for never.",
        settable=True,
    ),
    Option(
        "auto-aof-rewrite-min-size",
        Size(),
        64 << 20,
        "persistence",
        "Size below which the append only file is not rewritten by itself.",
        settable=True,
    ),
    Option(
        "slowlog-log-slower-than",
        Integer(-(1 << 63), error="argument must be a whole number"),
        10000,
        "observation",
        "Microseconds above which a command enters the slow log; negative for never.",
        settable=True,
    ),
    Option(
        "latency-monitor-threshold",
        _COUNT,
        0,
        "observation",
        "Milliseconds from which on an event enters the latency monitor; 0 for never.",
        settable=True,
    ),
    Option("slowlog-max-len", _COUNT, 128, "observation", "Entries kept in the slow log.", settable=True),
    Option(
        "port",
        Integer(0, 65535, "Invalid port"),
        7711,
        "sockets",
        "TCP port for clients; 0 for none. The cluster bus uses this port plus 10000, or `cluster-port`.",
    ),
    Option(
        "tcp-backlog",
        Integer(error="Invalid backlog value"),
        511,
        "sockets",
        "Connections the system queues before they are accepted.",
    ),
    Option("databases", _POSITIVE, 16, "none", "Nothing: there are no databases.", rewritten=False),
    Option(
        "maxclients",
        Integer(1, error="Invalid max clients limit"),
        10000,
        "clients",
        "Most clients at a time; lowered at start when the process may not open as many files.",
        settable=True,
    ),
    Option(
        "watchdog-period",
        _COUNT,
        0,
        "none",
        "Nothing: a debugging aid of the original.",
        settable=True,
        rewritten=False,
        in_file=False,
    ),
    Option(
        "hz",
        Clamped(lowest=1, highest=500),
        10,
        "process",
        "Runs of the periodic work in a second, 1 to 500; values outside are moved to the closest bound.",
        settable=True,
    ),
    Option(
        "cluster-node-timeout",
        Integer(1, error="cluster node timeout must be 1 or greater", zero_by_set=True),
        15000,
        "cluster",
        "Milliseconds after which a silent node counts as failing.",
        settable=True,
    ),
    Option(
        "tcp-keepalive",
        Seconds(error="Invalid tcp-keepalive value"),
        0,
        "sockets",
        "Seconds between probes of idle connections; 0 or `no` for none, `yes` for 1. CONFIG GET shows `yes` or `no`.",
        settable=True,
    ),
    Option(
        "no-appendfsync-on-rewrite",
        _YES_NO,
        False,
        "persistence",
        "Whether fsync pauses while the append only file is rewritten.",
        settable=True,
    ),
    Option("daemonize", _YES_NO, False, "process", "Run in the background and write the pidfile."),
    Option("activerehashing", _YES_NO, True, "none", "Nothing: tables need no rehashing.", settable=True),
    Option(
        "aof-rewrite-incremental-fsync",
        _YES_NO,
        True,
        "persistence",
        "Whether a rewritten append only file is synced in steps.",
        settable=True,
    ),
    Option(
        "aof-load-truncated",
        _YES_NO,
        True,
        "persistence",
        "Whether an append only file with a torn end is cut and loaded, or refused.",
        settable=True,
    ),
    Option(
        "aof-enqueue-jobs-once",
        _YES_NO,
        False,
        "persistence",
        "Queue all jobs at the next load of the append only file, then switch itself off.",
        settable=True,
    ),
    Option(
        "maxmemory-policy",
        Choice(("acks", "noeviction")),
        "acks",
        "memory",
        "What is freed when memory is short: acknowledged and delivered at-most-once jobs, or nothing.",
        settable=True,
    ),
    Option(
        "loglevel",
        Choice(("debug", "verbose", "notice", "warning")),
        "notice",
        "logging",
        "The least important log lines that are written.",
        settable=True,
    ),
    Option(
        "appendfsync",
        Choice(("everysec", "always", "no")),
        "everysec",
        "persistence",
        "When the append only file is synced: every second, before replies, or when the system likes to.",
        settable=True,
    ),
    Option("syslog-facility", Choice(_FACILITIES), "local0", "logging", "Facility of the lines for syslog."),
    Option(
        "appendonly", _YES_NO, False, "persistence", "Whether jobs are logged to the append only file.", settable=True
    ),
    Option(
        "dir",
        Directory(),
        "",
        "process",
        "Working directory, entered at once; where relative paths start. Empty for the directory of the start.",
        settable=True,
    ),
    Option(
        "client-output-buffer-limit",
        OutputLimit(),
        (0, 0, 0),
        "clients",
        "`normal HARD SOFT SECONDS`: a client is closed when its waiting replies reach the hard limit, or stay at the "
        "soft limit for longer than that; 0 for no limit.",
        settable=True,
    ),
    Option(
        "unixsocketperm",
        Octal(0, 0o777, "Invalid socket file permissions"),
        0,
        "sockets",
        "Permissions of the Unix socket in octal; 0 leaves them to the umask.",
    ),
    Option(
        "bind",
        Addresses(16),
        (),
        "sockets",
        "Up to 16 addresses to listen on; without it all. The first one is the source of connections to other nodes.",
    ),
    Option("syslog-enabled", _YES_NO, False, "logging", "Whether log lines also go to syslog.", shown=False),
    Option("syslog-ident", Text(), "disque", "logging", "Name of the program in syslog.", shown=False),
    Option(
        "appendfilename", FileName(), "disque.aof", "persistence", "Name of the append only file in `dir`.", shown=False
    ),
    Option(
        "cluster-config-file",
        Text(),
        "nodes.conf",
        "cluster",
        "File in which the node keeps its view of the cluster.",
        shown=False,
    ),
    Option(
        "cluster-port",
        Integer(0, 65535, "Invalid cluster port"),
        0,
        "sockets",
        "TCP port of the cluster bus; 0 for the port for clients plus 10000.",
        added=True,
    ),
    Option(
        "cluster-announce-ip",
        Address(optional=True),
        "",
        "cluster",
        "Address at which other nodes and clients reach this node; empty for the one that they find by themselves.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-hostname",
        HostName(optional=True),
        "",
        "cluster",
        "Name of this node's host: other nodes look it up whenever they connect, clients see it in HELLO.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-port",
        Integer(0, 65535, "Invalid port"),
        0,
        "cluster",
        "Port at which clients reach this node from outside; 0 for `port`.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-bus-port",
        Integer(0, 65535, "Invalid bus port"),
        0,
        "cluster",
        "Port at which other nodes reach this node from outside; 0 for the port of the bus.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-seeds",
        Endpoints(),
        (),
        "cluster",
        "Nodes to meet, each `host`, `host:port` or `host:port@bus-port`. Names are looked up repeatedly, and each "
        "address found is met, so one name can stand for all nodes. Without a port, the ports are those of this node.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-name",
        Text(optional=True),
        "",
        "cluster",
        "Name of the cluster. Nodes that have another name are refused, those without a name are not.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-link-sendbuf-limit",
        Size(1, error="argument must be a memory size greater than zero"),
        64 << 20,
        "cluster",
        "Bytes that may wait to be sent to another node; beyond that, the connection is closed and opened again.",
        settable=True,
        added=True,
    ),
    Option(
        "aof-checksums",
        _YES_NO,
        True,
        "persistence",
        "Whether jobs in the append only file carry a checksum, by which damage is found when they are loaded.",
        settable=True,
        added=True,
    ),
    Option(
        "aof-restart-mark",
        _YES_NO,
        False,
        "persistence",
        "Whether SHUTDOWN REWRITE-AOF leaves a mark by which the next start queues all jobs as they were, once.",
        settable=True,
        added=True,
    ),
    Option(
        "shutdown-on-sigterm",
        Choice(("default", "rewrite-aof")),
        "default",
        "process",
        "What SIGTERM and SIGINT do: `default` is SHUTDOWN, `rewrite-aof` is SHUTDOWN REWRITE-AOF.",
        settable=True,
        added=True,
    ),
    Option(
        "http-port",
        Integer(0, 65535, "Invalid HTTP port"),
        DEFAULT_HTTP_PORT,
        "sockets",
        "TCP port for probes, metrics and the console; 0 for none. The default is left to others when it is taken. See "
        "[running](operations/running.md#http).",
        rewritten=False,  # 0 would stand for a port that was taken this time
        added=True,
    ),
    Option(
        "http-actions",
        _YES_NO,
        False,
        "sockets",
        "Whether the console on the HTTP port may pause queues, requeue and delete jobs, or only show them. See "
        "[the console](howto/console.md).",
        settable=True,
        added=True,
    ),
    Option(
        "metrics-queues",
        Count(),
        100,
        "observation",
        "How many queues have series of their own on the page `/metrics`, the longest ones; `all` for all of them. See "
        "[metrics](howto/metrics.md).",
        settable=True,
        added=True,
    ),
    Option(
        "requirepass-former",
        Password(512),
        b"",
        "clients",
        "AUTH takes this password as well as `requirepass`, while clients change over; empty for none.",
        settable=True,
        added=True,
    ),
    Option(
        "rename-command",
        Renames(),
        (),
        "clients",
        '`OLD NEW`: the command answers to the new name only; `""` removes it.',
        shown=False,
        rewritten=False,
    ),
)

OPTION_OF: Final = {option.name: option for option in OPTIONS}
"""Rows by name."""
