"""An operator that kills itself right after so many actions: `python -m e2e.support.mortal ACTIONS [options]`.

It is the operator as it is but for that: after an action was done, and before anything is remembered,
told or logged. 0 is never.
"""

from __future__ import annotations

import os
import signal
import sys

from disque_operator import executor
from disque_operator.actions import Action
from disque_operator.main import main


def die_after(actions: int) -> None:
    """Have this process end at once when so many actions are done."""
    left = actions
    do = executor._execute

    async def do_and_die(action: Action, context: executor.ExecutorContext) -> None:
        nonlocal left
        await do(action, context)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    executor._execute = do_and_die


if __name__ == "__main__":
    die_after(int(sys.argv[1]))
    sys.argv[1:] = sys.argv[2:]
    main()
