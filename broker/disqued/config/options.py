"""The table of directives: one row defines one directive.

The rows of the original come first (`config.originals`), then those that this broker added. CONFIG GET shows them in
this order, and CONFIG REWRITE appends lines in it. To add a directive, add a row here and an attribute to `Config`.
"""

from __future__ import annotations

from typing import Any, Final

from disqued.config.kinds import (
    Address,
    Addresses,
    Choice,
    Count,
    Endpoints,
    ExternalAddress,
    FileName,
    HostName,
    IfFree,
    Integer,
    Password,
    Renames,
    Size,
    Text,
    UserLines,
    YesNo,
    ZoneName,
)
from disqued.config.option import Option
from disqued.config.originals import ORIGINALS

DEFAULT_HTTP_PORT: Final = IfFree(9711)
_YES_NO: Final = YesNo()
_COUNT: Final = Integer()

OPTIONS: Final[tuple[Option[Any], ...]] = (
    *ORIGINALS,
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
        "cluster-zone",
        ZoneName(optional=True),
        "",
        "cluster",
        "Zone of this node, for example the name of its data centre, rack or machine. Copies of a job go to zones that "
        "have none first; empty if unknown. See [zones](operations/running.md#zones).",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-announce-external",
        ExternalAddress(),
        "",
        "cluster",
        "Address at which clients outside of the network of the nodes reach this node: `host:port`, or "
        "`host:port@tls-port`. HELLO shows it to clients of `external-port` and `external-tls-port`. Empty for none.",
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
        "cluster-seeds-delay",
        Integer(0, 3600, "Invalid delay of seeds"),
        0,
        "cluster",
        "Seconds after its start in which a node without other members does not use `cluster-seeds`, so that it can be "
        "introduced by `CLUSTER MEET` first.",
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
        "cluster-max-clock-skew",
        Integer(0, 86_400_000, "Invalid clock skew"),
        0,
        "cluster",
        "Milliseconds by which the clock of this node may be ahead of the median of the other nodes' clocks. A node "
        "that is further ahead, three measurements in a row, goes into quarantine: it accepts no new jobs and gives no "
        "claims until its clock agrees again. 0 for no limit. See [clocks](operations/clocks.md).",
        settable=True,
        added=True,
    ),
    Option(
        "cluster-settings-file",
        FileName(of="cluster-settings-file"),
        "queues.conf",
        "cluster",
        "Name of the file in `dir` in which the node keeps the settings of queues (QCONF).",
        added=True,
    ),
    Option(
        "repair",
        _YES_NO,
        True,
        "cluster",
        "Whether lost copies of jobs are made again. See [repair](operations/repair.md).",
        settable=True,
        added=True,
    ),
    Option(
        "repair-after",
        Integer(0, 86400, "Invalid time before a repair"),
        30,
        "cluster",
        "Seconds after which the copies on a node that failed count as lost, until it returns with them.",
        settable=True,
        added=True,
    ),
    Option(
        "repair-interval",
        Integer(1, 86400, "Invalid interval of comparisons"),
        600,
        "cluster",
        "Seconds between two comparisons of the jobs that two nodes should both have.",
        settable=True,
        added=True,
    ),
    Option(
        "repair-rate",
        Integer(1, 1_000_000, "Invalid rate of repairs"),
        2000,
        "cluster",
        "Maximum number of jobs per second of which this node sends lost copies to other nodes.",
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
        "claim-log",
        _YES_NO,
        False,
        "persistence",
        "Whether the append-only file has a record of each claim of `GETJOB WITHCLAIM`. Claims then grow over a crash, "
        "whatever the clock says after it. See [claims](guarantees.md#claims).",
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
        Choice(("default", "rewrite-aof", "drain")),
        "default",
        "process",
        "What SIGTERM and SIGINT do: `default` is SHUTDOWN, `rewrite-aof` is SHUTDOWN REWRITE-AOF. `drain` transfers "
        "all jobs to the other nodes before SHUTDOWN.",
        settable=True,
        added=True,
    ),
    Option(
        "shutdown-drain-timeout",
        Integer(0, 86400, "Invalid timeout of a drain"),
        60,
        "process",
        "How many seconds `shutdown-on-sigterm drain` takes at most. Jobs that are left then stay in the append-only "
        "file, if there is one.",
        settable=True,
        added=True,
    ),
    Option(
        "external-port",
        Integer(0, 65535, "Invalid external port"),
        0,
        "sockets",
        "TCP port for clients outside of the network of the nodes. HELLO shows them the addresses that the nodes "
        "announce for them (`cluster-announce-external`). 0 for none.",
        added=True,
    ),
    Option(
        "external-tls-port",
        Integer(0, 65535, "Invalid external TLS port"),
        0,
        "sockets",
        "As `external-port`, for clients with TLS; needs `tls-port`. 0 for none.",
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
        "shared-tls-port",
        Integer(0, 65535, "Invalid shared TLS port"),
        0,
        "sockets",
        "As `shared-port`, for clients with TLS; 0 for none. It needs `tls-port`, the port of this node alone.",
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
        "PEM file with the private key; empty if the key is in `tls-cert-file`.",
        settable=True,
        added=True,
    ),
    Option(
        "tls-key-file-pass",
        Password(1024),
        b"",
        "sockets",
        "Password of the private key, if it is encrypted; empty for none.",
        settable=True,
        secret=True,
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
        "tls-auth-clients-user",
        Choice(("off", "cn")),
        "off",
        "clients",
        "`cn`: a client on `tls-port` whose certificate has the name of a user as its common name is that user without "
        "AUTH. `off`: certificates name no user. See [TLS](operations/tls.md#users-of-certificates).",
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
        "tls-cluster",
        Choice(("yes", "no", "optional")),
        "no",
        "sockets",
        "Whether the bus port uses TLS, in both directions. Nodes with `yes` and `no` cannot connect; `optional` "
        "connects to both, to switch a running cluster. With TLS, nodes always verify each other with "
        "`tls-ca-cert-file`. See [TLS](operations/tls.md#between-nodes).",
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
        "http-api",
        Choice(("no", "read", "full")),
        "no",
        "sockets",
        "Whether the HTTP port serves the [HTTP API](howto/http-api.md): `no`, `read` for requests that change "
        "nothing, or `full`.",
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
        "records-max",
        Integer(0, 50),
        10,
        "memory",
        "Percent of `maxmemory` that the records of finished jobs may take (ADDJOB RETAIN); without `maxmemory` they "
        "take up to 64 MB. From 95 % of that on, the oldest are forgotten.",
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
        "audit-log-file",
        Text(optional=True),
        "",
        "observation",
        "File for the audit log: who changed what, as lines of JSON; empty for none. See "
        "[access control](operations/access.md#audit-log).",
        settable=True,
        added=True,
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
