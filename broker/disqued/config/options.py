"""The table of directives: one row defines one directive.

The rows are in the order of CONFIG GET, followed by those that it does not show; CONFIG REWRITE appends lines in the
same order. To add a directive, add a row here and a typed attribute to `Config`.
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
    UserLines,
    YesNo,
)

Part = Literal["sockets", "clients", "process", "logging", "memory", "observation", "cluster", "persistence", "none"]
"""The part of the server that applies a directive; `none` for directives without effect."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Option(Generic[_T]):
    """One directive: its name, kind, default and properties."""

    name: str
    kind: Kind[_T]
    default: _T
    part: Part
    effect: str
    """One line about the effect, for the reference page."""
    settable: bool = False
    """Whether CONFIG SET can change the directive."""
    shown: bool = True
    """Whether CONFIG GET shows the directive."""
    rewritten: bool = True
    """Whether CONFIG REWRITE writes the directive; otherwise it keeps its lines as they are."""
    added: bool = False
    """Whether the directive does not exist in the original."""
    secret: bool = False
    """Whether the value is a password, which no log and no error shows."""
    in_file: bool = True
    """Whether a file may contain the directive; otherwise only CONFIG SET accepts it."""

    @property
    def attribute(self) -> str:
        """The name of the attribute of `Config` that holds the value."""
        return self.name.replace("-", "_")

    def of(self, config: object) -> _T:
        """The value in a `Config`, for a room that defines a directive of its own."""
        value: _T = getattr(config, self.attribute)
        return value


REDACTED: Final = "(redacted)"
"""Stands for a secret wherever directives or requests are shown."""
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
        "Password that clients must send with AUTH before other commands; empty for none.",
        settable=True,
        secret=True,
    ),
    Option(
        "unixsocket",
        Text(optional=True),
        "",
        "sockets",
        "Path of a Unix socket for clients; an existing file is replaced. Empty for none.",
    ),
    Option("logfile", Text(), "", "logging", "File to which the log is appended; empty for standard output."),
    Option("pidfile", Text(), "/var/run/disque.pid", "process", "File for the process ID, written with `daemonize`."),
    Option(
        "maxmemory",
        Memory(),
        MemoryShare(1 << 30),
        "memory",
        "Memory limit in bytes, or as a percentage (`60%`) of the memory of the container or machine. Above 75 % of "
        "the limit, new jobs are kept only by other nodes; above 95 %, memory is freed; above 100 %, commands that "
        "need more memory are refused. CONFIG SET accepts 0 for no limit. See [memory](operations/memory.md).",
        settable=True,
    ),
    Option(
        "maxmemory-samples",
        _POSITIVE,
        5,
        "none",
        "No effect: jobs that can be freed are kept in a list.",
        settable=True,
    ),
    Option(
        "timeout",
        Integer(error="Invalid timeout value"),
        0,
        "clients",
        "Seconds after which the connection of an idle client is closed; 0 for never.",
        settable=True,
    ),
    Option(
        "auto-aof-rewrite-percentage",
        _COUNT,
        100,
        "persistence",
        "Growth in percent after which the append-only file is rewritten; 0 for never.",
        settable=True,
    ),
    Option(
        "auto-aof-rewrite-min-size",
        Size(),
        64 << 20,
        "persistence",
        "Size below which the append-only file is not rewritten automatically.",
        settable=True,
    ),
    Option(
        "slowlog-log-slower-than",
        Integer(-(1 << 63), error="argument must be a whole number"),
        10000,
        "observation",
        "Microseconds above which a command is added to the slow log; negative for never.",
        settable=True,
    ),
    Option(
        "latency-monitor-threshold",
        _COUNT,
        0,
        "observation",
        "Milliseconds from which an event is recorded by the latency monitor; 0 for never.",
        settable=True,
    ),
    Option("slowlog-max-len", _COUNT, 128, "observation", "Maximum number of entries in the slow log.", settable=True),
    Option(
        "port",
        Integer(0, 65535, "Invalid port"),
        7711,
        "sockets",
        "TCP port for clients without TLS; 0 for none. The cluster bus uses this port plus 10000, or `cluster-port`.",
    ),
    Option(
        "tcp-backlog",
        Integer(error="Invalid backlog value"),
        511,
        "sockets",
        "Number of connections that the operating system queues until the server accepts them.",
    ),
    Option("databases", _POSITIVE, 16, "none", "No effect: there are no databases.", rewritten=False),
    Option(
        "maxclients",
        Integer(1, error="Invalid max clients limit"),
        10000,
        "clients",
        "Maximum number of connected clients; lowered at start if the process may not open enough files.",
        settable=True,
    ),
    Option(
        "watchdog-period",
        _COUNT,
        0,
        "none",
        "No effect: a debugging aid of the original.",
        settable=True,
        rewritten=False,
        in_file=False,
    ),
    Option(
        "hz",
        Clamped(lowest=1, highest=500),
        10,
        "process",
        "How often per second periodic tasks run, 1 to 500; a value outside is set to the nearest bound.",
        settable=True,
    ),
    Option(
        "cluster-node-timeout",
        Integer(1, error="cluster node timeout must be 1 or greater", zero_by_set=True),
        15000,
        "cluster",
        "Milliseconds of silence after which a node is suspected to have failed.",
        settable=True,
    ),
    Option(
        "tcp-keepalive",
        Seconds(error="Invalid tcp-keepalive value"),
        0,
        "sockets",
        "Seconds until an idle connection is probed; 0 or `no` for never, `yes` for 1. CONFIG GET shows `yes` or `no`.",
        settable=True,
    ),
    Option(
        "no-appendfsync-on-rewrite",
        _YES_NO,
        False,
        "persistence",
        "Whether fsync pauses while the append-only file is rewritten.",
        settable=True,
    ),
    Option(
        "daemonize", _YES_NO, False, "process", "Whether the server runs in the background and writes the `pidfile`."
    ),
    Option("activerehashing", _YES_NO, True, "none", "No effect: tables need no rehashing.", settable=True),
    Option(
        "aof-rewrite-incremental-fsync",
        _YES_NO,
        True,
        "persistence",
        "Whether the append-only file is synced in steps while it is rewritten.",
        settable=True,
    ),
    Option(
        "aof-load-truncated",
        _YES_NO,
        True,
        "persistence",
        "Whether an append-only file with an incomplete end is truncated and loaded; otherwise the start fails.",
        settable=True,
    ),
    Option(
        "aof-enqueue-jobs-once",
        _YES_NO,
        False,
        "persistence",
        "Whether the next start queues the jobs of the append-only file; it then sets this directive to `no`.",
        settable=True,
    ),
    Option(
        "maxmemory-policy",
        Choice(("acks", "noeviction")),
        "acks",
        "memory",
        "Jobs freed when memory is short. `acks`: acknowledged and delivered at-most-once jobs; `noeviction`: none.",
        settable=True,
    ),
    Option(
        "loglevel",
        Choice(("debug", "verbose", "notice", "warning")),
        "notice",
        "logging",
        "Lowest level of the log lines that are written: `debug`, `verbose`, `notice` or `warning`.",
        settable=True,
    ),
    Option(
        "appendfsync",
        Choice(("everysec", "always", "no")),
        "everysec",
        "persistence",
        "When the append-only file is synced. `everysec`: once a second; `always`: before replies; `no`: by the OS.",
        settable=True,
    ),
    Option(
        "syslog-facility", Choice(_FACILITIES), "local0", "logging", "Syslog facility: `user` or `local0` to `local7`."
    ),
    Option(
        "appendonly", _YES_NO, False, "persistence", "Whether jobs are logged to the append-only file.", settable=True
    ),
    Option(
        "dir",
        Directory(),
        "",
        "process",
        "Working directory, where relative paths start; empty for the directory in which the server is started.",
        settable=True,
    ),
    Option(
        "client-output-buffer-limit",
        OutputLimit(),
        (0, 0, 0),
        "clients",
        "`normal HARD SOFT SECONDS`: a client is closed when its unsent replies reach HARD bytes, or stay at SOFT "
        "bytes for more than SECONDS; 0 for no limit.",
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
        "Up to 16 addresses to listen on; empty for all. Connections to other nodes originate from the first one.",
    ),
    Option("syslog-enabled", _YES_NO, False, "logging", "Whether log lines also go to syslog.", shown=False),
    Option("syslog-ident", Text(), "disque", "logging", "Program name in syslog.", shown=False),
    Option(
        "appendfilename", FileName(), "disque.aof", "persistence", "Name of the append-only file in `dir`.", shown=False
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
        "TCP port of the cluster bus; 0 for `port` plus 10000, or `tls-port` plus 10000 with `port 0`.",
        added=True,
    ),
    Option(
        "cluster-bind",
        Addresses(16),
        (),
        "sockets",
        "Up to 16 addresses on which the cluster bus listens, and from which connections to other nodes originate; "
        "empty for those of `bind`.",
        added=True,
    ),
    Option(
        "cluster-announce-ip",
        Address(optional=True),
        "",
        "cluster",
        "IP address at which other nodes and clients reach this node; empty to let other nodes detect it.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-hostname",
        HostName(optional=True),
        "",
        "cluster",
        "Host name of this node. Other nodes look it up whenever they connect; clients see it in HELLO.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-port",
        Integer(0, 65535, "Invalid port"),
        0,
        "cluster",
        "Port at which clients reach this node; 0 for `port`.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-bus-port",
        Integer(0, 65535, "Invalid bus port"),
        0,
        "cluster",
        "Port at which other nodes reach this node; 0 for the port of the cluster bus.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-seeds",
        Endpoints(),
        (),
        "cluster",
        "Nodes to meet, each as `host`, `host:port` or `host:port@bus-port`. Names are looked up repeatedly and every "
        "address found is met, so one name can stand for all nodes. The default ports are those of this node.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-name",
        Text(optional=True),
        "",
        "cluster",
        "Name of the cluster. Nodes with another name are refused; nodes without a name are accepted unless "
        "`cluster-name-required` is set.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-name-required",
        _YES_NO,
        False,
        "cluster",
        "Whether nodes without a name are refused if `cluster-name` is set.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-secret-file",
        Text(optional=True),
        "",
        "cluster",
        "File with the secret that nodes prove to each other when they connect, or two during a rotation, one per line "
        "with 16 to 512 bytes. Read at start, when this is set, and on SIGHUP. Empty for none. See "
        "[security of the bus](operations/bus-security.md).",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-secret-required",
        _YES_NO,
        True,
        "cluster",
        "Whether nodes that do not prove the secret in `cluster-secret-file` are refused. `no` accepts them, which you "
        "need to enable the secret in a running cluster, and with nodes of the original.",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-link-sendbuf-limit",
        Size(1, error="argument must be a memory size greater than zero"),
        64 << 20,
        "cluster",
        "Maximum number of unsent bytes to another node; above it, the connection is closed and opened again.",
        settable=True,
        added=True,
    ),
    Option(
        "aof-checksums",
        _YES_NO,
        True,
        "persistence",
        "Whether jobs in the append-only file have a checksum, which detects damage when the file is loaded.",
        settable=True,
        added=True,
    ),
    Option(
        "aof-restart-marker",
        _YES_NO,
        False,
        "persistence",
        "Whether SHUTDOWN REWRITE-AOF leaves a restart marker: the next start then queues the jobs that were queued.",
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
        "shared-port",
        Integer(0, 65535, "Invalid shared port"),
        0,
        "sockets",
        "Second TCP port for clients, on which several nodes of this machine can accept: the kernel distributes "
        "connections among them. 0 for none. `disque-server --nodes` sets it. See "
        "[running](operations/running.md#several-nodes-on-one-machine).",
        added=True,
    ),
    Option(
        "http-port",
        Integer(0, 65535, "Invalid HTTP port"),
        DEFAULT_HTTP_PORT,
        "sockets",
        "TCP port for probes, metrics and the console; 0 for none. If the default port is taken, the server starts "
        "without it. See [running](operations/running.md#http).",
        rewritten=False,  # the value is 0 if the default port was taken at this start
        added=True,
    ),
    Option(
        "tls-port",
        Integer(0, 65535, "Invalid TLS port"),
        0,
        "sockets",
        "TCP port for clients with TLS, beside `port` or, with `port 0`, instead of it; 0 for none. See "
        "[TLS](operations/tls.md).",
        added=True,
    ),
    Option(
        "tls-cert-file",
        Text(optional=True),
        "",
        "sockets",
        "PEM file with the certificate of the node, followed by intermediate certificates.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-key-file",
        Text(optional=True),
        "",
        "sockets",
        "PEM file with the private key, without a passphrase; empty if the key is in `tls-cert-file`.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-ca-cert-file",
        Text(optional=True),
        "",
        "sockets",
        "PEM file with the certificates of the authorities that sign the certificates of clients and other nodes.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-auth-clients",
        Choice(("yes", "optional", "no")),
        "yes",
        "sockets",
        "Whether clients on `tls-port` need a certificate: `yes`, `no`, or `optional`, which verifies one only if the "
        "client sends it.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-min-version",
        Choice(("1.2", "1.3")),
        "1.2",
        "sockets",
        "Lowest version of TLS: `1.2` or `1.3`.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-ciphers",
        Text(optional=True),
        "",
        "sockets",
        "Ciphers of TLS 1.2 in the format of OpenSSL; empty for those of Python.",
        settable=True,
        added=True,
    ),
    Option(
        "http-tls",
        _YES_NO,
        False,
        "sockets",
        "Whether the HTTP port uses TLS. It requests no client certificates, because probes and browsers have none.",
        added=True,
    ),
    Option(
        "cluster-announce-tls-port",
        Integer(0, 65535, "Invalid TLS port"),
        0,
        "cluster",
        "Port at which clients with TLS reach this node; 0 for `tls-port`.",
        settable=True,
        added=True,
    ),
    Option(
        "http-actions",
        _YES_NO,
        False,
        "sockets",
        "Whether the console on the HTTP port can pause queues and requeue and delete jobs; otherwise it is read-only. "
        "See [the console](howto/console.md).",
        settable=True,
        added=True,
    ),
    Option(
        "http-auth",
        _YES_NO,
        False,
        "sockets",
        "Whether `/metrics` needs a user who can run INFO; probes are always open. See "
        "[access control](operations/access.md#the-http-port).",
        settable=True,
        added=True,
    ),
    Option(
        "metrics-queues",
        Count(),
        100,
        "observation",
        "Number of queues with time series of their own in `/metrics`, longest queues first; `all` for all. See "
        "[metrics](howto/metrics.md).",
        settable=True,
        added=True,
    ),
    Option(
        "requirepass-former",
        Password(512),
        b"",
        "clients",
        "Former password, which AUTH also accepts while clients change to `requirepass`; empty for none.",
        settable=True,
        secret=True,
        added=True,
    ),
    Option(
        "requirepass-file",
        Text(optional=True),
        "",
        "clients",
        "File with the password instead of `requirepass`; a second line is the former password. SIGHUP and CONFIG SET "
        "read it again. Empty for none. See [access control](operations/access.md).",
        settable=True,
        added=True,
    ),
    Option(
        "user",
        UserLines(),
        (),
        "clients",
        "`NAME RULE ...`: a user and its rules; one line for each user. See [access control](operations/access.md).",
        shown=False,
        rewritten=False,
        secret=True,
        added=True,
    ),
    Option(
        "aclfile",
        Text(optional=True),
        "",
        "clients",
        "File with `user` lines, which ACL LOAD reads and ACL SAVE writes; empty for none.",
        added=True,
    ),
    Option(
        "acllog-max-len", _COUNT, 128, "clients", "Maximum number of entries in ACL LOG.", settable=True, added=True
    ),
    Option(
        "protected-mode",
        _YES_NO,
        True,
        "clients",
        "Whether a node without a password and without `bind` serves only clients on its own machine.",
        settable=True,
        added=True,
    ),
    Option(
        "rename-command",
        Renames(),
        (),
        "clients",
        '`OLD NEW`: the command is available under its new name only; `""` removes it.',
        shown=False,
        rewritten=False,
    ),
)

OPTION_OF: Final = {option.name: option for option in OPTIONS}
"""The directives by name."""
