"""The admin room of one node: applies the directives about clients, memory, logging and monitoring."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.memorymonitor import make_room
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError

NAME: Final = "admin"


class AdminRoom(Room):
    """Applies the configuration at start and after CONFIG SET."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self._limit_memory()
        self._limit_output()

    def config_changing(self, attribute: str, value: object) -> None:
        """Do what may fail before the value is assigned."""
        if attribute == "dir":
            self._change_directory(str(value))
        elif attribute == "maxclients":
            assert isinstance(value, int)
            self._allow_clients(value)
        elif attribute.startswith("tls_"):
            refusal = self.state.host.change_tls(attribute, value)
            if refusal:
                raise ReplyError(f"ERR {refusal}")

    def _change_directory(self, path: str) -> None:
        try:
            self.state.host.change_directory(path)
        except OSError as error:
            raise ReplyError(f"ERR Changing directory: {error.strerror}") from error

    def _allow_clients(self, wanted: int) -> None:
        possible = self.state.host.allow_clients(wanted)
        if possible < wanted:
            raise ReplyError(
                "ERR The operating system is not able to handle the specified number of clients, "
                f"try with {max(possible, 1)}"
            )

    def config_changed(self, attribute: str) -> None:
        """Apply the new value."""
        state = self.state
        if attribute == "loglevel":
            state.host.set_log_level(state.config.loglevel)
        elif attribute == "tcp_keepalive":
            state.host.keep_alive(state.config.tcp_keepalive)
        elif attribute == "client_output_buffer_limit":
            self._limit_output()
        elif attribute in {"slowlog_log_slower_than", "latency_monitor_threshold"}:
            state.monitoring.configure()
        elif attribute == "maxmemory":
            self._limit_memory()
            make_room(state)

    def _limit_memory(self) -> None:
        limit = self.state.host.memory_limit()
        self.state.lifecycle.memory.limit(self.state.config.maxmemory.of(limit.size_bytes), limit.size_bytes)

    def _limit_output(self) -> None:
        hard, soft, _ = self.state.config.client_output_buffer_limit
        self.state.ready.output_limited = hard > 0 or soft > 0
