"""Runs `kubectl disque` as users do: through kubectl, which finds the plugin in PATH."""

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
    """Return the environment of the tests, with the programs of this installation first in PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISQUE_")}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"} | more


class Plugin:
    """Runs `kubectl disque` in a namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def words(self, *words: str) -> list[str]:
        """Return the full command line."""
        return ["kubectl", "disque", "--namespace", self._namespace, *words]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command until it ends."""
        return subprocess.run(
            self.words(*words), capture_output=True, text=True, check=False, env=environment(), timeout=COMMAND_S
        )

    def ok(self, *words: str) -> str:
        """Run a command that must succeed, and return its output."""
        done = self(*words)
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *words: str) -> Any:
        """Run a command with `-o json`, and return the parsed output."""
        return json.loads(self.ok(*words, "-o", "json"))

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command in the background; it is terminated when the context ends."""
        with subprocess.Popen(
            self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
