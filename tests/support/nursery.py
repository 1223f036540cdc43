"""Real broker processes that start in milliseconds, for tests that kill hundreds of them.

    with Nursery() as nursery:
        process = nursery.start(directory, "--port", "12345")
        process.kill()
        assert process.wait() == -9

The nursery is a process that has imported the server already, and forks for each one: what runs is `disque-server` with
its own process ID, sockets, files and signals. It is told what to do in lines of JSON on its standard input. When it
ends, or the test does, all of them are killed.

With `SPOILED` the processes have a disk that a test can spoil (`support.spoiled`).
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
"""The option of prctl by which a process is killed when its parent ends."""
LOG: Final = "server.log"


class Hatchling:
    """One `disque-server`."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery = nursery
        self.pid = pid
        self.status: int | None = None
        """The exit status once it was waited for, below zero for the signal that ended it."""

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it ended; the exit status."""
        if self.status is None:
            self.status = self._nursery.ask({"wait": self.pid})
        return self.status

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        if self.status is None:
            self.status = self._nursery.ask({"poll": self.pid})
        return self.status is not None


class Nursery:
    """Starts servers, with a disk that can be spoiled if that is wished. Used as a context."""

    def __init__(self, *, spoiled: bool = False) -> None:
        command = [sys.executable, "-m", "support.nursery", *(["spoiled"] if spoiled else [])]
        path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[1])])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )

    def ask(self, request: dict[str, Any]) -> Any:
        """Have something done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, directory: Path, *arguments: str) -> Hatchling:
        """A server in a directory, where its log is too."""
        return Hatchling(self, self.ask({"directory": str(directory), "arguments": arguments}))

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


# --- in the process of the nursery ------------------------------------------------------------------------------------


def _run(directory: str, arguments: Sequence[str]) -> NoReturn:
    """Become a server."""
    from disqued.server.main import main  # noqa: PLC0415 - imported already; tests do not need it

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
    import disqued.server.main  # noqa: F401, PLC0415 - what takes long is done once

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end this process
    if sys.argv[1:] == ["spoiled"]:
        from support.spoiled import spoil  # noqa: PLC0415 - for the servers only

        spoil()
    for line in sys.stdin.buffer:
        print(json.dumps(_answer(json.loads(line))), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _serve()
