"""Runs the server as a server: its figures, its configuration, its connections, its logs, its end.

Whatever an administrator asks or orders belongs here, and what a connection says about itself. Jobs and queues are not
touched here, but for DEBUG FLUSHALL, and the outside is reached through the host only.
"""

from disqued.admin import (
    auth,
    client,
    commandcmd,
    configcmd,
    debug,
    info,
    latency,
    monitor,
    ping,
    shutdown,
    slowlog,
    timecmd,
)
from disqued.admin.metrics import METRICS
from disqued.admin.room import NAME, AdminRoom
from disqued.core.runtime.counters import COUNTERS
from disqued.core.runtime.subsystem import Subsystem

SUBSYSTEM = Subsystem(
    NAME,
    AdminRoom,
    commands=(
        auth.COMMAND,
        ping.COMMAND,
        info.COMMAND,
        shutdown.COMMAND,
        monitor.COMMAND,
        debug.COMMAND,
        configcmd.COMMAND,
        client.COMMAND,
        slowlog.COMMAND,
        timecmd.COMMAND,
        commandcmd.COMMAND,
        latency.COMMAND,
    ),
    counters=COUNTERS,
    metrics=METRICS,
)
