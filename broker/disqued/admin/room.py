"""The admin room of one node: directives that change something on the host."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.memorymonitor import make_room
from disqued.core.runtime.room import Room
from disqued.errors import ReplyError

NAME: Final = "admin"


class AdminRoom(Room):
    """Hears of changes of the configuration."""

    def config_changing(self, attribute: str, value: object) -> None:
        """Do what may fail before the value is taken over."""
        if attribute == "dir":
            self._change_directory(str(value))
        elif attribute == "maxclients":
            assert isinstance(value, int)
            self._allow_clients(value)

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
        """Pass the value on to the host, or free memory."""
        state = self.state
        if attribute == "loglevel":
            state.host.set_log_level(state.config.loglevel)
        elif attribute == "tcp_keepalive":
            state.host.keep_alive(state.config.tcp_keepalive)
        elif attribute == "maxmemory":
            make_room(state)
