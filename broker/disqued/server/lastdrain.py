"""The drain before a signal ends the server (`shutdown-on-sigterm drain`).

It is for nodes without a disk that outlives them, such as pods without volumes: other nodes take the jobs, which would
be lost with the process. It ends when no job is left, when no other node stays, since a whole cluster that is stopped
must not wait, and after `shutdown-drain-timeout`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from disqued.core.runtime.state import NodeState
from disqued.leaving.progress import jobs_left
from disqued.membership.leave import nobody_stays
from disqued.server import logs
from disqued.server.shell import Shell

_CHECK_S: Final = 0.05


async def drain(shell: Shell, timeout_s: float) -> None:
    """Transfer all jobs to other nodes, and log what is left if that fails."""
    state = shell.node.state
    if state.loading:
        return
    if not nobody_stays(state):
        shell.node.leave_to_end(shell.clock.now_ms())
        shell.settle()
    loop = asyncio.get_running_loop()
    until_s = loop.time() + timeout_s
    while left := jobs_left(state):
        why = _why_over(state, late=loop.time() >= until_s)
        if why:
            logs.write("warning", f"Shutting down with {left} jobs that no other node took: {why}")
            return
        await asyncio.sleep(_CHECK_S)
    if state.view.leaving:
        logs.write("notice", "All jobs are on other nodes")


def _why_over(state: NodeState, *, late: bool) -> str:
    """Why the drain is over although jobs are left; empty if it is not."""
    if nobody_stays(state):
        return "no other node stays"
    if not state.view.leaving:
        return "it was cancelled by CLUSTER LEAVING no"
    return "shutdown-drain-timeout is over" if late else ""
