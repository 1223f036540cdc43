"""What a node needs from its environment: clocks, random numbers, files, and the process in which it runs.

The server implements `Host` on the operating system; tests and the simulator implement it in virtual time and memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from disqued.core.host.disk import Disk


@dataclass(frozen=True)
class ProcessFacts:
    """What INFO shows about the process."""

    process_id: int
    executable: str
    config_file: str
    operating_system: str
    resident_bytes: int
    system_s: float
    user_s: float
    children_system_s: float
    children_user_s: float
    certificate_expires_s: int = 0
    """When the TLS certificate of the node expires, in unix seconds; 0 without TLS."""
    multiplexing_api: str = "epoll"
    """The system call with which the event loop waits."""


@dataclass(frozen=True)
class MemoryLimit:
    """How much memory the system has for this process, and the source of that limit."""

    size_bytes: int
    source: str
    """`cgroup` for the limit of a container or another group of processes, or `machine` for the RAM."""


class Host(Protocol):
    """The environment of a node. File operations that fail raise OSError."""

    @property
    def disk(self) -> Disk:
        """The files of the working directory."""

    def wall_us(self) -> int:
        """Wall-clock time in unix microseconds, for display only: timers use the `now_ms` of each input."""

    def wall_text(self) -> str:
        """Wall-clock time in UTC with milliseconds, as in RFC 3339: `2027-01-15T08:00:00.000Z`."""

    def next_time(self, line: str, zone: str, after_ms: int) -> int:
        """The first time of a cron line in a time zone after a time, in unix milliseconds; 0 if there is none.

        Raises ValueError if the line or the zone is invalid.
        """

    def stopwatch_ns(self) -> int:
        """A monotonic clock in nanoseconds, to measure durations."""

    def random(self) -> float:
        """A uniform random number in [0, 1)."""

    def random_bytes(self, count: int) -> bytes:
        """Random bytes."""

    def facts(self) -> ProcessFacts:
        """What INFO shows about the process."""

    def resident_bytes(self) -> int:
        """The resident memory of the process."""

    def memory_limit(self) -> MemoryLimit:
        """How much memory the system has for this process."""

    def release_memory(self) -> None:
        """Return freed memory to the system, as far as the allocator can."""

    def change_directory(self, path: str) -> None:
        """Make `path` the working directory."""

    def working_directory(self) -> str:
        """The absolute working directory."""

    def allow_clients(self, count: int) -> int:
        """Raise the limit of open files for that many clients; returns how many clients are possible."""

    def read_config(self) -> str | None:
        """The text of the configuration file; None when the server runs without one."""

    def read_secret(self, path: str) -> bytes:
        """The content of a file with secrets, at most 64 KiB. Warns in the log if all users can read it."""

    def write_config(self, text: str) -> None:
        """Replace the configuration file as a whole."""

    def read_file(self, path: str) -> str:
        """The text of a file."""

    def write_file(self, path: str, text: str) -> None:
        """Replace an existing file as a whole."""

    def save_nodes(self, text: str, sync: bool) -> None:
        """Replace the cluster configuration file."""

    def log(self, level: str, text: str) -> None:
        """Write a line to the server's log; level is debug, verbose, notice or warning."""

    def change_tls(self, attribute: str, value: object) -> str:
        """Use TLS with another value of a directive for new connections; returns why not, empty if it does."""

    def set_log_level(self, level: str) -> None:
        """Drop log lines below this level."""

    def keep_alive(self, interval_s: int) -> None:
        """Set the TCP keep-alive interval of new client connections, 0 for none."""

    def sleep(self, seconds: float) -> None:
        """Stop the whole process for a while (DEBUG SLEEP)."""

    def shutdown(self) -> None:
        """Shut the server down cleanly after the current input."""

    def fail(self, why: str) -> None:
        """Log the reason why the server cannot serve, and exit with status 1."""

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Restart the server with the same command line; False if that is impossible."""

    def crash(self, kind: str) -> None:
        """Crash at once (DEBUG): `segfault`, `oom` or `assert`."""
