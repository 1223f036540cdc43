"""Runs operators one after the other, each of which kills itself after some actions, until one is idle.

It runs in a pod, where operators reach brokers whatever the network outside looks like, and needs only Python and the
operator: `python crash_loop.py '{"quiet_s": 20, "most": 60, "actions": [1], "options": ["--namespaces", "shop"]}'`. Its
last line is the number of operators that killed themselves.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

OPERATOR: Final = Path(__file__).with_name("crashing_operator.py")
MARK: Final = "operators that killed themselves: "


def crash_repeatedly(*, quiet_s: float, most: int, actions: list[int], options: list[str]) -> int:
    """Return how many operators killed themselves before one had nothing to do for `quiet_s`."""
    for number in range(most):
        dies_after = str(actions[number % len(actions)])
        with subprocess.Popen([sys.executable, str(OPERATOR), dies_after, *options]) as operator:
            try:
                status = operator.wait(quiet_s)
            except subprocess.TimeoutExpired:
                operator.kill()
                return number
        if status != -signal.SIGKILL:
            raise SystemExit(f"the operator exited unexpectedly, status {status}")
    raise SystemExit(f"not finished after {most} operators")


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    print(f"{MARK}{crash_repeatedly(**given)}", flush=True)
