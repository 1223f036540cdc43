"""The failure of a node under load: it is killed without warning and restarted a little later."""

from __future__ import annotations

import time

from disqued.demo.cluster import BrokerNode, Cluster
from disqued.demo.report import NodeReport, Report

DOWN_S = 1.0
"""How long the node stays down before it is restarted."""

BACK_TIMEOUT_S = 20.0

CHECK_S = 0.1


class Outage:
    """Kills one node when a third of the jobs is done, and restarts it."""

    def __init__(self, cluster: Cluster, node: BrokerNode) -> None:
        self._cluster = cluster
        self._node = node
        self._next_check_s = 0.0

    def step(self, report: Report) -> None:
        """Do the next step if it is due. Called regularly."""
        now_s = time.monotonic()
        node_report = report.nodes[self._node.number - 1]
        if now_s < self._next_check_s or node_report.is_back:
            return
        self._next_check_s = now_s + CHECK_S
        if node_report.killed_s is None:
            if report.is_third_done:
                self._kill(node_report)
        elif node_report.started_s is None:
            if now_s - node_report.killed_s >= DOWN_S:
                self._node.start()
                node_report.started_s = now_s
        elif self._cluster.is_complete:
            node_report.back_s = now_s

    def _kill(self, node_report: NodeReport) -> None:
        node_report.held = self._node.jobs()
        self._node.process.kill()
        node_report.killed_s = time.monotonic()

    def finish(self, report: Report) -> None:
        """Wait until the node is back in the cluster if it was killed. Called after the last job."""
        node_report = report.nodes[self._node.number - 1]
        deadline_s = time.monotonic() + BACK_TIMEOUT_S
        while node_report.killed_s is not None and not node_report.is_back and time.monotonic() < deadline_s:
            self.step(report)
            time.sleep(CHECK_S)
