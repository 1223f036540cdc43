"""The failure of a node while the work goes on: killed without warning, started again a little later."""

from __future__ import annotations

import time

from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.tally import NodeTally, Tally

DOWN_S = 1.0
"""How long the node is away before it is started again."""

BACK_TIMEOUT_S = 20.0

LOOK_S = 0.1


class Outage:
    """What happens to one node: nothing until a third of the work is done, then it is killed, then it comes back."""

    def __init__(self, cluster: Cluster, node: BrokerNode) -> None:
        self._cluster = cluster
        self._node = node
        self._next_look_s = 0.0

    def step(self, tally: Tally) -> None:
        """Do what is due; called again and again."""
        now_s = time.monotonic()
        told = tally.nodes[self._node.number - 1]
        if now_s < self._next_look_s or told.is_back:
            return
        self._next_look_s = now_s + LOOK_S
        if told.killed_s is None:
            if tally.is_well_begun:
                self._kill(told)
        elif told.started_s is None:
            if now_s - told.killed_s >= DOWN_S:
                self._node.start()
                told.started_s = now_s
        elif self._cluster.is_complete:
            told.back_s = now_s

    def _kill(self, told: NodeTally) -> None:
        told.held = self._node.jobs()
        self._node.process.kill()
        told.killed_s = time.monotonic()

    def finish(self, tally: Tally) -> None:
        """After the work: wait until the node is back, if it was killed."""
        told = tally.nodes[self._node.number - 1]
        deadline_s = time.monotonic() + BACK_TIMEOUT_S
        while told.killed_s is not None and not told.is_back and time.monotonic() < deadline_s:
            self.step(tally)
            time.sleep(LOOK_S)
