"""Settings of queues: QCONF, the set of settings that all nodes share, and the file with it.

What the settings mean belongs to the rooms that read `Queue.settings`; the table of settings is in `core.queues`.
"""

from disqued.core.runtime.subsystem import Subsystem
from disqued.settings import qconf, settings, settingsdigest
from disqued.settings.counters import COUNTERS
from disqued.settings.metrics import METRICS
from disqued.settings.room import NAME, SettingsRoom

SUBSYSTEM = Subsystem(
    NAME,
    SettingsRoom,
    (qconf.COMMAND,),
    (settings.MESSAGE, settingsdigest.MESSAGE),
    counters=COUNTERS,
    metrics=METRICS,
)
