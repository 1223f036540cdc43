"""Settings of queues under faults: a client that changes them anywhere, and the check that all nodes agree again.

The settings are those of queues that no other client uses, so they change no job. Not all seeds have them, so that the
others repeat runs from before.
"""

from __future__ import annotations

from random import Random
from typing import Final

from disqued.settings.room import settings_of
from disqued.testing.cluster import Cluster
from disqued.testing.history import History
from disqued.testing.workload import World

AGREE_MS: Final = 5000
"""How long after all nodes are connected, and nothing changes any more, they have the same settings."""
SHARE: Final = 0.3
"""The part of the seeds that have settings."""
_NAMES: Final = ("conf:a", "conf:b", "conf:*")
_VALUES: Final = (("ttl", "60"), ("ttl", "90"), ("pause", "in"), ("maxlen", "5"))
"""Few, because the links of the simulator are narrow."""
_PAUSE_MS: Final = 700


def has_settings(seed: int) -> bool:
    """Whether the runs of a seed change settings."""
    return Random(f"settings {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


class SettingsClient:
    """Changes settings on random nodes, while producers produce."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"changes of settings {seed}")  # noqa: S311 - repeatable chance is the point

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._chance.random() * _PAUSE_MS, self._change)

    def _change(self) -> None:
        chance = self._chance
        if not self._world.producing:
            return
        alive = [member for member in self._world.cluster.members if member.serving]
        if alive:
            member = chance.choice(alive)
            name, (setting, value) = chance.choice(_NAMES), chance.choice(_VALUES)
            if chance.random() < 0.3:
                member.tell("QCONF", name, "UNSET", setting)
            else:
                member.tell("QCONF", name, "SET", setting, value)
        self._world.later(100 + chance.random() * _PAUSE_MS, self._change)


class SettingsWatch:
    """Checks after healing that the nodes come to agree."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self._cluster = cluster
        self._history = history
        self._since_ms = 0
        """Since when all nodes have been connected; 0 while they are not."""
        self.checked = False

    def look(self) -> None:
        """Check once, when the nodes have been connected for long enough."""
        now_ms = self._cluster.network.now_ms
        if not self._cluster.is_whole():
            self._since_ms = 0
            return
        self._since_ms = self._since_ms or now_ms
        if now_ms - self._since_ms < AGREE_MS:
            return
        self.checked = True
        # An entry that has expired stays at the nodes whose clocks are behind: none of them is compared.
        clocks_ms = max(member.now_ms for member in self._cluster.members)
        kept = {
            member.number: [
                entry.wire
                for entry in settings_of(member.node.state).entries.all()
                if not 0 < entry.expires_ms() <= clocks_ms
            ]
            for member in self._cluster.members
        }
        if any(wires != kept[1] for wires in kept.values()):
            shown = ", ".join(f"{number}: {len(wires)} entries" for number, wires in kept.items())
            self._history.violate(now_ms, f"settings differ {AGREE_MS} ms after all nodes were connected: {shown}")
