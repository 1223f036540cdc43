"""The values of all directives of one node, with their types.

Directives are attributes of the same name, `-` written `_`; units are those of the reference page (docs/configuration).
The table of options has the defaults. CONFIG SET is two steps, `parse` and `assign`, because the part that owns a
directive may have to act in between and may fail.
"""

from __future__ import annotations

from typing import Any

from disqued.config.glob import glob_match
from disqued.config.kinds import BadValueError, MemoryShare, decode
from disqued.config.options import OPTIONS, Option
from disqued.errors import ReplyError


class Config:
    """One node's configuration; starts with the defaults."""

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
    cluster_announce_ip: str
    cluster_announce_hostname: str
    cluster_announce_port: int
    cluster_announce_bus_port: int
    cluster_seeds: tuple[str, ...]
    cluster_name: str
    cluster_link_sendbuf_limit: int
    aof_checksums: bool
    aof_restart_mark: bool
    shutdown_on_sigterm: str
    http_port: int
    http_actions: bool
    metrics_queues: int
    requirepass_former: bytes
    rename_command: tuple[tuple[bytes, bytes], ...]

    def __init__(self, more: tuple[Option[Any], ...] = ()) -> None:
        """`more` are directives that the table does not have: those of rooms that are added to a node."""
        self.options: tuple[Option[Any], ...] = (*OPTIONS, *more)
        """All directives, in the order of CONFIG GET."""
        self._by_name = {option.name: option for option in self.options}
        for option in self.options:
            self.assign(option.attribute, option.default)

    def option(self, name: str) -> Option[Any] | None:
        """The directive of that name, in lower case; None if there is none."""
        return self._by_name.get(name)

    def get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        """Names and values of the shown directives whose name matches the glob, in the fixed order."""
        return [
            (option.name.encode(), option.kind.show(getattr(self, option.attribute)))
            for option in self.options
            if option.shown and glob_match(pattern, option.name.encode())
        ]

    def set(self, name: bytes, value: bytes) -> None:
        """Change a directive that has no effect beyond its value; raises ReplyError."""
        self.assign(*self.parse(name, value))

    def parse(self, name: bytes, value: bytes) -> tuple[str, object]:
        """The attribute and the value that CONFIG SET asks for; changes nothing. Raises ReplyError."""
        option = self.option(decode(name).lower())
        if option is None or not option.settable:
            raise ReplyError(f"ERR Unsupported CONFIG parameter: {decode(name)}")
        try:
            return option.attribute, option.kind.parse(value)
        except BadValueError:
            raise ReplyError(f"ERR Invalid argument '{decode(value)}' for CONFIG SET '{decode(name)}'") from None

    def assign(self, attribute: str, value: object) -> None:
        """Give a directive a value that `parse` or the table of options gave."""
        setattr(self, attribute, value)
