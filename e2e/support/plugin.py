"""`kubectl disque`, as people run it: by kubectl, which finds it on the PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

COMMAND_S: Final = 300


def environment(**more: str) -> dict[str, str]:
    """That of the tests, with the programs of this installation first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISQUE_")}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"} | more


class Plugin:
    """Runs it in a namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def words(self, *words: str) -> list[str]:
        """The whole command."""
        return ["kubectl", "disque", "--namespace", self._namespace, *words]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.words(*words), capture_output=True, text=True, check=False, env=environment(), timeout=COMMAND_S
        )

    def ok(self, *words: str) -> str:
        """Its output, when it succeeds."""
        done = self(*words)
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *words: str) -> Any:
        """Its output with `-o json`."""
        return json.loads(self.ok(*words, "-o", "json"))

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run it beside the test; ended at the end."""
        with subprocess.Popen(
            self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
