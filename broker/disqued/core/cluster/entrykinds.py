"""The kinds of entries in the set that all members share; the settings room keeps it (`disqued.settings.entries`)."""

from __future__ import annotations

from typing import Final

SETTING: Final = 1
"""The key is a setting of queues, the name that of a queue or a pattern."""
PURGE: Final = 2
"""The key is the phase of the jobs that a purge deletes (QPURGE); the name is that of a queue."""
SCHEDULE: Final = 3
"""The name is that of a schedule, the key `run` or `state`: what it does, and whether it is paused."""
LAST_RUN: Final = 4
"""The name is that of a schedule, the key `last`: what is known about its runs."""
MOST_SCHEDULE_BYTES: Final = 32 << 10
"""The longest value of an entry that is no setting and no mark of a purge."""
