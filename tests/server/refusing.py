"""Runs of a server that cannot start: the exit status and the output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from disqued.testing.processes import SERVER


@dataclass(frozen=True)
class Outcome:
    """How a run of `disque-server` ended."""

    status: int
    out: str
    err: str


def run_server(directory: Path, *arguments: str, stdin: bytes = b"", launcher: Sequence[str] = ()) -> Outcome:
    """Run the server in `directory` until it ends by itself. No output may contain a traceback."""
    done = subprocess.run(
        [*launcher, *SERVER, *arguments], cwd=directory, input=stdin, capture_output=True, timeout=20, check=False
    )
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    assert "Traceback" not in out + err, out + err
    return Outcome(done.returncode, out, err)
