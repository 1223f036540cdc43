"""What the tests of the command line share: a broker for each module, and `disque` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from support.server import ServerProcess

TIMEOUT_S = 60


@dataclass(frozen=True)
class Disque:
    """Runs `disque` against a node. `terminal` makes the output that of a terminal, though it is read here."""

    port: int
    terminal: bool = False

    def environment(self) -> dict[str, str]:
        """That of the tests, without what would change the result."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("DISQUE_", "FAKETTY"))}
        return ours | {"DISQUE_PORT": str(self.port)} | ({"FAKETTY": "1"} if self.terminal else {})

    def on_terminal(self) -> Disque:
        """The same with the output form of a terminal."""
        return replace(self, terminal=True)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run it to its end."""
        command = [sys.executable, "-m", "disqued.cli.main", *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False, env=self.environment()
        )

    def ok(self, *arguments: str, stdin: bytes = b"") -> str:
        """Its output, when it succeeds."""
        done = self(*arguments, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One broker for all tests of a module; each uses queues of its own."""
    with ServerProcess(tmp_path_factory.mktemp("node")) as process:
        yield process


@pytest.fixture
def disque(node: ServerProcess) -> Disque:
    """`disque`, pointed at the node by the environment."""
    return Disque(node.port)
