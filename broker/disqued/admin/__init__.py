"""Server administration: statistics, configuration, connections, logs and shutdown.

Commands for administrators belong here, and commands by which a connection describes itself. Only DEBUG FLUSHALL
changes jobs and queues. The room reaches the operating system only through the host.
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
