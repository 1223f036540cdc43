"""A Celery worker of the tests: the real command, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from disqued.testing.processes import ProcessFailedError, wait_until

TESTS: Final = Path(__file__).parents[1]
READY: Final = " ready."
PATIENCE_S: Final = 90
"""Long enough on a machine that is busy."""


class CeleryWorker:
    """`celery -A support.celeryapp worker`, ready when the context begins; killed when it ends, if it still runs.

    `environment` is for the application, `arguments` for the command.
    """

    def __init__(
        self, directory: Path, broker: str, *arguments: str, app: str = "support.celeryapp", **environment: str
    ) -> None:
        self.log = directory / "worker.log"
        self._start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", app, "worker", "-l", "INFO", "-c", "2", *arguments],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": str(TESTS), "BROKER": broker, **environment},
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        """What it printed."""
        return self.log.read_bytes()[self._start :].decode(errors="replace")

    def wait_until(self, condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds while the worker runs."""

        def holds() -> bool:
            if self.process.poll() is not None and not condition():
                raise ProcessFailedError(f"the worker exited with {self.process.returncode}: {what}\n{self.output}")
            return bool(condition())

        wait_until(holds, what, lambda: self.output, timeout_s)

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = PATIENCE_S) -> int:
        """Send a signal and return the exit status: SIGTERM ends after the running tasks, SIGQUIT at once."""
        self.process.send_signal(how)
        return self.process.wait(timeout_s)

    def __enter__(self) -> Self:
        try:
            self.wait_until(lambda: READY in self.output, "the worker is ready")
        except BaseException:
            self._kill()
            raise
        return self

    def _kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._kill()
