"""Finds out what this Kubernetes has that others lack, with two requests for all clusters, and none at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_operator.kube import KINDS, Kube, KubeError
from disque_operator.observed import Platform
from disque_operator.spec import Spec

FRESH_S: Final = 300.0
"""How long an answer counts, in seconds: kinds can be installed later."""
_OPENSHIFT: Final = ("security.openshift.io/v1", "securitycontextconstraints")


class Platforms:
    """The platform, looked up again after FRESH_S. If that fails, the previous answer counts."""

    def __init__(self, kube: Kube, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._known: Platform | None = None
        self._asked_s = float("-inf")

    async def current(self) -> Platform:
        """Return the platform; raises KubeError if it was never found out."""
        if self._known is None or self._clock() - self._asked_s > FRESH_S:
            monitor = KINDS["PodMonitor"]
            try:
                self._known = Platform(
                    pod_monitors=await self._kube.serves(monitor.api, monitor.plural),
                    assigns_ids=await self._kube.serves(*_OPENSHIFT),
                )
            except KubeError:
                if self._known is None:
                    raise
            self._asked_s = self._clock()
        return self._known

    async def at_rest(self, spec: Spec) -> Platform:
        """Return the platform as it was found, unless it lacked something that the cluster needs."""
        if self._known is None or (spec.monitoring.pod_monitor.enabled and not self._known.pod_monitors):
            return await self.current()
        return self._known
