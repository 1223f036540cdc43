"""Examples of the documentation, as tests use them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cli.running import Disque


def run_python(example: str, port: int, directory: Path) -> None:
    """Run an example as a program of its own, against the node at a port."""
    script = directory / "example.py"
    script.write_text(example.replace("localhost:7711", f"127.0.0.1:{port}"), encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def run_console(session: str, disque: Disque) -> None:
    """Run the `disque` commands of a session, and compare what they print, where the session shows it."""
    for command in session.split("$ disque ")[1:]:
        line, _, shown = command.partition("\n")
        printed = disque.ok(*shlex.split(line))
        assert not shown or printed == shown
