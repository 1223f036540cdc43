"""Real broker processes that start in milliseconds, for tests that kill hundreds of them.

    with ForkServer() as fork_server:
        process = fork_server.start(directory, "--port", "12345")
        process.kill()
        assert process.wait() == -9

The fork server is a process that has already imported the server, and forks for each new one: what runs is
`disque-server` with its own process ID, sockets, files and signals. Requests are lines of JSON on its standard input.
When it or the test ends, all servers are killed.

With `faulty_disk`, tests can inject disk faults into the servers (`support.faultydisk`).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

SET_DEATH_SIGNAL: Final = 1
"""The option of prctl that has a process killed when its parent ends."""
LOG: Final = "server.log"
FAULTY_DISK: Final = "faulty-disk"
"""The argument of the fork server that installs `support.faultydisk`."""


class ForkedProcess:
    """One `disque-server`."""

    def __init__(self, fork_server: ForkServer, pid: int) -> None:
        self._fork_server = fork_server
        self.pid = pid
        self.status: int | None = None
        """The exit status after `wait`; negative if a signal ended the process."""

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until the process has ended; returns the exit status."""
        if self.status is None:
            self.status = self._fork_server.ask({"wait": self.pid})
        return self.status

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        if self.status is None:
            self.status = self._fork_server.ask({"poll": self.pid})
        return self.status is not None


class ForkServer:
    """Starts servers, with a disk on which faults can be injected if `faulty_disk`. Used as a context."""

    def __init__(self, *, faulty_disk: bool = False) -> None:
        command = [sys.executable, "-m", "support.forkserver", *([FAULTY_DISK] if faulty_disk else [])]
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[1])])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )

    def ask(self, request: dict[str, Any]) -> Any:
        """Send a request and return the reply."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, directory: Path, *arguments: str) -> ForkedProcess:
        """Start a server in a directory, where it also writes its log."""
        return ForkedProcess(self, self.ask({"directory": str(directory), "arguments": arguments}))

    def close(self) -> None:
        """Kill all servers."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# --- in the fork server --------------------------------------------------------------------------------------------


def _run(directory: str, arguments: Sequence[str]) -> NoReturn:
    """Turn this process into a server."""
    from disqued.server.main import main  # noqa: PLC0415 - already imported; tests do not need it

    ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
    os.chdir(directory)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["disque-server", *arguments]
    status = 0
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _answer(request: dict[str, Any]) -> int | None:
    if "wait" in request:
        return os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
    if "poll" in request:
        pid, status = os.waitpid(request["poll"], os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None
    pid = os.fork()
    if pid == 0:
        _run(request["directory"], request["arguments"])
    return pid


def _serve() -> None:
    import disqued.server.main  # noqa: F401, PLC0415 - import the slow modules once

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the tests, which end this process
    if sys.argv[1:] == [FAULTY_DISK]:
        from support.faultydisk import install  # noqa: PLC0415 - for the servers only

        install()
    for line in sys.stdin.buffer:
        print(json.dumps(_answer(json.loads(line))), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _serve()
