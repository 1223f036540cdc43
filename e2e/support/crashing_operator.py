"""An operator that kills itself after a number of actions: `python crashing_operator.py ACTIONS [options]`.

Everything else is the real operator. It dies right after the last action, before the action is recorded, reported or
logged. With 0 it never dies. It needs only the package of the operator, so it runs in a pod (`crash_loop`).
"""

from __future__ import annotations

import os
import signal
import sys

from disque_operator import executor
from disque_operator.actions import Action
from disque_operator.main import main


def die_after(actions: int) -> None:
    """Make this process kill itself after this number of actions."""
    left = actions
    execute = executor._execute

    async def execute_and_die(action: Action, context: executor.ExecutorContext) -> None:
        nonlocal left
        await execute(action, context)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    executor._execute = execute_and_die


if __name__ == "__main__":
    die_after(int(sys.argv[1]))
    sys.argv[1:] = sys.argv[2:]
    main()
