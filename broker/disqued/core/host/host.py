"""What a node asks of the world outside: clocks, chance, files and the process it runs in.

The server implements `Host` on the operating system, tests and the simulator implement it on virtual time and memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from disqued.core.host.disk import Disk


@dataclass(frozen=True)
class ProcessFacts:
    """The process as INFO shows it."""

    process_id: int
    executable: str
    config_file: str
    operating_system: str
    resident_bytes: int
    system_s: float
    user_s: float
    children_system_s: float
    children_user_s: float
    multiplexing_api: str = "epoll"
    """What the event loop waits with."""


@dataclass(frozen=True)
class MemoryLimit:
    """How much memory there is for this process, and who says so."""

    size_bytes: int
    source: str
    """`cgroup`, the limit of the container or of another group of processes, or `machine`, its RAM."""


class Host(Protocol):
    """The world outside a node. Failing file operations raise OSError."""

    @property
    def disk(self) -> Disk:
        """The files of the working directory."""

    def wall_us(self) -> int:
        """Wall-clock time, microseconds since 1970, for display only: timers run on the `now_ms` of each input."""

    def stopwatch_ns(self) -> int:
        """A clock that only measures spans, in nanoseconds."""

    def random(self) -> float:
        """A uniform random number of [0, 1)."""

    def random_bytes(self, count: int) -> bytes:
        """Random bytes."""

    def facts(self) -> ProcessFacts:
        """What INFO shows of the process."""

    def resident_bytes(self) -> int:
        """What the process takes of the machine's memory."""

    def memory_limit(self) -> MemoryLimit:
        """How much memory there is for this process."""

    def release_memory(self) -> None:
        """Give back to the system what was freed, as far as the allocator can."""

    def change_directory(self, path: str) -> None:
        """Make `path` the working directory."""

    def working_directory(self) -> str:
        """The absolute working directory."""

    def allow_clients(self, count: int) -> int:
        """Raise the limit on open files for that many clients; returns how many clients are possible."""

    def read_config(self) -> str | None:
        """The text of the configuration file; None when the server runs without one."""

    def write_config(self, text: str) -> None:
        """Replace the configuration file as a whole."""

    def save_nodes(self, text: str, sync: bool) -> None:
        """Replace the cluster configuration file."""

    def log(self, level: str, text: str) -> None:
        """Write a line to the server's log; level is debug, verbose, notice or warning."""

    def set_log_level(self, level: str) -> None:
        """Drop log lines below this level from now on."""

    def keep_alive(self, interval_s: int) -> None:
        """Set the TCP keep-alive interval of new client connections, 0 for none."""

    def sleep(self, seconds: float) -> None:
        """Stop the whole process for a while (DEBUG SLEEP)."""

    def shutdown(self) -> None:
        """End the server cleanly after the current input."""

    def fail(self, why: str) -> None:
        """End the server because it can not serve, with exit status 1; the log says why."""

    def restart(self, delay_ms: int, graceful: bool) -> bool:
        """Start the server anew with the same command line; False when that is not possible."""

    def crash(self, kind: str) -> None:
        """Die at once: `segfault`, `oom` or `assert`."""
