"""What the settings room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

CHANGED: Final = Counter("settings_changed", "Settings of queues that clients of this node set or removed (QCONF).")
RECEIVED: Final = Counter("settings_received", "Changes of settings that this node took from other nodes.")
REFUSED: Final = Counter(
    "settings_refused", "Entries and frames with settings of other nodes that were refused as invalid; see the log."
)
EXCHANGED: Final = Counter(
    "settings_exchanged", "Times that this node sent all its settings to another node, because theirs differed."
)
COUNTERS: Final = (CHANGED, RECEIVED, REFUSED, EXCHANGED)
