"""The directives of the original, in the order of CONFIG GET, followed by those that it does not show."""

from __future__ import annotations

from typing import Any, Final

from disqued.config.kinds import (
    Addresses,
    Choice,
    Clamped,
    Directory,
    FileName,
    Integer,
    Memory,
    MemoryShare,
    Octal,
    OutputLimit,
    Password,
    Seconds,
    Size,
    Text,
    YesNo,
)
from disqued.config.option import Option

_FACILITIES: Final = ("user", *(f"local{number}" for number in range(8)))
_YES_NO: Final = YesNo()
_COUNT: Final = Integer()
_POSITIVE: Final = Integer(1, error="argument must be a whole number, 1 or greater")

ORIGINALS: Final[tuple[Option[Any], ...]] = (
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
)
