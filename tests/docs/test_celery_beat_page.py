"""The guide about periodic tasks of Celery: its commands print what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from disqued.testing.processes import ServerProcess

TEXT = (Path(__file__).parents[2] / "docs" / "howto" / "celery-beat.md").read_text(encoding="utf-8")
[TASKS] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
[CONSOLE] = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)


def test_commands_print_what_the_page_shows(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.replace("localhost:7711", f"127.0.0.1:{server.port}"))
    for command in CONSOLE.split("$ celery ")[1:]:
        line, _, shown = command.partition("\n")
        words = [sys.executable, "-m", "celery", *shlex.split(line)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == shown
