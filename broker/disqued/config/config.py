"""The typed values of all directives of one node.

Each directive is an attribute of the same name with `_` for `-`; the units are those of the reference page
(docs/configuration). The defaults are in the table of options. CONFIG SET has two steps, `parse` and `assign`, because
the part that owns a directive may have to act in between, and may fail.
"""

from __future__ import annotations

from typing import Any, Final

from disqued.config.glob import Glob
from disqued.config.kinds import BadValueError, MemoryShare, decode
from disqued.config.option import REDACTED, Option
from disqued.config.options import OPTIONS
from disqued.errors import ReplyError, shown

MAX_PATTERN_BYTES: Final = 128


class Config:
    """The configuration of one node, initially with all defaults."""

    requirepass: bytes
    unixsocket: str
    logfile: str
    pidfile: str
    maxmemory: MemoryShare
    maxmemory_samples: int
    timeout: int
    auto_aof_rewrite_percentage: int
    auto_aof_rewrite_min_size: int
    slowlog_log_slower_than: int
    latency_monitor_threshold: int
    slowlog_max_len: int
    port: int
    tcp_backlog: int
    databases: int
    maxclients: int
    watchdog_period: int
    hz: int
    cluster_node_timeout: int
    tcp_keepalive: int
    no_appendfsync_on_rewrite: bool
    daemonize: bool
    activerehashing: bool
    aof_rewrite_incremental_fsync: bool
    aof_load_truncated: bool
    aof_enqueue_jobs_once: bool
    maxmemory_policy: str
    loglevel: str
    appendfsync: str
    syslog_facility: str
    appendonly: bool
    dir: str
    client_output_buffer_limit: tuple[int, int, int]
    unixsocketperm: int
    bind: tuple[str, ...]
    syslog_enabled: bool
    syslog_ident: str
    appendfilename: str
    cluster_config_file: str
    cluster_port: int
    cluster_bind: tuple[str, ...]
    cluster_announce_ip: str
    cluster_announce_hostname: str
    cluster_announce_port: int
    cluster_announce_bus_port: int
    cluster_zone: str
    cluster_announce_external: str
    cluster_seeds: tuple[str, ...]
    cluster_seeds_delay: int
    cluster_name: str
    cluster_name_required: bool
    cluster_secret_file: str
    cluster_secret_required: bool
    cluster_max_clock_skew: int
    cluster_settings_file: str
    repair: bool
    repair_after: int
    repair_interval: int
    repair_rate: int
    cluster_link_sendbuf_limit: int
    aof_checksums: bool
    claim_log: bool
    job_log_entries: int
    job_log_bytes: int
    aof_restart_marker: bool
    shutdown_on_sigterm: str
    shutdown_drain_timeout: int
    external_port: int
    external_tls_port: int
    shared_port: int
    http_port: int
    tls_port: int
    shared_tls_port: int
    tls_cert_file: str
    tls_key_file: str
    tls_key_file_pass: bytes
    tls_ca_cert_file: str
    tls_auth_clients: str
    tls_auth_clients_user: str
    tls_min_version: str
    tls_ciphers: str
    tls_cluster: str
    http_tls: bool
    cluster_announce_tls_port: int
    http_actions: bool
    http_api: str
    http_auth: bool
    metrics_queues: int
    records_max: int
    requirepass_former: bytes
    requirepass_file: str
    user: tuple[tuple[bytes, ...], ...]
    aclfile: str
    acllog_max_len: int
    audit_log_file: str
    protected_mode: bool
    rename_command: tuple[tuple[bytes, bytes], ...]
    ordered_fsync: str
    ordered_cache: int

    def __init__(self, more: tuple[Option[Any], ...] = ()) -> None:
        """Set all defaults. `more` are directives of added rooms, which are not in the table."""
        self.options: tuple[Option[Any], ...] = (*OPTIONS, *more)
        """All directives, in the order of CONFIG GET."""
        self._by_name = {option.name: option for option in self.options}
        for option in self.options:
            self.assign(option.attribute, option.default)

    def option(self, name: str) -> Option[Any] | None:
        """The directive with that name, which must be in lower case; None if there is none."""
        return self._by_name.get(name)

    def get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        """Names and values of the directives that CONFIG GET shows for a glob pattern, in the order of the table.

        Raises ReplyError if the pattern is too long: matching it would take long.
        """
        if len(pattern) > MAX_PATTERN_BYTES:
            raise ReplyError(f"ERR the pattern has {len(pattern)} bytes, at most {MAX_PATTERN_BYTES} are possible")
        glob = Glob(pattern)
        return [
            (option.name.encode(), option.kind.show(getattr(self, option.attribute)))
            for option in self.options
            if option.shown and glob.matches(option.name.encode())
        ]

    def set(self, name: bytes, value: bytes) -> None:
        """Set a directive that needs no further action. Raises ReplyError."""
        self.assign(*self.parse(name, value))

    def parse(self, name: bytes, value: bytes) -> tuple[str, object]:
        """The attribute and the value for a CONFIG SET, without changing anything. Raises ReplyError."""
        option = self.option(decode(name).lower())
        if option is None or not option.settable:
            raise ReplyError(f"ERR Unsupported CONFIG parameter: {shown(name)}")
        try:
            return option.attribute, option.kind.parse(value)
        except BadValueError:
            sent = REDACTED if option.secret else shown(value)
            raise ReplyError(f"ERR Invalid argument '{sent}' for CONFIG SET '{shown(name)}'") from None

    @property
    def bus_addresses(self) -> tuple[str, ...]:
        """The addresses on which the node listens for other nodes; empty for all."""
        return self.cluster_bind or self.bind

    def assign(self, attribute: str, value: object) -> None:
        """Store a value that comes from `parse` or from the table of options."""
        setattr(self, attribute, value)
