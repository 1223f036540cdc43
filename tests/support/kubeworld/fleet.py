"""Several clusters of one operator, in the same virtual time. They share nothing but the operator and its turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from disque_operator.turns import Turns
from support.kubeworld.scenario import SETTLED_ROUNDS, TIMEOUT_S, Scenario, a_spec


class Fleet:
    """Clusters by name, all without an image in their spec."""

    def __init__(self, *clusters: str, image: str, **fields: Any) -> None:
        self.turns = Turns(lambda: [("prod", name) for name in clusters])
        self.clusters = {
            name: Scenario(a_spec(name=name, image=None, **fields), load=False, turns=self.turns) for name in clusters
        }
        self.install(image)
        self.settle()

    def install(self, image: str) -> None:
        """Start an operator with this default image in place of the former one."""
        self.turns.reset()
        for scenario in self.clusters.values():
            scenario.world.default_image = image
            scenario.world.changed = True

    def run(self, seconds: int) -> None:
        """Advance the time of all clusters."""
        for _ in range(seconds):
            for scenario in self.clusters.values():
                scenario.run(1)

    def until(self, condition: Callable[[], bool]) -> None:
        """Advance the time until a condition holds."""
        for _ in range(TIMEOUT_S):
            if condition():
                return
            self.run(1)
        raise AssertionError("\n".join(scenario.describe() for scenario in self.clusters.values()))

    def settle(self) -> None:
        """Advance the time until no cluster has anything to do for a while."""
        for scenario in self.clusters.values():
            scenario.quiet_rounds = 0
        self.until(lambda: all(scenario.quiet_rounds >= SETTLED_ROUNDS for scenario in self.clusters.values()))

    def images(self, cluster: str) -> list[str]:
        """Return the images of the pods of a cluster, by ordinal."""
        return [pod.image for pod in sorted(self.clusters[cluster].world.pods.values(), key=lambda pod: pod.ordinal)]
